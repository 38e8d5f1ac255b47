"""Whether members are joined to members: in a random draw the edges of a graph do not care who is a member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.evaluation.intervals import Interval
from glasshouse.randomness import generator

__all__ = ["Joined", "joined_members"]

_PERMUTATIONS = 999
_MOST = 50_000  # edges; a random choice of them is as exact, and such a number shows a difference of one point
_BLOCK = 1 << 23  # ends of edges that are looked up at once


@dataclass(frozen=True, kw_only=True)
class Joined:
    """How many edges join two members or two others.

    Args:
        share: of the edges between audited nodes.
        expected: 95 % of random draws of as many members have a share in this interval.
        p_value: how often a random draw is at least as far out, on either side; exact, by permutation.
        edges: how many edges were used.
    """

    share: float
    expected: Interval
    p_value: float
    edges: int


def joined_members(pairs: IntArray, members: BoolArray, *, seed: int) -> Joined | None:
    """Test by permutation whether edges join equals; None if there is no edge.

    The share is compared with that of permuted members on the same edges, so hubs and skewed degrees are taken into
    account. Nodes without an edge are left out; under a random draw the others are still in random order.

    Args:
        pairs: [2, E] joined nodes, as positions among the audited ones; direction and repetition do not matter.
        members: [N] members of the target.
        seed: of the permutations.

    Example:
        >>> ring = np.array([np.arange(40), (np.arange(40) + 1) % 40])
        >>> found = joined_members(ring, np.arange(40) < 20, seed=0)
        >>> found.share, found.p_value
        (0.95, 0.002)
    """
    random = generator(seed, "joined members")
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    keys = np.unique((low * len(members) + high)[low != high])
    if len(keys) > _MOST:
        keys = random.choice(keys, size=_MOST, replace=False)
    if not len(keys):
        return None
    nodes, ends = np.unique(np.stack([keys // len(members), keys % len(members)]), return_inverse=True)
    a, b = ends.reshape(2, -1)
    own = members[nodes]
    shares = np.empty(1 + _PERMUTATIONS)
    shares[0] = np.mean(own[a] == own[b])
    step = max(1, _BLOCK // len(keys))
    for start in range(1, len(shares), step):
        drawn = random.permuted(np.tile(own, (min(step, len(shares) - start), 1)), axis=1)
        shares[start : start + step] = np.mean(drawn[:, a] == drawn[:, b], axis=1)
    above, below = np.mean(shares >= shares[0]), np.mean(shares <= shares[0])
    return Joined(
        share=float(shares[0]),
        expected=Interval(*np.quantile(shares[1:], [0.025, 0.975]).tolist()),
        p_value=float(min(1.0, 2 * min(above, below))),
        edges=len(keys),
    )
