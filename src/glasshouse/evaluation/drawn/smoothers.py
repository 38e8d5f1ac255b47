"""Quick learners whose out-of-fold scores are linear in the labels, so that hundreds of labellings cost one fit.

What they learn from the columns alone (a basis, random cells) does not depend on the labels. The scores of a fold are
therefore a fixed matrix times the labels of the other folds, and a permutation test refits all of its permutations in a
few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve
from scipy.sparse import csr_array

from glasshouse.arrays import FloatArray, IntArray

__all__ = ["Smoother", "cells", "ridge", "waves"]

Smoother = Callable[[FloatArray, FloatArray, IntArray, np.random.Generator], FloatArray]

_WAVES = 256  # or a quarter of the records
_FERNS = 64
_SPLITS = 4  # of one fern: sixteen cells
_WEIGHT = 5.0  # records of average membership that each cell starts with


def ridge(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """[N, P] out-of-fold scores of ridge regression.

    The penalty, 20 per column, is near the best one if the columns together explain a twentieth of the variance: a weak
    dependence is what has to be found, a strong one is found anyway.

    Args:
        columns: [N, F], each with mean 0 and variance 1.
        labels: [N, P] labellings, each with mean 0.
        folds: [N] the fold of each record.
        random: not used; ridge regression has no random choice.

    Example:
        >>> columns = np.array([[-1.0], [1.0], [-1.0], [1.0]])
        >>> ridge(columns, columns, np.array([0, 0, 1, 1]), np.random.default_rng(0)).ravel().round(2)
        array([-0.09,  0.09, -0.09,  0.09])
    """
    return _penalised(columns, labels, folds, penalty=20.0 * columns.shape[1])


def waves(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """The same with random Fourier features: smooth functions of all columns together (Rahimi and Recht, 2007)."""
    width = np.sqrt(columns.shape[1])  # so that two random records are about one length scale apart
    count = min(_WAVES, 1 + len(columns) // 4)
    directions = random.normal(size=(columns.shape[1], count)) / width
    basis = np.cos(columns @ directions + random.uniform(0, 2 * np.pi, size=count)) * np.sqrt(2)
    return _penalised(basis - basis.mean(axis=0), labels, folds, penalty=0.2 * len(columns))


def cells(columns: FloatArray, labels: FloatArray, folds: IntArray, random: np.random.Generator) -> FloatArray:
    """Mean label of the other folds' records in the same cell, over random ferns (Özuysal et al., 2010).

    A fern is a tree with the same random split in a whole level. Jumps and interactions of a few columns are found, and
    copies of one record always share their cells.
    """
    count, width = columns.shape
    chosen = random.integers(width, size=(_FERNS, _SPLITS))
    at = random.integers(count, size=(_FERNS, _SPLITS))
    code = np.arange(_FERNS) * 2**_SPLITS + np.zeros((count, 1), dtype=np.int64)  # [N, ferns] number of the cell
    for split in range(_SPLITS):
        side = columns[:, chosen[:, split]] >= columns[at[:, split], chosen[:, split]]  # some record's value
        code += side * 2**split
    shape = (count, _FERNS * 2**_SPLITS)
    inside = csr_array((np.ones(code.size), code.ravel(), np.arange(count + 1) * _FERNS), shape=shape)
    parts = [inside[folds == fold] for fold in range(folds.max() + 1)]
    sums = [part.T @ labels[folds == fold] for fold, part in enumerate(parts)]
    counts = [part.sum(axis=0) for part in parts]
    whole, records = sum(sums), sum(counts)
    scores = np.empty_like(labels)
    for fold, part in enumerate(parts):
        means = (whole - sums[fold]) / (records - counts[fold] + _WEIGHT)[:, None]
        scores[folds == fold] = part @ means
    return scores


def _penalised(basis: FloatArray, labels: FloatArray, folds: IntArray, *, penalty: float) -> FloatArray:
    """[N, P] out-of-fold scores of ridge regression on a basis [N, D] with column means near 0."""
    moments, sides = basis.T @ basis, basis.T @ labels
    moments[np.diag_indices_from(moments)] += penalty
    scores = np.empty_like(labels)
    for fold in range(folds.max() + 1):
        own = folds == fold
        mine, theirs = basis[own], labels[own]
        weights = solve(moments - mine.T @ mine, sides - mine.T @ theirs, assume_a="pos")
        scores[own] = mine @ weights
    return scores
