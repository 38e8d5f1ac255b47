"""Ragged arrays in torch: lists of different lengths laid end to end, expanded and reduced without a Python loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.triton import narrow_sums

_NARROW = 64  # columns up to which a GPU sums a segment in blocks of rows; one thread a column would take too long


def expand(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """All positions of the ranges ``start[i] ... start[i] + count[i] - 1``, and the range i of each position.

    Example:
        >>> expand(torch.tensor([5, 0]), torch.tensor([2, 1]))
        (tensor([5, 6, 0]), tensor([0, 0, 1]))
    """
    owner = torch.repeat_interleave(count)
    offset = start - (count.cumsum(0) - count)
    return torch.arange(len(owner), device=start.device) + offset[owner], owner


def starts_of(owner: Tensor, segments: int) -> Tensor:
    """Where each segment starts in a sorted list of owners, [segments + 1].

    Example:
        >>> starts_of(torch.tensor([0, 0, 2]), 3)
        tensor([0, 2, 2, 3])
    """
    if owner.is_cuda:  # which would wait for the largest owner, to count
        return torch.searchsorted(owner, torch.arange(segments + 1, device=owner.device))
    start = owner.new_zeros(segments + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(owner, minlength=segments), 0, out=start[1:])
    return start


def bag_sum(table: Tensor, index: Tensor, start: Tensor, weight: Tensor | None = None) -> Tensor:
    """``out[i] = sum of weight[j] * table[index[j]] for j in start[i] ... start[i + 1] - 1``, [segments, width].

    Gather, weigh and sum are one pass: the gathered rows are never stored.

    Example:
        >>> bag_sum(torch.eye(2), torch.tensor([0, 1, 1]), torch.tensor([0, 1, 3]), torch.tensor([1.0, 2.0, 3.0]))
        tensor([[1., 0.],
                [0., 5.]])
    """
    if len(start) == 1 or len(index) == 0 or table.shape[1] == 0:
        return table.new_zeros(len(start) - 1, table.shape[1])
    return torch.nn.functional.embedding_bag(
        index, table, start, mode="sum", per_sample_weights=weight, include_last_offset=True
    )


def segment_sum(values: Tensor, start: Tensor) -> Tensor:
    """Sums of consecutive rows: values [rows, width] to [segments, width], always in the same order.

    Example:
        >>> segment_sum(torch.ones(3, 1), torch.tensor([0, 1, 3]))
        tensor([[1.],
                [2.]])
    """
    if 0 < values.shape[1] <= _NARROW and triton.usable(values):
        return narrow_sums(values, start)
    return bag_sum(values, torch.arange(len(values), device=values.device), start)


@dataclass(frozen=True, kw_only=True)
class SparseRows:
    """Features of n nodes, without zeros: those of node x are at ``start[x] ... start[x + 1] - 1``."""

    start: Tensor  # [n + 1]
    column: Tensor  # [entries]
    value: Tensor  # [entries]
    width: int

    @property
    def count(self) -> Tensor:
        """[n], features of each node."""
        return self.start.diff()

    def times(self, weight: Tensor) -> Tensor:
        """The features by a weight [models, width, out], [n, models * out]."""
        return bag_sum(flat(weight), self.column, self.start, self.value)


def sparse_rows(x: Tensor) -> SparseRows:
    """The non-zero features of x [n, width]."""
    row, column = x.nonzero(as_tuple=True)
    return SparseRows(start=starts_of(row, len(x)), column=column, value=x[row, column], width=x.shape[1])


def flat(weight: Tensor) -> Tensor:
    """A weight [models, width, out] with one row per input, [width, models * out]."""
    return weight.transpose(0, 1).reshape(weight.shape[1], -1)


def lookup(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of the wanted values in sorted keys, and whether each is there; positions of absent ones are arbitrary.

    Example:
        >>> lookup(torch.tensor([2, 5, 9]), torch.tensor([5, 6]))
        (tensor([1, 2]), tensor([ True, False]))
    """
    if len(keys) == 0:
        return torch.zeros_like(wanted), torch.zeros_like(wanted, dtype=torch.bool)
    position = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
    return position, keys[position] == wanted


def distinct(values: Tensor) -> Tensor:
    """The distinct values of a list, ascending.

    Example:
        >>> distinct(torch.tensor([3, 1, 3]))
        tensor([1, 3])
    """
    ordered, _ = values.sort()
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]


def slices_within(cost: Tensor, limit: float) -> Iterator[slice]:
    """Consecutive slices whose costs add up to about the limit at most; an item above it is a slice of its own.

    Example:
        >>> list(slices_within(torch.tensor([1.0, 1.0, 5.0, 1.0]), 2.0))
        [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    total = cost.double().cumsum(0).cpu()
    first, spent = 0, 0.0
    while first < len(total):
        last = int(torch.searchsorted(total, spent + limit, right=True))
        last = max(last, first + 1)
        yield slice(first, last)
        first, spent = last, float(total[last - 1])
