from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from glasshouse import Evidence, InputError, audit_evidence
from glasshouse.attacks import BASE, Attack, attack_names, create
from glasshouse.attacks.attack import find_attack
from glasshouse.evaluation import Best, auc, run_attack, tpr_at_fpr
from glasshouse.evaluation.best import pick_best
from glasshouse.evaluation.thresholds import Scored
from tests.strategies import gaussian_evidence

FEW = ("base", "lira", "regressed")


def of(scores: np.ndarray, members: np.ndarray) -> Callable[[], tuple[Attack[Any], Scored]]:
    return lambda: (BASE(), [(scores, members)] * 4)


def refusing() -> tuple[Attack[Any], Scored]:
    raise InputError("shadows: too few.")


def test_the_pick_has_the_largest_rate_on_simulated_targets() -> None:
    evidence, _ = gaussian_evidence(records=600, models=8, shift=1.5, seed=0, difficulty=2.0)
    attack = Best(candidates=FEW, fprs=(0.1, 0.02))
    pick = attack.pick(evidence)
    rates = {}
    for name in FEW:
        settled = create(name).tuned(evidence)
        rates[name] = np.mean([tpr_at_fpr(*pair, 0.02) for pair in settled.simulated_scores(evidence)])
    assert pick.name == max(rates, key=lambda name: rates[name])
    assert pick.attack.name == pick.name
    assert (attack.score(evidence) == pick.attack.score(evidence)).all()
    assert len(list(attack.simulated_scores(evidence))) == 8
    assert f"TPR at 2 % FPR {100 * rates[pick.name]:.1f} % ± " in pick.reason


def test_the_smallest_rate_that_simulated_targets_resolve_decides() -> None:
    members = np.arange(400) < 200
    early = np.where(members, 0.0, 1.0) * np.arange(400) + 500.0 * (np.arange(400) < 50)  # good at the very top only
    late = np.where(members, 100.0, 0.0) + 400.0 * (np.arange(400) == 399)  # a non-member on top, then all members
    trials = {"early": of(early, members), "late": of(late, members)}
    assert pick_best(trials, [0.01, 0.001]).name == "late"  # 200 others resolve 1 % (two of them), not 0.1 %
    assert pick_best(trials, [0.01, 0.001]).reason.startswith("best picked late: TPR at 1 % FPR")
    assert "TPR at 10 % FPR" in pick_best(trials, []).reason


def test_equals_are_told_apart_by_their_area_and_those_that_refuse_are_left_out() -> None:
    members = np.arange(40) < 20
    nothing, little = np.zeros(40), np.where(members, 1.0, 0.0)
    little[39] = 2.0
    trials = {"nothing": of(nothing, members), "none": refusing, "little": of(little, members)}
    pick = pick_best(trials, [0.025])
    assert pick.name == "little"
    assert pick.reason.endswith(
        "next nothing 10.0 % (ties broken at random); left out, since they refuse this pool: none."
    )
    with pytest.raises(InputError, match="best cannot pick. shadows: too few"):
        pick_best({"none": refusing}, [0.01])
    assert "no other ran" in pick_best({"little": of(little, members)}, [0.025]).reason


def test_permuted_truth_changes_neither_the_pick_nor_the_scores() -> None:
    evidence, members = gaussian_evidence(records=500, models=8, shift=1.5, seed=0)
    shuffled = np.random.default_rng(0).permutation(members)
    first, second = (run_attack(Best(candidates=FEW), evidence, fprs=[0.05], members=m) for m in (members, shuffled))
    assert first.note == second.note
    assert (first.scores == second.scores).all()
    assert first.thresholds == second.thresholds


def test_the_targets_losses_do_not_change_the_pick() -> None:
    evidence, _ = gaussian_evidence(records=500, models=8, shift=1.5, seed=0)
    other = Evidence(
        target_loss=evidence.target_loss[::-1], shadow_loss=evidence.shadow_loss, shadow_members=evidence.shadow_members
    )
    assert Best(candidates=FEW).pick(evidence).reason == Best(candidates=FEW).pick(other).reason


def test_an_outcome_is_that_of_the_picked_attack_with_the_reason_beside_it() -> None:
    evidence, members = gaussian_evidence(records=600, models=8, shift=1.5, seed=1)
    outcome = run_attack(Best(candidates=FEW), evidence, fprs=[0.05], members=members)
    picked = outcome.attack.name
    plain = run_attack(create(picked), evidence, fprs=[0.05], members=members)
    assert (outcome.scores == plain.scores).all()
    assert outcome.thresholds == plain.thresholds
    assert outcome.note.startswith(f"best picked {picked}: ")
    assert outcome.queries == plain.queries


@pytest.mark.parametrize("attacks", ["best", ["best"], ["base", {"name": "best", "candidates": ["lira", "base"]}]])
def test_an_audit_takes_best_and_says_what_it_picked(attacks: str | list[str]) -> None:
    evidence, members = gaussian_evidence(records=600, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=attacks)
    outcome = result.outcomes["best"]
    assert auc(outcome.scores, members) > 0.8
    assert any(note.startswith(f"best picked {outcome.attack.name}: TPR at 1 % FPR") for note in result.summary().notes)


def test_offline_only_offline_attacks_are_tried() -> None:
    evidence, _ = gaussian_evidence(records=200, models=8, shift=1.5, seed=0)
    for name in ("base", "lira", "regressed"):
        picked = Best(mode="offline", prior=0.2, candidates=(name,)).pick(evidence).attack
        assert vars(picked)["mode"] == "offline"
        assert vars(picked).get("prior", 0.2) == 0.2


def test_candidates_are_known_attacks_and_bad_ones_are_refused() -> None:
    assert {name for name in attack_names(graph=False) if find_attack(name).candidate} >= {"base", "lira", "stacked"}
    with pytest.raises(InputError, match='"bsae" is not an attack'):
        Best(candidates=("bsae",))
    with pytest.raises(InputError, match="one of its own"):
        Best(candidates=("best",))
    evidence, _ = gaussian_evidence(records=50, models=2, shift=1.0, seed=0)
    with pytest.raises(InputError, match="best cannot pick.*train 4 or more"):
        Best().score(evidence)


def found(share: np.ndarray, seed: int = 0) -> Callable[[], tuple[Attack[Any], Scored]]:
    """An attack that finds this share of the members, [T] of each target, above all others; the rest is chance."""
    members = np.random.default_rng(7).random((len(share), 1000)) < 0.5
    random = np.random.default_rng(seed)
    scores = random.random(members.shape) + 2.0 * members * (random.random(members.shape) < share[:, None])
    return lambda: (BASE(), list(zip(scores, members, strict=True)))


def test_the_usual_attack_stays_unless_another_finds_clearly_more_on_the_same_targets() -> None:
    level, noise = np.full(6, 0.3), np.array([0.3, -0.2, 0.3, -0.2, 0.3, -0.2])
    usual, luckier, better = found(level), found(level + noise, 1), found(level + 0.1, 2)
    trials = {"luckier": luckier, "usual": usual}
    assert pick_best(trials, [0.01]).name == "luckier"
    kept = pick_best(trials, [0.01], usual="usual")
    assert kept.name == "usual"
    assert "next luckier" in kept.reason
    assert kept.reason.endswith("; no other clearly finds more.")
    pick = pick_best({**trials, "better": better, "best": found(level + 0.2, 3)}, [0.01], usual="usual")
    assert pick.name == "best"  # of those that are clearly better, the one that finds most
    assert "clearly" not in pick.reason


def test_only_targets_that_both_attacked_are_compared() -> None:
    """A usual attack that judged two of six targets is compared on those two."""
    attack, every = found(np.full(6, 0.3))()
    scored = list(every)
    level = np.array([0.1, 0.1, 0.9, 0.9, 0.9, 0.9])
    worse = found(level, 1)
    assert pick_best({"usual": lambda: (attack, scored), "worse": worse}, [0.01], usual="usual").name == "worse"
    assert pick_best({"usual": lambda: (attack, scored[:2]), "worse": worse}, [0.01], usual="usual").name == "usual"
    others = [(scores, ~members) for scores, members in scored]
    assert pick_best({"usual": lambda: (attack, others), "worse": worse}, [0.01], usual="usual").name == "usual"


def test_of_many_records_the_others_are_tried_on_a_part_and_the_pick_scores_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evidence, _ = gaussian_evidence(records=600, models=6, shift=1.5, seed=0)
    monkeypatch.setattr("glasshouse.evaluation.best._ENOUGH", 200)
    tried: dict[str, int] = {}

    def noted(trials: Any, fprs: Any, *, usual: str | None = None) -> Any:
        tried.update({name: len(trial()[1][0][0]) for name, trial in trials.items()})
        return pick_best(trials, fprs, usual=usual)

    monkeypatch.setattr("glasshouse.evaluation.best.pick_best", noted)
    prior = np.linspace(0.4, 0.6, 600)
    pick = Best(candidates=("base", "stacked"), prior=prior, fprs=(0.1,)).pick(evidence)
    assert tried == {"base": 200, "stacked": 200}
    assert all(len(scores) == len(members) == 600 for scores, members in pick.simulated)
    plain = create(pick.name, shared={"prior": prior}).tuned(evidence)
    assert (pick.attack.score(evidence) == plain.score(evidence)).all()
    assert pick.reason.endswith("They were compared on 200 of the records.")
