"""The front of a toggle: the rows that have changed so far, from which the next layer's changes go out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Ball, Rings, grow
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.layers.base import Layer
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.plan import PATH_BYTES, ROW_BYTES, loss_bytes
from glasshouse.graph.rule.toggle.segments import segment_sum, starts_of

__all__ = ["Front", "growth_costs"]


@dataclass(frozen=True, kw_only=True)
class Front:
    """Targets and the changed rows around them.

    Args:
        targets: target nodes in the union of masks, [targets].
        removes: True where the target is a member, so that toggling removes it, bool [targets].
        ball: one row for each pair (target, node) whose value has changed, and for every target.
        first: whether the ball holds the targets alone, before any layer.

    Example:
        >>> from glasshouse.graph.rule.toggle.balls import target_ball
        >>> from glasshouse.graph.rule.toggle.masked_graph import coalesce, mask_graph
        >>> line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> graph = mask_graph(coalesce(line, 3, torch.float32), torch.tensor([[True, True, True]]))
        >>> ends = torch.tensor([0, 2])
        >>> front = Front(targets=ends, removes=graph.members[ends], ball=target_ball(graph, ends), first=True)
        >>> front.grown(graph).balls[1].node.tolist()
        [0, 1, 1, 2]
        >>> front.part(slice(1, 2), 3)[0].ball.keys.tolist()
        [2]
    """

    targets: Tensor
    removes: Tensor
    ball: Ball
    first: bool = False

    def part(self, targets: slice, size: int) -> tuple[Front, slice]:
        """The front of consecutive targets, in a union of ``size`` nodes, and where its rows are in this front."""
        bounds = torch.tensor([targets.start, targets.stop], device=self.targets.device)
        first, last = torch.searchsorted(self.ball.target, bounds).tolist()
        rows = slice(first, last)
        part = Front(
            targets=self.targets[targets],
            removes=self.removes[targets],
            ball=self.ball.part(targets, rows, size),
            first=self.first,
        )
        return part, rows

    def grown(self, graph: MaskedGraph) -> Rings:
        """The front's ball as ball 0 and the ball around it as ball 1, with the paths between them."""
        ball, paths = grow(graph, self.ball, self.targets, self.removes, first=self.first)
        return Rings(targets=self.targets, removes=self.removes, balls=[self.ball, ball], outward=[paths], around=None)


def growth_costs(graph: MaskedGraph, front: Front, layer: Layer, *, shared: bool, logits: int) -> Tensor:
    """Bytes that each target's next ball takes at most, [targets].

    Args:
        graph: the union of masks.
        front: where it grows from.
        layer: that is toggled.
        shared: whether its inputs are the features, the same for all models.
        logits: logits of one node over all models if this is the last layer, else 0.
    """
    sent = graph.receivers.count[front.ball.node].double().unsqueeze(1)
    starts = starts_of(front.ball.target, len(front.targets))
    paths = segment_sum(sent, starts).squeeze(1)
    paths += torch.where(front.removes, 0, graph.sources.count[front.targets])  # an added target receives too
    rows = (paths + starts.diff()).clamp(max=graph.size)
    cost = layer.cost(shared=shared)
    return rows * (cost.row + ROW_BYTES + loss_bytes(logits, fused=jit.usable(sent))) + paths * (cost.path + PATH_BYTES)
