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

__all__ = ["PlainAnswers", "SampledAnswers", "plain_answers", "sampled_answers"]


class PlainAnswers(NamedTuple):
    """Losses of K models on every node.

    Args:
        alone: [K, n], each node queried without edges.
        whole: [K, n], each node queried in the whole graph.
    """

    alone: FloatArray
    whole: FloatArray


class SampledAnswers(NamedTuple):
    """Answers of K models about every node under M sampled training sets.

    Args:
        own: [K, M, n] the node's loss among the sampled members.
        signal: [K, M, n] S of the paper's eq. (6): that loss, plus what the node's presence changes in its neighbours'
            losses.
    """

    own: FloatArray
    signal: FloatArray

    @property
    def gain(self) -> FloatArray:
        """What the node's presence adds to its neighbours' log-confidence, [K, n], mean over samples."""
        return np.asarray((self.own - self.signal).mean(axis=1))

    def of(self, rows: Sequence[int]) -> SampledAnswers:
        """The answers of some of the models."""
        return SampledAnswers(self.own[list(rows)], self.signal[list(rows)])


def plain_answers(models: Sequence[Model], data: Data) -> PlainAnswers:
    """Ask every model twice about all nodes.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> plain_answers([lambda x, edges: x], data).alone.round(3)
        array([[0.313, 0.313]])
    """
    return PlainAnswers(node_losses(models, data, torch.arange(0)), node_losses(models, data))


def sampled_answers(models: Sequence[Model], data: Data, masks: BoolArray, *, engine: str = "auto") -> SampledAnswers:
    """Ask every model about every node under every mask [M, n].

    The node's own loss is read from one pass per mask over the edges that leave sampled members. For a sampled node
    this is exact. For another node, its neighbours get no message from it. This changes its loss only in the second
    layer, and in the same way for target and references.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> found = sampled_answers([lambda x, edges: x - 1], data, np.array([[True, False]]))
        >>> found.signal.round(3), found.gain.round(3)  # a model without edges: no gain
        (array([[[0.313, 0.313]]]), array([[0., 0.]]))
    """
    chosen = torch.from_numpy(masks)
    signal = toggle_losses(models, data, chosen, torch.arange(int(data.num_nodes)), engine=engine)
    senders = data.edge_index[0].cpu()
    own = [node_losses(models, data, mask[senders]) for mask in chosen]
    return SampledAnswers(np.stack(own, axis=1), signal.cpu().numpy().astype(np.float64))
