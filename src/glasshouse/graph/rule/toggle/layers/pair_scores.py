"""The formulas of attention whose scores are made for each pair of nodes, and a softmax over a node's senders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from glasshouse.graph.rule.toggle.layers.base import project
from glasshouse.graph.rule.toggle.layers.edge_values import EdgeValues, Messages
from glasshouse.graph.rule.toggle.segments import segment_sum, starts_of

__all__ = ["Affine", "PairScores", "Parts", "Softmax"]


@dataclass(frozen=True, kw_only=True)
class Affine:
    """A linear map of each model.

    Example:
        >>> Affine(weight=torch.ones(2, 3, 4), bias=None)(torch.ones(5, 1, 3)).shape
        torch.Size([5, 2, 4])
    """

    weight: Tensor  # [models, width, out]
    bias: Tensor | None  # [models, out]

    def __call__(self, rows: Tensor) -> Tensor:
        """Rows [rows, models or 1, width] to [rows, models, out]."""
        made = project(rows, self.weight)
        return made if self.bias is None else made + self.bias


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What rows show to receivers, the values that they send, and what they ask senders for.

    All are [rows, models, heads, ...]; values and what is shown may be one tensor.
    """

    shown: Tensor
    sent: Tensor
    asked: Tensor

    def each(self, function: Callable[[Tensor], Tensor]) -> Parts:
        """The result of a function of each part."""
        shown = function(self.shown)
        sent = shown if self.sent is self.shown else function(self.sent)
        return Parts(shown=shown, sent=sent, asked=function(self.asked))

    def at(self, rows: Tensor) -> Parts:
        """Some rows."""
        return self.each(lambda part: part[rows])

    def where(self, here: Tensor, other: Parts) -> Parts:
        """These rows where ``here`` [rows] is true, else the other ones."""
        here = here.view(-1, 1, 1, 1)
        return Parts(
            shown=torch.where(here, self.shown, other.shown),
            sent=torch.where(here, self.sent, other.sent),
            asked=torch.where(here, self.asked, other.asked),
        )


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """Maps and scores of attention.

    The score of a pair is ``vector · leaky(s + r + e)``, or ``(s + e) · r / sqrt(columns)`` without a vector, where s
    is what the sender shows, r what the receiver asks for and e what the edge gives.

    Args:
        sender: map to s, [models, width, heads * columns].
        receiver: map to r, likewise.
        heads: of one model.
        concat: heads side by side, else their mean.
        values: map to values, [models, width, heads * channels]; None if they are s.
        vector: [models, heads, columns] or None.
        edges: what edges give, [edges, models, heads * columns] after their map, or None.
        edges_sent: whether it is added to the values too.
        fill: features of an added self-loop: one number, or ``"mean"`` for the mean of the messages' features; None if
            the graph's own self-loops are used like other edges.
        slope: of the leaky ReLU below zero.
        bias: [models, out] or None.

    Example:
        >>> both = Affine(weight=torch.ones(2, 3, 8), bias=None)
        >>> PairScores(sender=both, receiver=both, heads=4, vector=torch.ones(2, 4, 2), concat=True).width
        8
    """

    sender: Affine
    receiver: Affine
    heads: int
    concat: bool
    values: Affine | None = None
    vector: Tensor | None = None
    edges: EdgeValues | None = None
    edges_sent: bool = False
    fill: float | Literal["mean"] | None = 0.0
    slope: float = 0.2
    bias: Tensor | None = None

    @property
    def models(self) -> int:
        """How many models are stacked."""
        return int(self.sender.weight.shape[0])

    @property
    def columns(self) -> int:
        """Columns of the values of one model."""
        return int((self.values or self.sender).weight.shape[2])

    @property
    def width(self) -> int:
        """Columns of the output of one model."""
        return self.columns if self.concat else self.columns // self.heads

    def parts(self, inputs: Tensor) -> Parts:
        """What rows [rows, models or 1, width] show, send and ask for."""
        shown = self._by_head(self.sender(inputs))
        sent = shown if self.values is None else self._by_head(self.values(inputs))
        return Parts(shown=shown, sent=sent, asked=self._by_head(self.receiver(inputs)))

    def score(self, shown: Tensor, asked: Tensor, edges: Tensor | None) -> Tensor:
        """Scores [pairs, models, heads]; edges [pairs, models or 1, heads * columns]."""
        if edges is not None:
            shown = shown + self._by_head(edges)
        if self.vector is None:
            return (shown * asked).sum(-1).div(float(shown.shape[-1]) ** 0.5)
        return (torch.nn.functional.leaky_relu(shown + asked, self.slope) * self.vector).sum(-1)

    def message(self, sent: Tensor, edges: Tensor | None) -> Tensor:
        """The values that are weighted, [pairs, models, heads, channels]."""
        return sent + self._by_head(edges) if self.edges_sent and edges is not None else sent

    def combine(self, above: Tensor, below: Tensor) -> Tensor:
        """Outputs [rows, models, out] from numerators and denominators; without any sender it is 0."""
        rows = above / below.masked_fill(below == 0, 1).unsqueeze(-1)
        rows = rows.flatten(2) if self.concat else rows.mean(2)
        return rows if self.bias is None else rows + self.bias

    def _by_head(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], self.heads, rows.shape[2] // self.heads)


class Softmax:
    """Collects the senders of some rows, then sums them relative to the largest score, so that nothing overflows."""

    def __init__(self, scores: PairScores, *, asked: Tensor) -> None:
        self.scores, self.asked = scores, asked  # what the receiving rows ask for, [rows, models, heads, columns]
        self.parts: list[tuple[Tensor, Tensor, Tensor, Tensor | None]] = []

    def add(self, senders: Parts, owner: Tensor, messages: Messages) -> None:
        """Add the messages of pairs: their senders [pairs], and the row of each (ascending)."""
        owner = messages.spread(owner)
        score = self.scores.score(messages.spread(senders.shown), self.asked[owner], messages.edges)
        values = self.scores.message(messages.spread(senders.sent), messages.edges)
        self.parts.append((values, score, owner, messages.times))

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Largest score and denominator [rows, models, heads], and numerator [rows, models, heads, channels]."""
        rows, shape = len(self.asked), self.parts[0][0].shape[1:]
        highest = self.asked.new_full((rows, *shape[:2]), -torch.inf)
        for _, score, owner, _ in self.parts:
            highest.scatter_reduce_(0, owner.view(-1, 1, 1).expand_as(score), score, "amax")
        below, above = torch.zeros_like(highest), highest.new_zeros(rows, *shape)
        for values, score, owner, times in self.parts:
            share = (score - highest[owner]).exp_()
            if times is not None:
                share *= times.view(-1, 1, 1)
            start = starts_of(owner, rows)
            below += segment_sum(share.flatten(1), start).view_as(below)
            above += segment_sum((values * share.unsqueeze(-1)).flatten(1), start).view_as(above)
        return highest, below, above
