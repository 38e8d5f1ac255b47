from __future__ import annotations

import dataclasses
import functools
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch
from scipy.special import logit

from glasshouse.attacks.cross_fit import cross_fit
from glasshouse.attacks.learners import Boosted, Linear, Network
from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError
from glasshouse.data import complementary_halves
from glasshouse.evaluation import Best, auc, run_attack
from glasshouse.graph import GBASE, GStacked, Scene
from glasshouse.graph.attacks.stacking.features import SIGNALS
from glasshouse.graph.attacks.stacking.learn import learn
from tests.graph.scenes import trained_scene, truth_of

QUICK = Boosted(rounds=20, leaves=15, fits=1)


@functools.cache
def quick(mode: str = "online") -> GStacked:
    """One attack for all tests, which has learned the pool of `trained_scene`."""
    attack = GStacked(mode=mode, samples=(4, 2), boosted=QUICK, jobs=1)  # type: ignore[arg-type]
    return attack.tuned(trained_scene(shadows=8))


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_it_tells_members_at_least_as_well_as_g_base(mode: str) -> None:
    scene = trained_scene(shadows=8)
    stacked = auc(quick(mode).score(scene), truth_of(scene))
    single = auc(GBASE(mode=mode).score(scene), truth_of(scene))  # type: ignore[arg-type]
    assert stacked >= single - 0.01


def test_against_other_members_it_finds_nothing() -> None:
    scores = quick().score(trained_scene(shadows=8))
    found = [auc(scores, complementary_halves(240, models=2, seed=seed)[0]) for seed in range(10)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


def test_from_wrong_members_of_the_pool_it_learns_nothing() -> None:
    scene = trained_scene(shadows=8)
    found = []
    for seed in range(8):
        wrong = complementary_halves(240, models=8, seed=50 + seed)
        attack = GStacked(samples=(2,), targets=4, folds=2, boosted=QUICK, jobs=1)
        found.append(auc(attack.score(Scene(scene.data, scene.target, scene.shadows, wrong)), truth_of(scene)))
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)


def test_a_pool_is_learned_once_for_all_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, attack = trained_scene(shadows=8), quick()
    monkeypatch.setattr("glasshouse.graph.attacks.g_stacked.learn", lambda *_, **__: pytest.fail("learned again"))
    second = Scene(scene.data, scene.shadows[0], scene.shadows, scene.shadow_members, nodes=[3, 5])
    assert attack.tuned(second) is attack
    assert attack.score(second).shape == (2,)
    assert len(list(attack.simulated_scores(scene))) == 8


@pytest.mark.parametrize("best", [False, True])
def test_an_audit_learns_a_pool_once(monkeypatch: pytest.MonkeyPatch, best: bool) -> None:
    scene = trained_scene(nodes=120, shadows=4)
    counted = Mock(wraps=learn)
    monkeypatch.setattr("glasshouse.graph.attacks.g_stacked.learn", counted)
    attack = GStacked(samples=(2,), boosted=QUICK)
    monkeypatch.setattr("glasshouse.evaluation.best.create", lambda *_, **__: attack)
    run_attack(Best(candidates=("g-stacked",)) if best else attack, scene, fprs=[0.1])
    assert counted.call_count == 1
    assert attack.fit_ is None, "the attack that was given is as it was"


def test_rounds_that_only_draw_training_sets_have_their_own_network() -> None:
    scene, given = trained_scene(nodes=120, shadows=4), Mock(wraps=cross_fit)
    attack = GStacked(samples=(2, 2, 2), boosted=QUICK, early=Network(epochs=2))
    with patch("glasshouse.graph.attacks.stacking.learn.cross_fit", given):
        attack.tuned(scene)
    learners = [list(call.kwargs["learners"].values()) for call in given.call_args_list]
    assert learners == [[attack.linear, attack.early]] * 2 + [[attack.linear, attack.network, QUICK]]


def test_another_pool_than_the_learned_one_is_refused() -> None:
    scene, attack = trained_scene(shadows=8), quick()
    others: list[dict[str, Any]] = [
        {"data": scene.data.clone()},
        {"shadows": scene.shadows[:4], "shadow_members": scene.shadow_members[:4]},
        {"shadow_members": ~scene.shadow_members},
    ]
    known: dict[str, Any] = {"data": scene.data, "shadows": scene.shadows, "shadow_members": scene.shadow_members}
    for other in others:
        changed = Scene(target=scene.target, **known | other)
        with pytest.raises(InputError, match="g-stacked: the attack learned from another graph"):
            attack.score(changed)
        with pytest.raises(InputError, match="g-stacked: the attack learned from another graph"):
            next(attack.simulated_scores(changed))


BASE_OF_COPIES: dict[str, Any] = {
    "samples": (2, 2),
    "boosted": Boosted(rounds=3, leaves=7, fits=1),
    "network": Network(epochs=2),
}


@functools.cache
def first_of_copies() -> tuple[GStacked, FloatArray]:
    """The attack that is copied, which learns once, and its scores."""
    scene = trained_scene(nodes=120, shadows=4)
    first = GStacked(**BASE_OF_COPIES).tuned(scene)
    return first, first.score(scene)


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "offline"},
        {"without": ("kin",)},
        {"samples": (3, 2)},
        {"seed": 1},
        {"targets": 4},
        {"sampled_models": 4},
        {"folds": 2, "mode": "offline"},
        {"boosted": Boosted(rounds=5, leaves=15, fits=1)},
        {"linear": Linear(strength=10.0)},
        {"early": Boosted(rounds=3)},
        {"engine": "packed"},
    ],
    ids=str,
)
def test_a_copy_with_other_parameters_judges_as_a_fresh_attack_does(change: dict[str, Any]) -> None:
    """Item 9 of issue 15: the copy answered with what the first attack had learned."""
    scene, (first, before) = trained_scene(nodes=120, shadows=4), first_of_copies()
    copied, fresh = dataclasses.replace(first, **change), GStacked(**BASE_OF_COPIES | change)
    assert copied.fit_ is None
    assert copied.score(scene).tobytes() == fresh.score(scene).tobytes()
    assert first.score(scene).tobytes() == before.tobytes(), "what the first attack learned is still its own"


def test_a_copy_with_another_prior_or_more_jobs_keeps_what_was_learned() -> None:
    for change in ({"prior": 0.2}, {"prior": np.full(240, 0.2)}, {"jobs": 2}):
        assert dataclasses.replace(quick(), **change).fit_ is quick().fit_


def test_a_list_of_signals_that_changes_later_changes_nothing() -> None:
    without = ["kin"]
    attack = GStacked(without=without)
    without.append("degree")
    assert attack.without == ("kin",)


def test_audited_nodes_are_a_choice_of_what_is_shown() -> None:
    scene = trained_scene(shadows=8)
    few = Scene(scene.data, scene.target, scene.shadows, scene.shadow_members, nodes=[7, 2])
    assert (quick().score(few) == quick().score(scene)[[7, 2]]).all()


def test_thresholds_come_from_held_out_simulated_targets() -> None:
    scene = trained_scene(shadows=8)
    outcome = run_attack(quick(), scene, fprs=[0.1])
    assert outcome.thresholds[0].simulated == 8
    assert outcome.thresholds[0].expected_fpr == pytest.approx(0.1, abs=0.05)
    assert outcome.details["unlikeness"] < 5
    assert outcome.note == ""
    assert outcome.queries is not None
    assert outcome.queries.per_record == 2 * 9 + 2 * 6 * 9  # with the node and without it


def test_a_black_box_and_another_architecture_are_judged_and_noticed() -> None:
    scene = trained_scene(shadows=8)
    target = trained_scene(shadows=8, architecture="gat").target

    def sharper(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = 4 * target(x, edges)
        return answer

    unlike = Scene(scene.data, sharper, scene.shadows, scene.shadow_members)
    judged = quick().judge(unlike)
    assert judged.details["unlikeness"] > 5
    assert "unlike every simulated target" in run_attack(quick(), unlike, fprs=[]).note
    assert ((judged.scores > 0) & (judged.scores < 1)).all()
    assert auc(judged.scores, truth_of(scene)) > 0.55


def test_the_prior_shifts_the_log_odds() -> None:
    scene = trained_scene(shadows=8)
    attack = quick()
    rare = dataclasses.replace(attack, prior=0.1)
    before, after = logit(attack.score(scene)), logit(rare.score(scene))
    near = np.abs(before) < 15  # beyond, a probability has too few digits to find its log-odds again
    assert near.mean() > 0.9
    assert (after - before)[near] == pytest.approx(logit(0.1), abs=1e-6)
    assert np.isfinite(after).all()


def test_a_signal_that_is_left_out_is_not_looked_at() -> None:
    """Without all that comes from the whole graph, what models answer about it changes nothing."""
    scene = trained_scene(shadows=8)
    attack = GStacked(samples=(2,), boosted=QUICK, without=("whole", "kin"))
    pool = attack.learned(scene).pool
    assert pool.context.kin == {}
    plain, sampled = pool.of_shadow(0)
    references = pool.plan.references[0][:, 0]
    other = plain._replace(whole=plain.whole[:, ::-1])
    signals = [pool.target_signals(answers, sampled, references) for answers in (plain, other)]
    rows = [pool.rows(each) for each in signals]
    assert (rows[0] == rows[1]).all()
    assert rows[0].shape[1] < quick().learned(scene).pool.rows(signals[0]).shape[1]


def test_bad_parameters_are_refused() -> None:
    for wrong in ({"samples": ()}, {"folds": 1}, {"prior": 0.0}):
        with pytest.raises(InputError):
            GStacked(**wrong)
    with pytest.raises(InputError, match='Did you mean "whole"'):
        GStacked(without=("hole",))
    for loose in ("kin", None):
        with pytest.raises(InputError, match="is not a list"):
            GStacked(without=loose)  # type: ignore[arg-type]
    with pytest.raises(InputError, match='no signal is called "1"'):
        GStacked(without=[1])  # type: ignore[list-item]
    scene = trained_scene()
    with pytest.raises(InputError, match="leave nothing to learn from"):
        GStacked(without=SIGNALS).score(scene)
    few = Scene(scene.data, scene.target, scene.shadows[:2], scene.shadow_members[:2])
    with pytest.raises(InputError, match="train 4 or more"):
        GStacked().score(few)
