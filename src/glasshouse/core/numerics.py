"""Log-space mathematics in one place, without loss of digits; and the gate that no NaN of a model passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.threads import cached_blocks, over_records

_ZERO_MARKS = np.log([float(np.finfo(kind).eps) for kind in (np.float64, np.float32, np.float16)])
_NAMED = 5  # records that a refusal names
_ABOUT_MODELS = (
    "Check the model and its inputs there. Where it is the logarithm of a probability of 0, give the probabilities "
    "themselves."
)
_SMALLEST_MARGIN = -1e100  # a loss of 1e300 is finite, but its square is not
_LARGEST_MARGIN = -float(np.log(np.finfo(np.float64).tiny))  # 708.4: a loss any smaller has no digits left


def check_finite(
    values: NDArray[Any],
    ids: TextArray,
    *,
    place: str,
    labels: IntArray | None = None,
    models: bool = False,
    advice: str = _ABOUT_MODELS,
) -> None:
    """The gate for every answer of every kind of model, function and file: NaN and infinity are refused.

    The values are [N, …] of one model, or with ``models`` [K, N, …] of several. With labels [N] they are logits [N, C]:
    minus infinity then passes for a class that is not the record's own, if some other class is finite.
    """
    for k, one in enumerate(values) if models else [(None, values)]:
        wrong = not_finite(one, labels)
        if wrong.any():
            refuse_not_finite(wrong, ids, place=place if k is None else f"{place}: shadow model {k}", advice=advice)


def not_finite(values: NDArray[Any], labels: IntArray | None = None) -> BoolArray:
    """[N] whether a record has an answer that is refused, by the rule of `check_finite`; for answers in batches."""
    flat = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
    fine = np.isfinite(flat)
    if fine.all():
        return np.zeros(len(flat), dtype=np.bool_)
    if labels is None or values.ndim != 2 or values.shape[1] <= int(labels.max(initial=0)):
        return np.asarray(~fine.all(axis=1))
    own = fine[np.arange(len(flat)), labels]
    return np.asarray(~(fine | np.isneginf(flat)).all(axis=1) | ~own | (fine.sum(axis=1) == own))


def refuse_not_finite(wrong: BoolArray, ids: TextArray, *, place: str, advice: str = _ABOUT_MODELS) -> None:
    """Refuse the records [N] of a mask, with how many they are and the first ids."""
    shown = [repr(str(name)) for name in ids[wrong][: _NAMED + 1]]
    shown[_NAMED:] = ["…"] * (len(shown) > _NAMED)
    raise InputError(
        f"{place}: NaN or infinite for {int(wrong.sum())} of {len(wrong)} records: {', '.join(shown)}. {advice}"
    )


def finite_logits(logits: FloatArray) -> FloatArray:
    """Logits [..., C] with minus infinity, which passes the gate for other classes, as an exact 0 counts."""
    if np.isfinite(logits).all():
        return logits
    return np.where(np.isneginf(logits), logits.max(axis=-1, keepdims=True) + _ZERO_MARKS[0], logits)


def distinct(codes: IntArray) -> IntArray:
    """The different ones of whole numbers [E], rising: `numpy.unique`, several times as fast for tens of millions."""
    ordered = np.sort(codes)
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return np.asarray(ordered[first])


def log_mean_exp(values: FloatArray, *, where: BoolArray | None = None) -> FloatArray:
    """Log of the mean of exp over the first axis, [K, N] -> [N], without overflow, of entries ``where`` [K, N]."""
    result = np.empty(values.shape[1])
    for some in cached_blocks(values.shape[1], models=len(values)):
        block = values[:, some]
        if where is None:
            count: Any = block.shape[0]
        else:
            chosen = where[:, some]
            count = chosen.sum(axis=0)
            block = np.where(chosen, block, -np.inf)
        largest = block.max(axis=0)
        apart = block - largest
        result[some] = largest + np.log(np.exp(apart, out=apart).sum(axis=0)) - np.log(count)
    return result


def logits_from_probabilities(probabilities: ArrayLike, *, underflows: bool = False) -> FloatArray:
    """Log-probabilities [N, C], usable wherever logits are; the probabilities are finite (`check_finite`).

    An exact 0 counts as the smallest step of its precision, so that its loss is finite; or as the smallest number of
    its type, if the model ``underflows``: it gives far smaller numbers than that step, as naive Bayes does.
    """
    given = np.asarray(probabilities)
    precision = np.finfo(given.dtype if given.dtype.kind == "f" else np.float64)
    step = precision.smallest_subnormal if underflows else precision.eps
    values = given.astype(np.float64)
    return np.asarray(np.log(np.where(values > 0, values, float(step))), dtype=np.float64)


def probabilities_from_logits(logits: FloatArray) -> FloatArray | None:
    """The inverse of `logits_from_probabilities`, with its exact zeros; None for logits that it did not give."""
    if not (logits <= 0).all():
        return None
    values = np.where(np.isin(logits, _ZERO_MARKS), 0.0, np.exp(logits))
    return values if (np.abs(values.sum(axis=-1) - 1) < 1e-3).all() else None


def loss_to_margin(loss: FloatArray) -> FloatArray:
    """The logit margin log(p / (1 - p)) of a loss -log p, from -1e100 to 708, so that sums of squares are finite."""
    given = np.asarray(loss)
    margin = np.empty_like(given)
    if not given.flags.forc:  # neither the one nor the other is one stretch of memory
        return _write_margins(given, margin)
    flat, result = given.ravel(order="K"), margin.ravel(order="K")  # views
    over_records(lambda some: _write_margins(flat[some], result[some]), flat.size, models=1)
    return margin


def _write_margins(loss: FloatArray, margin: FloatArray) -> FloatArray:
    # expm1 overflows above 709, where log(expm1(loss)) and loss are the same number
    np.minimum(loss, 700.0, out=margin)
    with np.errstate(divide="ignore"):
        for step in (np.expm1, np.log, np.negative):  # in place: losses of a whole pool are large
            step(margin, out=margin)
    np.negative(loss, out=margin, where=np.asarray(loss > 700.0))
    return np.clip(margin, _SMALLEST_MARGIN, _LARGEST_MARGIN, out=margin)


def margin_to_loss(margin: FloatArray) -> FloatArray:
    """The loss -log p of a logit margin log(p / (1 - p)); the inverse of `loss_to_margin`."""
    return np.asarray(np.logaddexp(0.0, -margin))


def log_normal_farther(value: FloatArray, mean: FloatArray) -> FloatArray:
    """Log of the probability that a normal number around ``mean``, with variance 1, is at least as far from 0, [N]."""
    away = np.abs(value)
    return np.asarray(np.minimum(np.logaddexp(log_ndtr(-away - mean), log_ndtr(mean - away)), 0.0))


def area_under_roc(scores: FloatArray, positive: BoolArray) -> float:
    """Probability that a positive scores above a negative, where ties count half: the exact area under the ROC."""
    return area_of_sorted(np.sort(scores[positive]), np.sort(scores[~positive]))


def area_of_sorted(inside: FloatArray, outside: FloatArray) -> float:
    """The same from the scores of the positives and of the negatives, each sorted."""
    if not len(inside) or not len(outside) or np.isnan(inside[-1]) or np.isnan(outside[-1]):
        return float("nan")
    below = np.searchsorted(outside, inside)  # two sorted arrays: faster than the ranks of all scores
    tied = np.flatnonzero(outside[np.minimum(below, len(outside) - 1)] == inside)
    upto = np.searchsorted(outside, inside[tied], side="right")
    return float((below.sum() + (upto - below[tied]).sum() / 2) / (len(inside) * len(outside)))
