"""Symmetric proposals: random sets of indicators to flip, and how large they should be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from glasshouse.arrays import FloatArray, IntArray

__all__ = ["Block", "changed_rows", "draw_block", "tuned"]

_WANTED = 0.3  # the middle of the acceptance rates 0.2 to 0.4
_LARGEST = 0.5


class Block(NamedTuple):
    """Several proposals, drawn in advance; proposal i flips ``nodes[start[i]:start[i + 1]]``."""

    start: IntArray  # [steps + 1]
    nodes: IntArray
    log_uniform: FloatArray  # [steps], accepted if below the log ratio

    def steps(self) -> Iterator[tuple[IntArray, float]]:
        """The nodes of every proposal, and what its log ratio must exceed."""
        for first, last, bar in zip(self.start[:-1], self.start[1:], self.log_uniform, strict=True):
            yield self.nodes[first:last], float(bar)


def draw_block(source: np.random.Generator, candidates: IntArray, *, share: float, steps: int) -> Block:
    """Draw proposals that flip each candidate with probability ``share``, and at least one of them.

    Their size is random on purpose: a fixed even size could never reach a mask with one more member.

    Example:
        >>> draw_block(np.random.default_rng(0), np.arange(10), share=0.2, steps=3).start
        array([0, 2, 3, 4])
    """
    least = min(1, len(candidates))
    sizes = np.maximum(source.binomial(len(candidates), share, steps), least)
    sets = [source.choice(candidates, size, replace=False, shuffle=False) for size in sizes]
    return Block(
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        nodes=np.concatenate(sets).astype(np.int64) if sets else np.zeros(0, np.int64),
        log_uniform=np.log1p(-source.random(steps)),
    )


def changed_rows(block: Block, start: IntArray) -> float:
    """How many rows a proposal of this block changes if its flips are made one by one, on average.

    A flip changes the rows of all members within two steps. Where half of the nodes are members, that is about a
    quarter of the two-step paths of the whole graph; a node that two paths reach is counted twice.

    Args:
        block: proposals on n nodes.
        start: [n + 1], where the neighbours of each node begin in a list of all edges.

    Example:
        >>> ring = 2 * np.arange(11)
        >>> changed_rows(Block(np.array([0, 3]), np.array([0, 5, 7]), np.zeros(1)), ring)
        3.0
    """
    degree = np.diff(start).astype(np.float64)
    nodes, paths = max(len(degree), 1), float((degree**2).sum())
    return len(block.nodes) / max(len(block.log_uniform), 1) * min(paths / nodes / 4, nodes)


def tuned(share: float, acceptance_rate: float, *, smallest: float) -> float:
    """A larger share after many acceptances, a smaller one after few; between ``smallest`` and a half.

    Example:
        >>> tuned(0.1, 0.3, smallest=0.01)
        0.1
    """
    return float(np.clip(share * np.exp(2 * (acceptance_rate - _WANTED)), min(smallest, _LARGEST), _LARGEST))
