from __future__ import annotations

import numpy as np

from glasshouse.graph.training.setting import node_accuracy
from tests.graph.scenes import trained_scene, truth_of


def test_members_are_known_better_than_others() -> None:
    scene = trained_scene()
    inside, outside = (node_accuracy(scene.target, scene.data, who) for who in (truth_of(scene), ~truth_of(scene)))
    assert inside > 0.95
    assert outside < inside
    assert np.isnan(node_accuracy(scene.target, scene.data, np.zeros(240, dtype=bool)))
