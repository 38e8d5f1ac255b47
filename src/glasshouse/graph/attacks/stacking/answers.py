"""What models answer about every node: alone, in the whole graph, and under sampled training sets.

A training set has every node with its own chance, and over all sets as often as that chance says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.models.profile import AnyModel
from glasshouse.graph.rule.toggling import toggle_answers
from glasshouse.graph.scene import Scene


class PlainAnswers(NamedTuple):
    """Losses of K models on every node, [K, n] each."""

    alone: FloatArray  # each node queried without edges
    whole: FloatArray  # each node queried in the whole graph


class SampledAnswers(NamedTuple):
    """Answers of K models about every node under M sampled training sets, [K, M, n] each."""

    own: FloatArray  # the node's loss in the graph of the sampled members and itself
    signal: FloatArray  # S of eq. (6): that loss, plus what the node's presence changes in its neighbours' losses

    @property
    def gain(self) -> FloatArray:
        """What the node's presence adds to its neighbours' log-confidence, [K, n], mean over samples."""
        return np.asarray((self.own - self.signal).mean(axis=1))

    def of(self, rows: Sequence[int]) -> SampledAnswers:
        """The answers of some of the models."""
        return SampledAnswers(self.own[list(rows)], self.signal[list(rows)])


def plain_answers(scene: Scene) -> tuple[PlainAnswers, PlainAnswers]:
    """What a scene knows: the losses of its target, [1, n] each, and of its shadow models, [K, n] each."""
    asked = scene.zero_hop, scene.whole_graph
    return PlainAnswers(*(one.target_loss[None] for one in asked)), PlainAnswers(*(one.shadow_loss for one in asked))


def sampled_answers(
    models: Sequence[AnyModel], data: Data, masks: BoolArray, *, engine: str = "auto", nodes: IntArray | None = None
) -> SampledAnswers:
    """Ask every model under every mask [M, n] about every node, or about some; the own loss is a part of S.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> found = sampled_answers([lambda x, edges: x - 1], data, np.array([[True, False]]))
        >>> found.signal.round(3), found.gain.round(3)  # a model without edges: no gain
        (array([[[0.313, 0.313]]]), array([[0., 0.]]))
    """
    asked = torch.arange(int(data.num_nodes)) if nodes is None else torch.from_numpy(nodes)
    found = toggle_answers(models, data, torch.from_numpy(masks), asked, engine=engine)
    return SampledAnswers(found.own.cpu().numpy(), found.signal.cpu().numpy())


def draw_training_sets(chances: FloatArray, *, samples: int, random: np.random.Generator) -> BoolArray:
    """Training sets [M, n] for chances [n] of membership.

    Each set alone is like one drawn with a coin per node. But the sets share the coins: every node gets one number from
    each of M equal parts of [0, 1], in random order (a Latin hypercube), so that it is in M times its chance of the
    sets, rounded up or down. A mean over such sets varies far less: four of them are worth eight independent ones.

    Example:
        >>> drawn = draw_training_sets(np.array([0.0, 0.5, 1.0]), samples=4, random=np.random.default_rng(0))
        >>> drawn.shape, drawn.sum(axis=0)
        ((4, 3), array([0, 2, 4]))
    """
    parts = random.random((samples, len(chances))).argsort(axis=0)
    return np.asarray((parts + random.random(parts.shape)) / samples < chances)
