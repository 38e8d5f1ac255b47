from __future__ import annotations

from glasshouse.evaluation import auc
from glasshouse.graph import GClassifier
from tests.graph.scenes import on_nodes, trained_scene, truth_of


def test_it_learns_from_both_queries_and_scores_the_audited_nodes() -> None:
    scene = trained_scene(shadows=8)
    scores = GClassifier(epochs=60).score(scene)
    assert auc(scores, truth_of(scene)) > 0.55
    some = GClassifier(epochs=60).score(on_nodes(scene, [4, 2]))
    assert (some == scores[[4, 2]]).all()


def test_simulated_targets_are_scored_as_each_would_be_alone() -> None:
    scene, attack = trained_scene(), GClassifier(epochs=3)
    for (scores, members), target in zip(attack.simulated_scores(scene), scene.simulated(), strict=True):
        assert (scores == attack.score(target.view)).all()
        assert (members == target.members).all()
