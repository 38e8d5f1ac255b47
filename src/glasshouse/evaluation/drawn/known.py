"""What is known about records without the target: their features, labels and edges, and the shadow models' answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.evaluation.drawn.features import as_numbers, few_columns, ranked
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin
from glasshouse.population import select

__all__ = ["Known", "columns_of"]

_LABELS = 32  # the most frequent ones get a column each
_VALUES = 20_000_000  # of features that are read at most; fewer records of wide features


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """What is known about records without the target; whatever is None is not known.

    Args:
        x: [n, ...] features of all records, as a `Population` holds them.
        labels: [n] their labels; real numbers are the targets of a regression.
        pairs: [2, E] which of them are joined by an edge, if they are nodes of a graph.
        audited: [N] positions of the audited ones among all; all by default.

    Example:
        >>> Known(labels=np.array([0, 1])).x is None
        True
    """

    x: Any = None
    labels: np.ndarray | None = None
    pairs: IntArray | None = None
    audited: IntArray | None = None

    def positions(self, rows: IntArray) -> IntArray:
        """Positions of audited records among all."""
        return rows if self.audited is None else self.audited[rows]

    def readable(self, most: int) -> int:
        """How many records can be read at a limited cost: ``most``, or fewer of wide features."""
        if self.x is None or hasattr(self.x, "tocsr"):
            return most
        arrays = self.x.values() if isinstance(self.x, Mapping) else [self.x]
        width = sum(int(np.prod(one.shape[1:])) for one in arrays) * (
            1 if self.pairs is None else 2
        )  # neighbours have features too
        return min(most, max(500, _VALUES // max(1, width)))

    def pairs_of_audited(self) -> IntArray:
        """[2, E'] the edges between audited nodes, as positions among them."""
        if self.pairs is None:
            return np.empty((2, 0), dtype=np.int64)
        if self.audited is None:
            return self.pairs
        place = np.full(max(int(self.pairs.max(initial=0)), int(self.audited.max(initial=0))) + 1, -1)
        place[self.audited] = np.arange(len(self.audited))
        found = place[self.pairs]
        return found[:, (found >= 0).all(axis=0)]


def columns_of(
    known: Known, evidence: Evidence, rows: IntArray, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Columns for the blind baseline: [R, F] about the records, and [R, A] answers of the shadow models and labels.

    Shadow models are trained on random halves that do not depend on the target's members, so their answers are known
    without the target.

    Args:
        known: about the records.
        evidence: the answers.
        rows: [R] the audited records that are used.
        random: for projections.
    """
    at = known.positions(rows)
    features = [np.empty((len(rows), 0))]
    answers = [np.empty((len(rows), 0))]
    if evidence.models:
        margins = loss_to_margin(evidence.shadow_loss[:, rows])
        answers += [np.column_stack([margins.mean(axis=0), margins.std(axis=0)])]
    if evidence.shadow_logits is not None and evidence.models:
        features += [few_columns(evidence.shadow_logits[:, rows].mean(axis=0), random)]
    if known.x is not None:
        features += [few_columns(select(known.x, at), random)]
    if known.labels is not None:
        answers += [_one_hot(known.labels)[at]]
    if known.pairs is not None:
        sizes = [part.shape[0] for part in (known.labels, known.x) if part is not None]
        around, degrees = _around(known.pairs, at, max([*sizes, int(at.max()) + 1]))
        answers += [np.log1p(degrees)[:, None]]
        if known.x is not None and not hasattr(known.x, "columns"):
            x = known.x if hasattr(known.x, "tocsr") else as_numbers(known.x)
            features += [few_columns(around @ x, random)]
        if known.labels is not None:
            features += [around @ _one_hot(known.labels)]
    return ranked(np.hstack(features)), ranked(np.hstack(answers))


def _one_hot(labels: np.ndarray) -> FloatArray:
    """[n, C] of the most frequent labels; the last of few classes follows from the others, and is kept anyway.

    Real numbers, the targets of a regression, are one column as they are.
    """
    if labels.dtype.kind == "f":
        return np.asarray(labels[:, None])
    values, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_LABELS]
    return np.asarray(codes[:, None] == common, dtype=np.float64) if len(values) > 1 else np.empty((len(labels), 0))


def _around(pairs: IntArray, at: IntArray, count: int) -> tuple[csr_array, FloatArray]:
    """[R, n] equal weights of each record's neighbours, whatever the direction, and [R] how many it has."""
    ends = np.hstack([pairs, pairs[::-1]])
    ends = ends[:, ends[0] != ends[1]]
    joined = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count))[at]
    joined.data[:] = 1.0  # repeated edges were added up
    degrees = np.asarray(joined.sum(axis=1)).ravel()
    joined.data /= np.repeat(degrees, np.diff(joined.indptr))
    return joined, degrees
