"""How strongly messages count in a sum: normalisation by degrees, weights of edges, and self-loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.balls import Ball, Paths, Rings
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.pair_weights import PairWeights

__all__ = ["Loops", "Normalisation", "Scales", "Scaling"]

Normalisation = Literal["symmetric", "mean", "none"]
Loops = Literal["added", "listed", "dropped"]


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The factors of a sum of messages, before the graph is known.

    Args:
        normalisation: ``"symmetric"`` divides by the root degrees of both ends, ``"mean"`` by the number of messages,
            ``"none"`` by nothing. The degree of a node is the sum of the weights of its messages.
        loops: ``"added"``: every node has one self-loop; ``"listed"``: those of the graph, as edges like all others;
            ``"dropped"``: none.
        edge_weight: one weight per edge, [edges], or None if all are 1.
        fill: weight of an added self-loop; a self-loop of the graph keeps its own. It is 1 without weights of edges.

    Example:
        >>> Scaling(normalisation="symmetric", loops="added").by_degree
        True
    """

    normalisation: Normalisation
    loops: Loops
    edge_weight: Tensor | None = None
    fill: float = 1.0

    @property
    def by_degree(self) -> bool:
        """Whether a sender's degree enters its messages."""
        return self.normalisation == "symmetric"

    def under(self, graph: MaskedGraph) -> Scales:
        """The factors in a union of masks."""
        masks, degree = len(graph.members) // graph.size, graph.degree
        pairs = None if self.edge_weight is None else PairWeights.of(graph.copies, self.edge_weight)
        messages = graph.sources.weight
        if pairs is not None:
            receiver = torch.repeat_interleave(graph.sources.count, output_size=len(messages))
            weight = pairs.between(graph.sources.other % graph.size, receiver % graph.size)
            messages = weight
            if self.by_degree:
                degree = weight.new_zeros(len(degree)).index_add_(0, receiver, weight)
        if self.loops == "dropped":
            loops = torch.zeros_like(graph.loops)
        elif self.loops == "added":
            loops = torch.ones_like(graph.loops) if pairs is None else pairs.loops(none=self.fill).repeat(masks)
        else:
            loops = graph.loops if pairs is None else pairs.loops().repeat(masks)
        counted = loops if self.by_degree else graph.loops
        scale = self._scale(degree, counted).to(messages.dtype)
        return Scales(
            scaling=self,
            graph=graph,
            pairs=pairs,
            messages=messages,
            degree=degree,
            counted=counted,
            loops=loops.to(scale.dtype),
            scale=scale,
            sent=scale if self.by_degree else torch.ones_like(scale),
        )

    def _scale(self, degree: Tensor, loops: Tensor) -> Tensor:
        """C of each row; for the symmetric normalisation it is also k, the scale of a sender's messages."""
        if self.normalisation == "symmetric":
            total = degree + loops
            return total.rsqrt().masked_fill_(total == 0, 0)
        return 1 / (degree + loops).clamp(min=1) if self.normalisation == "mean" else torch.ones_like(degree)


@dataclass(frozen=True, kw_only=True)
class Scales:
    """The factors in a union of masks, and after toggles; in float64 if edges have weights.

    Weights may be of very different size. A sum from which its largest message is subtracted then has no digits left in
    float32.
    """

    scaling: Scaling
    graph: MaskedGraph
    pairs: PairWeights | None
    messages: Tensor  # [entries of the lists of senders], weight of each message
    degree: Tensor  # [N], without self-loops
    counted: Tensor  # [N], what self-loops add to the degree
    loops: Tensor  # [N], how strongly a node's own message enters its sum
    scale: Tensor  # [N], c
    sent: Tensor  # [N], k

    def after(self, ball: Ball, rings: Rings) -> Tensor:
        """C of the rows of a ball after the toggle, [rows]."""
        change = ball.degree_change
        if self.pairs is not None and self.scaling.by_degree:
            change = torch.zeros_like(change, dtype=torch.float64)
            row = ball.degree_change.nonzero().squeeze(1)  # the receivers of the targets
            target = ball.target[row]
            weight = self.pairs.between(rings.targets[target] % self.graph.size, ball.node[row] % self.graph.size)
            change[row] = torch.where(rings.removes[target], -weight, weight)
        return self.scaling._scale(self.degree[ball.node] + change, self.counted[ball.node]).to(self.scale.dtype)

    def sent_after(self, ball: Ball, rings: Rings) -> Tensor:
        """K of the rows of a ball after the toggle, [rows]."""
        return self.after(ball, rings) if self.scaling.by_degree else self.sent[ball.node]

    def along(self, paths: Paths, inner: Ball, outer: Ball) -> Tensor:
        """The weight of the message of each path, [paths]."""
        if self.pairs is None:
            return paths.weight
        size = self.graph.size
        return self.pairs.between(inner.node[paths.source] % size, outer.node[paths.receiver] % size)
