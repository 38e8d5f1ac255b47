"""What is known about records without the target: features, labels, edges and shadow answers, as a few columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import hstack as sparse_columns
from scipy.stats import rankdata
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.extmath import randomized_svd

from glasshouse.core.arrays import FloatArray, IntArray, as_array
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import ONE_CORE
from glasshouse.data import count_records, select
from glasshouse.evidence import Evidence

_KEPT = 128  # as many columns are kept as they are
_REDUCED = 64  # more become as many principal components
_BUCKETS = 1024  # of a random sketch that comes before them
_BUCKETS_OF_WORDS = 1 << 14
_NUMERIC = "fiubmM"
_HUGE = 1e15  # larger numbers have no square in single precision
_BLOCK = 4096  # columns at a time: images are wide, and a second copy of them is not needed


def few_columns(x: Any, random: np.random.Generator) -> FloatArray:
    """[N, F] numbers from features of any kind [N, ...]: at most 128 columns of them, at most 64 of text.

    Text and other objects are hashed, with their words, and token numbers of a dict are counted.
    """
    if hasattr(x, "tocsr"):
        return _reduced(x, random)
    if isinstance(x, Mapping) and (tokens := [values for values in x.values() if _tokens_of(values)]):
        rest = {name: values for name, values in x.items() if not _tokens_of(values)}
        words = _reduced(sparse_columns([_bag(as_array(values)) for values in tokens], format="csr"), random)
        return np.hstack([words, few_columns(rest, random)]) if rest else words
    frame = [x[name].to_numpy() for name in x.columns] if hasattr(x, "columns") else [x]
    parts = [as_array(part) for part in (x.values() if isinstance(x, Mapping) else frame)]
    numbers = [as_numbers(part) for part in parts if part.dtype.kind in _NUMERIC]
    texts = [part.reshape(len(part), -1) for part in parts if part.dtype.kind not in _NUMERIC]
    found = [np.empty((count_records(x), 0))]
    if numbers:
        found.append(_narrow(numbers[0] if len(numbers) == 1 else np.hstack(numbers), random))
    if texts:
        hasher = FeatureHasher(_BUCKETS_OF_WORDS, input_type="string")
        found.append(_reduced(hasher.transform(_tokens(row) for row in np.hstack(texts)), random))
    return np.hstack(found)


def as_numbers(x: Any) -> np.ndarray:
    """[N, F] of a numeric array or tensor of any shape; dates and durations are counted."""
    array = as_array(x)
    array = array.astype(np.int64) if array.dtype.kind in "mM" else array
    return array.reshape(len(array), -1)


def ranked(columns: FloatArray) -> FloatArray:
    """[N, F] ranks with mean 0 and variance 1, without constant columns: no outlier or unit has a weight of its own."""
    if not columns.shape[1]:
        return columns
    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return np.asarray(ranks[:, spread > 0] / spread[spread > 0])


def _tokens_of(values: Any) -> bool:
    """Whether an array of a dict holds sequences of whole numbers [N, L], as of a tokenizer: names, not amounts."""
    return len(values.shape) == 2 and values.shape[1] > 1 and as_array(values[:1]).dtype.kind in "iu"


def _bag(tokens: np.ndarray) -> csr_array:
    """[N, buckets] how often each record has each token, whatever its place."""
    places = tokens.ravel().astype(np.int64) % _BUCKETS_OF_WORDS
    starts = np.arange(len(tokens) + 1) * tokens.shape[1]
    return csr_array((np.ones(len(places)), places, starts), shape=(len(tokens), _BUCKETS_OF_WORDS))


def _tokens(row: Any) -> Iterator[str]:
    """The values of a row with the numbers of their columns, and the words of those that have several."""
    for column, value in enumerate(row.tolist()):
        text = str(value)
        yield f"{column}={text}"
        words = text.split()
        if len(words) > 1:
            yield from (f"{column}:{word}" for word in words)


def _narrow(x: np.ndarray, random: np.random.Generator) -> FloatArray:
    """[N, ≤ 128] of numbers [N, F]: as they are, or a random sketch and its principal components."""
    if x.shape[1] <= _KEPT:
        values = x.astype(np.float64)
        missing = np.isnan(values)
        gaps = missing[:, missing.any(axis=0)]  # who lacks a value may differ in kind
        return np.hstack([_filled(values, missing), gaps.astype(np.float64)])[:, : 2 * _KEPT]
    width = min(_BUCKETS, x.shape[1])
    sketch = np.zeros((len(x), width), dtype=np.float32)
    for start in range(0, x.shape[1], _BLOCK):
        values = x[:, start : start + _BLOCK].astype(np.float32)
        values = np.clip(_filled(values, np.isnan(values)), -_HUGE, _HUGE)
        values -= values.mean(axis=0)
        spread = values.std(axis=0)
        values /= np.where(spread > 0, spread, 1.0)
        if width == x.shape[1]:
            sketch[:, start : start + _BLOCK] = values
        else:
            sketch += (_signs(values.shape[1], width, random).T @ values.T).T
    return _components(sketch, random)


def _filled(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Medians instead of missing values, and the largest number instead of infinity."""
    if missing.any():
        known = np.where(missing.all(axis=0), 0.0, values)
        values = np.where(missing, np.nanmedian(known, axis=0), values)
    return np.asarray(np.nan_to_num(values))


def _reduced(x: Any, random: np.random.Generator) -> FloatArray:
    """[N, ≤ 64] of a sparse matrix, which is never made dense as a whole."""
    if x.shape[1] > _BUCKETS_OF_WORDS:
        x = x @ _signs(x.shape[1], _BUCKETS_OF_WORDS, random)
    return _components(csr_array(x).astype(np.float64), random)


def _components(x: Any, random: np.random.Generator) -> FloatArray:
    count = min(_REDUCED, *x.shape)
    with ONE_CORE:  # products of so few columns: a second core would mostly wait
        left, sizes, _ = randomized_svd(x, count, n_iter=2, random_state=int(random.integers(1 << 31)))
    return np.asarray(left * sizes)


def _signs(width: int, buckets: int, random: np.random.Generator) -> csr_array:
    """[width, buckets] a random sign in one random place per row (count sketch; Charikar et al., 2002)."""
    places = random.integers(buckets, size=width)
    signs = random.choice([-1.0, 1.0], size=width)
    return csr_array((signs, places, np.arange(width + 1)), shape=(width, buckets))


_LABELS = 32  # the most frequent ones get a column each
_VALUES = 20_000_000  # of features that are read at most; fewer records of wide features


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """What is known about records without the target; whatever is None is not known."""

    x: Any = None  # [n, ...] features of all records, as a `Population` holds them
    labels: np.ndarray | None = None  # [n] their labels; real numbers are the targets of a regression
    pairs: IntArray | None = None  # [2, E] which of them are joined by an edge, if they are nodes of a graph
    audited: IntArray | None = None  # [N] positions of the audited ones among all; all by default

    def readable(self, most: int) -> int:
        """How many records can be read at a limited cost: ``most``, or fewer of wide features."""
        if self.x is None or hasattr(self.x, "tocsr"):
            return most
        arrays = self.x.values() if isinstance(self.x, Mapping) else [self.x]
        width = sum(int(np.prod(one.shape[1:])) for one in arrays)
        width *= 1 if self.pairs is None else 2  # neighbours have features too
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
    """Columns about audited ``rows`` [R]: [R, F] features, and [R, A] answers of the shadow models and labels.

    Shadow models are trained on random halves that do not depend on the target's members.
    """
    at = rows if known.audited is None else known.audited[rows]
    features, answers = [np.empty((len(rows), 0))], [np.empty((len(rows), 0))]
    if evidence.models:
        margins = loss_to_margin(evidence.shadow_loss[:, rows])
        answers += [np.column_stack([margins.mean(axis=0), margins.std(axis=0)])]
    if evidence.shadow_logits is not None and evidence.models:
        features += [few_columns(evidence.shadow_logits[:, rows].mean(axis=0), random)]
    if known.x is not None:
        features += [few_columns(select(known.x, at), random)]
    if known.labels is not None:
        answers += [label_columns(known.labels)[at]]
    if known.pairs is not None:
        sizes = [part.shape[0] for part in (known.labels, known.x) if part is not None]
        around, degrees = _around(known.pairs, at, max([*sizes, int(at.max()) + 1]))
        answers += [np.log1p(degrees)[:, None]]
        if known.x is not None and not hasattr(known.x, "columns"):
            x = known.x if hasattr(known.x, "tocsr") else as_numbers(known.x)
            features += [few_columns(around @ x, random)]
        if known.labels is not None:
            features += [around @ label_columns(known.labels)]
    return ranked(np.hstack(features)), ranked(np.hstack(answers))


def label_columns(labels: np.ndarray) -> FloatArray:
    """[n, C] of the most frequent labels; the last of few classes follows from the others, and is kept anyway."""
    if labels.dtype.kind == "f":  # the targets of a regression
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
