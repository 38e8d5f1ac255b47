"""Small trained scenes that several tests share."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.graph import GNNTrainer, Scene, citation_graph
from glasshouse.graph.training.trainer import adam

TRAINER = GNNTrainer(hidden=16, dropout=0.0, epochs=60, optimizer=adam(0.02), device="cpu")


@functools.cache
def trained_scene(*, nodes: int = 240, shadows: int = 4, architecture: str = "gcn", seed: int = 0) -> Scene:
    """An overfitted target and its shadows on a small synthetic graph, trained in one pass; everything audited."""
    data = citation_graph(nodes=nodes, classes=3, seed=seed)
    members = complementary_halves(nodes, models=shadows, seed=seed)
    everyone = np.concatenate([members, _truth(nodes, seed)[None]])
    *models, target = replace(TRAINER, architecture=architecture).train_many(data, everyone, [*range(shadows), 99])
    return Scene(data, target, models, members)


def on_nodes(scene: Scene, nodes: list[int]) -> Scene:
    """The same scene with few audited nodes."""
    return Scene(scene.data, scene.target, scene.shadows, scene.shadow_members, nodes=np.array(nodes))


def truth_of(scene: Scene, *, seed: int = 0) -> BoolArray:
    """Who trained the target of a trained scene, [n]; the scene itself does not know it."""
    return _truth(int(scene.data.num_nodes), seed)


def _truth(nodes: int, seed: int) -> BoolArray:
    truth: BoolArray = random_subsets(nodes, models=1, fraction=0.5, seed=seed + 1)[0]
    return truth
