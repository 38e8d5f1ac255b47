from __future__ import annotations

from glasshouse.evaluation import auc
from glasshouse.graph import GClassifier
from tests.graph.scenes import on_nodes, trained_scene


def test_it_learns_from_both_queries_and_scores_the_audited_nodes() -> None:
    scene = trained_scene(shadows=8)
    assert scene.truth is not None
    scores = GClassifier(epochs=60).score_scene(scene)
    assert auc(scores, scene.truth) > 0.55
    some = GClassifier(epochs=60).score_scene(on_nodes(scene, [4, 2]))
    assert (some == scores[[4, 2]]).all()
