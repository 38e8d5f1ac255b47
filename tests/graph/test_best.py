from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.attacks import LiRA
from glasshouse.evaluation import Best, run_attack, tpr_at_fpr
from glasshouse.graph import GNNTrainer, GRegressed, Scene, audit, citation_graph
from glasshouse.graph.training.trainer import adam
from tests.graph.scenes import on_nodes, trained_scene

FEW = ("lira", "regressed", "g-regressed")


def test_attacks_of_both_kinds_compete_on_simulated_targets() -> None:
    scene = trained_scene(shadows=8)
    pick = Best(candidates=("lira", "g-regressed"), fprs=(0.05,)).pick(scene)
    rates = {
        "lira": [tpr_at_fpr(*pair, 0.05) for pair in LiRA().tuned(scene.zero_hop).simulated_scores(scene.zero_hop)],
        "g-regressed": [tpr_at_fpr(*pair, 0.05) for pair in GRegressed().simulated_scores(scene)],
    }
    assert pick.name == max(rates, key=lambda name: np.mean(rates[name]))
    assert f"{100 * np.mean(rates[pick.name]):.1f} %" in pick.reason


@pytest.mark.parametrize("candidates", [("lira",), ("g-regressed",)])
def test_an_outcome_is_that_of_the_picked_attack_with_the_reason_beside_it(candidates: tuple[str, ...]) -> None:
    scene = trained_scene(shadows=8)
    best = Best(candidates=candidates)
    outcome = run_attack(best, scene, fprs=[0.1])
    plain = run_attack(LiRA() if candidates == ("lira",) else GRegressed(), scene, fprs=[0.1])
    assert outcome.attack.name == candidates[0]
    assert (outcome.scores == plain.scores).all()
    assert (outcome.scores == best.score(scene)).all()
    assert outcome.thresholds == plain.thresholds
    assert outcome.queries == plain.queries
    assert outcome.note.startswith(f"best picked {candidates[0]}: TPR at 1 % FPR")
    assert len(list(best.simulated_scores(scene))) == 8


def test_candidates_are_what_a_scene_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []
    monkeypatch.setattr("glasshouse.evaluation.best.pick_best", lambda trials, *_, **__: tried.append(list(trials)))
    scene = trained_scene()
    whole = Scene(scene.data, scene.target, scene.shadows, scene.shadow_members, setting="transductive")
    for view in (scene, whole, scene.evidence):
        Best().pick(view)
    assert "g-stacked" in tried[0]
    assert "stacked" in tried[0]
    assert tried[1] == tried[2] == [name for name in tried[0] if not name.startswith("g-")]


def test_a_prior_of_each_node_reaches_candidates_of_both_kinds() -> None:
    scene = on_nodes(trained_scene(shadows=8), list(range(0, 240, 2)))
    prior = np.linspace(0.2, 0.8, 240)
    for name in ("regressed", "g-regressed"):
        pick = Best(prior=prior, candidates=(name,)).pick(scene)
        assert np.size(getattr(pick.attack, "prior", 0.5)) == (120 if name == "regressed" else 240)


@pytest.mark.parametrize("attacks", ["best", [{"name": "best", "candidates": ["lira", "g-regressed"]}, "base"]])
def test_an_audit_takes_best_and_says_what_it_picked(attacks: Any) -> None:
    trainer = GNNTrainer(hidden=16, dropout=0.0, epochs=40, optimizer=adam(0.02), device="cpu")
    result = audit(citation_graph(nodes=200, classes=3, seed=0), trainer=trainer, attacks=attacks, shadows=4)
    outcome = result.outcomes["best"]
    assert any(note.startswith(f"best picked {outcome.attack.name}: TPR at 1 % FPR") for note in result.summary().notes)


def test_bad_candidates_and_too_small_pools_are_refused() -> None:
    with pytest.raises(InputError, match='"g-bsae" is not an attack'):
        Best(candidates=("g-bsae",))
    with pytest.raises(InputError, match="one of its own"):
        Best(candidates=("best",))
    scene = trained_scene(shadows=8)
    with pytest.raises(InputError, match="best cannot pick.*train 4 or more"):
        Best(candidates=FEW).pick(Scene(scene.data, scene.target, scene.shadows[:2], scene.shadow_members[:2]))
