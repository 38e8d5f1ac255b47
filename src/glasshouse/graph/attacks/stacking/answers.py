"""What models answer about every node: alone, in the whole graph, and under sampled training sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph.models.model import Model
from glasshouse.graph.models.node_losses import node_losses
from glasshouse.graph.rule.toggle import toggle_losses

__all__ = ["Heard", "Sampled", "hear", "sample_signals"]


class Heard(NamedTuple):
    """Losses of some models on every node, [K, n]: asked without edges, and asked about the whole graph."""

    alone: FloatArray
    whole: FloatArray


class Sampled(NamedTuple):
    """What some models say under sampled training sets, [K, M, n] each.

    Args:
        own: the node's loss, with the sampled members as its surroundings.
        signal: S of the paper's eq. (6): that loss, and what the node's presence does to its neighbours' losses.
    """

    own: FloatArray
    signal: FloatArray

    @property
    def gain(self) -> FloatArray:
        """What the node's presence does for its neighbours' log-confidence, mean over samples [K, n]."""
        return np.asarray((self.own - self.signal).mean(axis=1))

    def of(self, rows: Sequence[int]) -> Sampled:
        """The answers of some of the models."""
        return Sampled(self.own[list(rows)], self.signal[list(rows)])


def hear(models: Sequence[Model], data: Data) -> Heard:
    """Ask every model twice about all nodes.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> hear([lambda x, edges: x], data).alone.round(3)
        array([[0.313, 0.313]])
    """
    return Heard(node_losses(models, data, data.edge_index[:, :0]), node_losses(models, data, data.edge_index))


def sample_signals(models: Sequence[Model], data: Data, masks: BoolArray, *, engine: str = "auto") -> Sampled:
    """Signals of every node under every mask [M, n].

    The node's own loss is read from one pass a mask over the edges that leave sampled members. For a sampled node that
    is exact; for another its neighbours have not heard of it, which touches its loss in the second layer only and is
    the same for target and references.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> found = sample_signals([lambda x, edges: x - 1], data, np.array([[True, False]]))
        >>> found.signal.round(3), found.gain.round(3)  # a model that sees no edges: nobody's presence does anything
        (array([[[0.313, 0.313]]]), array([[0., 0.]]))
    """
    chosen = torch.from_numpy(masks)
    signal = toggle_losses(models, data, chosen, torch.arange(int(data.num_nodes)), engine=engine)
    edges = data.edge_index
    own = [node_losses(models, data, edges[:, mask.to(edges.device)[edges[0]]]) for mask in chosen]
    return Sampled(np.stack(own, axis=1), signal.cpu().numpy().astype(np.float64))
