"""Symmetric proposals: random sets of indicators to flip, and how large they should be."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.arrays import FloatArray, IntArray

__all__ = ["Block", "draw_block", "tuned"]

_WANTED = 0.3  # the middle of the acceptance rates 0.2 to 0.4
_LARGEST = 0.5


class Block(NamedTuple):
    """Several proposals, drawn in advance; proposal i flips ``nodes[start[i]:start[i + 1]]``."""

    start: IntArray  # [steps + 1]
    nodes: IntArray
    log_uniform: FloatArray  # [steps], accepted if below the log ratio


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


def tuned(share: float, acceptance_rate: float, *, smallest: float) -> float:
    """A larger share after many acceptances, a smaller one after few; between ``smallest`` and a half.

    Example:
        >>> tuned(0.1, 0.3, smallest=0.01)
        0.1
    """
    return float(np.clip(share * np.exp(2 * (acceptance_rate - _WANTED)), min(smallest, _LARGEST), _LARGEST))
