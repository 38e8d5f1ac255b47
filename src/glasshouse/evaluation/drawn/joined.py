"""Whether members are joined to members: in a random draw the edges of a graph do not depend on who is a member."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.evaluation.intervals import Interval
from glasshouse.randomness import generator

__all__ = ["Joined", "joined_members"]

_PERMUTATIONS = 999
_MOST = 50_000  # edges; a random choice of them is as exact, and so many show a difference of one point
_BLOCK = 1 << 23  # ends of edges that are looked up at once


@dataclass(frozen=True, kw_only=True)
class Joined:
    """How many edges join two members, and how many two others.

    Args:
        members: share of the edges between audited nodes that join two members.
        expected_members: 95 % of random draws of as many members have a share in this interval.
        others: share of the edges that join two others.
        expected_others: the same for them.
        p_value: how often a random draw is at least as far from the average draw; exact, by permutation.
        edges: how many edges were used.
    """

    members: float
    expected_members: Interval
    others: float
    expected_others: Interval
    p_value: float
    edges: int

    def sentence(self) -> str:
        """The shares in words, with those of a random draw."""
        usual = _range(self.expected_members)
        return (
            f"{100 * self.members:.1f} % of the edges join two members (a random draw: {usual}) "
            f"and {100 * self.others:.1f} % two others ({_range(self.expected_others)})"
        )


def joined_members(pairs: IntArray, members: BoolArray, *, seed: int) -> Joined | None:
    """Test by permutation whether edges depend on who is a member; None if there is no edge.

    The statistic is that of Chen and Friedman (2017): how far the two counts, edges of two members and edges of two
    others, are from their means, in units of their covariance. It finds groups that are joined within themselves, and
    members with unusually many edges. Means and covariance are those of permuted members on the same edges, so hubs and
    skewed degrees are taken into account. Nodes without an edge are left out; under a random draw the others are still
    in random order.

    Args:
        pairs: [2, E] joined nodes, as positions among the audited ones; direction and repetition do not matter.
        members: [N] members of the target.
        seed: of the permutations.

    Example:
        >>> ring = np.array([np.arange(40), (np.arange(40) + 1) % 40])
        >>> found = joined_members(ring, np.arange(40) < 20, seed=0)
        >>> found.members, found.p_value
        (0.475, 0.001)
    """
    random = generator(seed, "joined members")
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    keys = np.unique((low * len(members) + high)[low != high])
    if len(keys) > _MOST:
        keys = random.choice(keys, size=_MOST, replace=False)
    if not len(keys):
        return None
    nodes, ends = np.unique(np.stack([keys // len(members), keys % len(members)]), return_inverse=True)
    own = members[nodes]
    counts = np.empty((1 + _PERMUTATIONS, 2))
    counts[0] = _within(own[None], ends.reshape(2, -1))[0]
    step = max(1, _BLOCK // len(keys))
    for start in range(1, len(counts), step):
        drawn = random.permuted(np.tile(own, (min(step, len(counts) - start), 1)), axis=1)
        counts[start : start + step] = _within(drawn, ends.reshape(2, -1))
    far = _distances(counts)
    expected = np.quantile(counts[1:] / len(keys), [0.025, 0.975], axis=0).T.tolist()
    return Joined(
        members=float(counts[0, 0] / len(keys)),
        expected_members=Interval(*expected[0]),
        others=float(counts[0, 1] / len(keys)),
        expected_others=Interval(*expected[1]),
        p_value=float(np.mean(far >= far[0] * (1 - 1e-9) - 1e-9)),
        edges=len(keys),
    )


def _within(drawn: BoolArray, ends: IntArray) -> FloatArray:
    """[P, 2] edges of two members and edges of two others, for members [P, N] and edges [2, E]."""
    a, b = drawn[:, ends[0]], drawn[:, ends[1]]
    both, any_of = (a & b).sum(axis=1), (a | b).sum(axis=1)
    return np.stack([both, ends.shape[1] - any_of], axis=1).astype(np.float64)


def _distances(counts: FloatArray) -> FloatArray:
    """[P] squared Mahalanobis distances from the mean; if all degrees are equal, the two counts are one."""
    centred = counts - counts.mean(axis=0)
    precision = np.linalg.pinv(centred.T @ centred / len(counts), rcond=1e-9, hermitian=True)
    return np.asarray(np.einsum("pi,ij,pj->p", centred, precision, centred))


def _range(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
