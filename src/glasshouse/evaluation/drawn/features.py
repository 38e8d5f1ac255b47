"""Features of any kind as a few columns: what a learner of membership can use, at a cost that has a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import hstack as sparse_columns
from scipy.stats import rankdata
from sklearn.feature_extraction import FeatureHasher
from sklearn.utils.extmath import randomized_svd

from glasshouse.arrays import FloatArray
from glasshouse.population import count_records

__all__ = ["as_numbers", "few_columns", "ranked"]

_KEPT = 128  # as many columns are kept as they are
_REDUCED = 64  # more become as many principal components
_BUCKETS = 1024  # of a random sketch that comes before them
_BUCKETS_OF_WORDS = 1 << 14
_HUGE = 1e15  # larger numbers have no square in single precision
_BLOCK = 4096  # columns at a time: images are wide, and a second copy of them is not needed


def few_columns(x: Any, random: np.random.Generator) -> FloatArray:
    """[N, F] numbers from features of any kind: at most 128 columns of them, at most 64 of text.

    Args:
        x: [N, ...] a numpy array, a torch tensor, a scipy sparse matrix, a data frame or a dict of arrays; text and
            other objects are hashed, with their words, and token numbers of a dict are counted.
        random: for the projections of wide features.

    Example:
        >>> random = np.random.default_rng(0)
        >>> few_columns(np.ones((5, 2, 3)), random).shape, few_columns(np.array([["a"], ["b c"]]), random).shape
        ((5, 6), (2, 2))
    """
    if hasattr(x, "tocsr"):
        return _reduced(x.tocsr(), random)
    if isinstance(x, Mapping) and (tokens := [values for values in x.values() if _tokens_of(values)]):
        rest = {name: values for name, values in x.items() if not _tokens_of(values)}
        words = _reduced(sparse_columns([_bag(_as_array(values)) for values in tokens], format="csr"), random)
        return np.hstack([words, few_columns(rest, random)]) if rest else words
    parts = [_as_array(part) for part in _parts(x)]
    numbers = [as_numbers(part) for part in parts if _numeric(part)]
    texts = [part.reshape(len(part), -1) for part in parts if not _numeric(part)]
    found = [np.empty((count_records(x), 0))]
    if numbers:
        found.append(_narrow(numbers[0] if len(numbers) == 1 else np.hstack(numbers), random))
    if texts:
        hasher = FeatureHasher(_BUCKETS_OF_WORDS, input_type="string")
        found.append(_reduced(hasher.transform(_tokens(row) for row in np.hstack(texts)), random))
    return np.hstack(found)


def as_numbers(x: Any) -> np.ndarray:
    """[N, F] of a numeric array or tensor of any shape; dates and durations are counted."""
    array = _as_array(x)
    array = array.astype(np.int64) if array.dtype.kind in "mM" else array
    return array.reshape(len(array), -1)


def ranked(columns: FloatArray) -> FloatArray:
    """[N, F] ranks with mean 0 and variance 1, without constant columns: no outlier or unit has a weight of its own.

    Example:
        >>> ranked(np.array([[1.0, 5.0], [2.0, 5.0], [1e300, 5.0]])).ravel().round(2)
        array([-1.22,  0.  ,  1.22])
    """
    if not columns.shape[1]:
        return columns
    ranks = rankdata(columns, axis=0)
    ranks -= ranks.mean(axis=0)
    spread = ranks.std(axis=0)
    return np.asarray(ranks[:, spread > 0] / spread[spread > 0])


def _parts(x: Any) -> list[Any]:
    """The columns of a data frame, the arrays of a dict, or the array itself."""
    if isinstance(x, Mapping):
        return list(x.values())
    if hasattr(x, "columns"):
        return [x[name].to_numpy() for name in x.columns]
    return [x]


def _tokens_of(values: Any) -> bool:
    """Whether an array of a dict holds sequences of whole numbers [N, L], as of a tokenizer: names, not amounts."""
    return len(values.shape) == 2 and values.shape[1] > 1 and _as_array(values[:1]).dtype.kind in "iu"


def _bag(tokens: np.ndarray) -> csr_array:
    """[N, buckets] how often each record has each token, whatever its place."""
    rows = np.repeat(np.arange(len(tokens)), tokens.shape[1])
    places = tokens.reshape(-1).astype(np.int64) % _BUCKETS_OF_WORDS
    shape = (len(tokens), _BUCKETS_OF_WORDS)
    return csr_array((np.ones(len(places)), (rows, places)), shape=shape)


def _as_array(x: Any) -> np.ndarray:
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.float() if x.is_floating_point() else x  # numpy has no bfloat16
    return np.asarray(x)


def _numeric(array: np.ndarray) -> bool:
    return array.dtype.kind in "fiubmM"


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
    left, sizes, _ = randomized_svd(x, count, n_iter=2, random_state=int(random.integers(1 << 31)))
    return np.asarray(left * sizes)


def _signs(width: int, buckets: int, random: np.random.Generator) -> csr_array:
    """[width, buckets] a random sign in one random place per row (count sketch; Charikar et al., 2002)."""
    places = random.integers(buckets, size=width)
    signs = random.choice([-1.0, 1.0], size=width)
    return csr_array((signs, places, np.arange(width + 1)), shape=(width, buckets))
