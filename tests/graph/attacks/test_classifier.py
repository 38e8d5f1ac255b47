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
