"""What a target answers about a node's kin: the other nodes, weighted by how similar their features are to the node's.

A model answers better about a node that it was trained on, and also about nodes similar to it. Besides, every model
happens to be surer in some regions than other models. Both show in its answers about the node's kin, and neither is the
node's own membership. So the answer that the kin predict can be subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from glasshouse.arrays import FloatArray, IntArray

__all__ = ["Kin"]

_PENALTY = 0.3  # of the ridge; values from 0.1 to 1 work equally well on simulated targets
_CONSTANT = 0.3  # what all nodes have in common, whatever their features
_FURTHEST = 10.0  # a surprise of more standard deviations counts as this many
_ROOM = 100_000_000  # numbers kept, 0.8 GB: all pairs of 10 000 nodes, or 2 600 columns for the nodes of GitHub
_COMPONENTS = 1024  # of the features, if there is no memory for all: more would take many minutes
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class Kin:
    """Ridge regression on the features of nodes, one slope per class, prepared for the answers of any target.

    Confidence in one class is doubt in the others: what raises the margin of a node of one class lowers that of a
    similar node of another class. So the product of two nodes' features counts in full if their labels agree, and
    -1 / (C - 1) times if they do not.

    Args:
        fit: matrices whose product [n, n] maps answers to the fitted values of the regression.
        own: [n] the weight of a node's own answer in its fitted value.

    Example:
        >>> kin = Kin.of(np.array([[1.0], [1.0], [-1.0], [-1.0]]), np.array([0, 0, 0, 1]))
        >>> kin.expected(np.array([1.0, 0.0, 0.0, 0.0])).round(2)[:2]  # node 0's own answer is left out
        array([0.  , 0.76])
    """

    fit: tuple[FloatArray, ...]
    own: FloatArray

    @classmethod
    def of(cls, features: FloatArray, labels: IntArray) -> Kin:
        """From the features [n, D] and labels [n] of all nodes."""
        centred = features - features.mean(axis=0)
        centred = centred / max(float(np.sqrt((centred**2).sum(axis=1).mean())), _LEAST)
        codes = _codes(int(labels.max()) + 1)[labels]
        count, width = len(centred), (centred.shape[1] + 1) * codes.shape[1]
        with threadpool_limits(1, user_api="blas"):  # so that the result does not depend on the number of cores
            if count <= width and count**2 <= _ROOM:
                return _by_pairs(centred, codes)
            return _by_columns(_columns(centred, codes, most=min(width, _ROOM // count)))

    def expected(self, surprise: FloatArray) -> FloatArray:
        """The surprise that each node's kin predict for it, [n]; the node's own answer is left out.

        Args:
            surprise: [n] how much surer the target is of each node than its references, in standard deviations.
        """
        surprise = np.clip(surprise, -_FURTHEST, _FURTHEST)
        fitted = surprise
        with threadpool_limits(1, user_api="blas"):
            for matrix in reversed(self.fit):
                fitted = matrix @ fitted
        return np.asarray((fitted - self.own * surprise) / np.maximum(1 - self.own, _LEAST))


def _by_pairs(centred: FloatArray, codes: FloatArray) -> Kin:
    """For fewer nodes than columns."""
    alike = (centred @ centred.T + _CONSTANT) * (codes @ codes.T)
    alike[np.diag_indices_from(alike)] += _PENALTY
    fit = -_PENALTY * cho_solve(cho_factor(alike, overwrite_a=True), np.eye(len(alike)), overwrite_b=True)
    fit[np.diag_indices_from(fit)] += 1
    return Kin((fit,), np.diag(fit).copy())


def _by_columns(columns: FloatArray) -> Kin:
    """For fewer columns than nodes, or too many pairs of nodes."""
    products = columns.T @ columns
    products[np.diag_indices_from(products)] += _PENALTY
    half = solve_triangular(np.linalg.cholesky(products), columns.T, lower=True)
    return Kin((half.T, half), (half**2).sum(axis=0))


def _codes(classes: int) -> FloatArray:
    """Vectors [C, C - 1] of length 1; any two have the product -1 / (C - 1). For a single class [[1]]."""
    if classes == 1:
        return np.ones((1, 1))
    corners = np.sqrt(classes / (classes - 1)) * (np.eye(classes) - 1 / classes)
    return np.asarray(corners @ np.linalg.svd(corners)[2][: classes - 1].T)


def _columns(centred: FloatArray, codes: FloatArray, *, most: int) -> FloatArray:
    """Columns [n, r], at most so many, whose products approximate those of features times those of codes."""
    features = max(most // codes.shape[1] - 1, 1)
    if centred.shape[1] > features:
        left, size, _ = randomized_svd(centred, min(features, _COMPONENTS), n_iter=2, random_state=0)
        centred = left * size
    described = np.column_stack([centred, np.full(len(centred), np.sqrt(_CONSTANT))])
    return np.asarray((described[:, :, None] * codes[:, None, :]).reshape(len(centred), -1))
