"""What a target answers about a node's kin: the other nodes, weighted by how similar their features are to the node's.

A model answers better about a node that it was trained on, and also about nodes similar to it. Besides, every model
happens to be surer in some regions than other models. Both show in its answers about the node's kin, and neither is the
node's own membership. So the answer that the kin predict can be subtracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.graph.attacks.stacking.similarity import Described, Similarity, compact
from glasshouse.graph.attacks.stacking.solving import Solver
from glasshouse.randomness import generator

__all__ = ["Kin"]

_PENALTY = 0.3  # of the ridge; values from 0.1 to 1 work equally well on simulated targets
_CONSTANT = 0.3  # what all nodes have in common, whatever their features
_FURTHEST = 10.0  # a surprise of more standard deviations counts as this many
_PROBES = (32, 128)  # random signs per node, at least and at most, that give the weight of its own answer
_SIGNS = 400_000  # of all nodes, unless these are fewer than the least per node
_TOLERANCE = 3e-3  # of what the regression leaves unsolved
_ROUGHLY = 2e-2  # the same where random signs cause larger errors


@dataclass(frozen=True, eq=False)
class Kin:
    """Ridge regression on the features of nodes, one slope per class, prepared for the answers of any target.

    Confidence in one class is doubt in the others: what raises the margin of a node of one class lowers that of a
    similar node of another class. So the product of two nodes' features counts in full if their labels agree, and
    -1 / (C - 1) times if they do not.

    Time and memory grow with the nodes and their non-zero features. Each set of features and the work on them take at
    most 256 MiB (`similarity.ROOM`); sparse features on a GPU twice that.

    Args:
        solver: applies the inverse of (products [n, n] of the features of all pairs of nodes + penalty).
        order: [n] the nodes in order of class.
        own: [n] the weight of a node's own answer in its fitted value, nodes in order of class.

    Example:
        >>> kin = Kin.of(np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([0, 0, 0, 1]))
        >>> abs(kin.expected(np.array([1.0, 0.0, 0.0, 0.0]))[:2]).round(2)  # node 0's own answer is left out
        array([0.  , 0.76])
    """

    solver: Solver
    order: NDArray[np.intp]
    own: FloatArray

    @classmethod
    def of(cls, features: Any, labels: IntArray) -> Kin:
        """From features [n, D] (numpy, torch or scipy) and labels [n] of all nodes."""
        return cls.described([Described.of(compact(features), labels)], labels)

    @classmethod
    def described(cls, described: Sequence[Described], labels: IntArray) -> Kin:
        """From one or several sets of features and labels [n] of all nodes."""
        similarity = Similarity.of(described, labels, constant=_CONSTANT)
        solver = Solver.of(similarity, len(labels), penalty=_PENALTY)
        return cls(solver, np.argsort(labels, kind="stable"), _own(solver, similarity.diagonal))

    def expected(self, surprise: FloatArray) -> FloatArray:
        """The surprise that each node's kin predict for it, [n] or [T, n]; the node's own answer is left out.

        Args:
            surprise: how much surer a target is of each node than its references, in standard deviations: of one target
                [n], or of T targets [T, n], which takes a fraction of the time of one after the other.
        """
        rows = np.clip(np.atleast_2d(surprise), -_FURTHEST, _FURTHEST)
        beyond = np.empty_like(rows)
        solved = self.solver.solved(rows[:, self.order].T, tolerance=_TOLERANCE).T
        beyond[:, self.order] = _PENALTY * solved / (1 - self.own)
        return np.asarray((rows - beyond).reshape(np.shape(surprise)))


def _own(solver: Solver, diagonal: FloatArray) -> FloatArray:
    """The weight [n] of a node's own answer in its fitted value: 1 - penalty * (the inverse's diagonal).

    The inverse's diagonal is the mean over random signs of sign * (the inverse applied to signs), so it is right on
    average; it differs from the true one by about 5 % with 128 signs and 10 % with 32. Up to 128 nodes it is exact.

    Args:
        solver: applies the inverse.
        diagonal: [n] the similarity of every node with itself.
    """
    count, (least, most) = len(diagonal), _PROBES
    if count <= most:
        inverse = np.diag(solver.solved(np.eye(count), tolerance=_TOLERANCE))
    else:
        probes = int(np.clip(_SIGNS // count, least, most))
        signs = generator(0, "probes").choice([-1.0, 1.0], size=(count, probes))
        inverse = (signs * solver.solved(signs, tolerance=_ROUGHLY)).mean(axis=1)
    return np.asarray(1 - _PENALTY * np.clip(inverse, 1 / (diagonal + _PENALTY), 1 / _PENALTY))
