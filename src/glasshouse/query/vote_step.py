"""The step between a model's confidences, such as one vote in a hundred, and what an exact 0 or 1 then means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray

_NOISE = 64  # times the precision: 1 - p of votes that add up to 1 in floating point
_GAP = 1e3  # rounding noise is at least this factor below the first step
_SUMS = 1e-3  # rows that are nearer to 1 are whole
_DECIMALS = 5  # more of them change the sum of a row by too little to matter
_SIGNIFICANT = 3  # digits
_FEW = 8  # rows that show how answers were rounded or cut
_LARGEST_CLIP = 0.25  # a single vote gives 0 or 1 and nothing between; clipping at a half would make both equal


class Shares(NamedTuple):
    """Probabilities of which something is missing."""

    kind: Literal["rounded", "top"]  # "top": those of the likeliest classes, and 0 for the others
    step: float = 0.0  # one of the last decimal if all have so few, or 0


class StepFinder:
    """Finds the step between a model's class probabilities, batch by batch.

    A forest of 100 full trees answers in hundredths, five nearest neighbours in fifths: an exact 0 then means "less
    than one step". The step is the smallest positive answer of a model that also gives an exact 0 to a class that it
    knows; none for naive Bayes, whose answers go down to the precision of the numbers.
    """

    def __init__(self) -> None:
        self._zeros = self._known = np.zeros(0, dtype=np.bool_)  # [C] whether a class had a 0, a positive answer
        self._smallest = self._smallest_above_noise = np.inf
        self._precision = float(np.finfo(np.float64).eps)

    def add(self, probabilities: NDArray[Any]) -> None:
        """Add more answers, [B, C], in their own precision."""
        values = np.asarray(probabilities)
        if values.dtype.kind == "f":
            self._precision = float(np.finfo(values.dtype).eps)
        values = values.astype(np.float64, copy=False)
        noise = _NOISE * self._precision
        above = values > noise
        positive = values > 0
        if not len(self._zeros):
            self._zeros, self._known = np.zeros((2, values.shape[1]), dtype=np.bool_)
        self._zeros |= (~positive | ((values >= self._precision / 4) & ~above)).any(axis=0)
        self._known |= above.any(axis=0)
        self._smallest = min(self._smallest, values.min(where=positive, initial=np.inf))
        self._smallest_above_noise = min(self._smallest_above_noise, values.min(where=above, initial=np.inf))

    def underflows(self) -> bool:
        """Whether answers go far below the precision of 1 and are 0 only when they are too small for their type."""
        return bool((self._zeros & self._known).any() and self._smallest < self._precision / 4)

    def resolution(self) -> float | None:
        """The step, or None if there is none."""
        step = float(self._smallest_above_noise)
        if not (self._zeros & self._known).any() or step == np.inf:
            return None
        noisy = self._smallest <= _NOISE * self._precision
        if noisy and (self._smallest < self._precision / 4 or step < _GAP * _NOISE * self._precision):
            return None  # answers go further down than rounding errors do
        return float(f"{step:.9g}")  # the same step from answers and from their logarithms


class ShareFinder:
    """Finds out over all records whether numbers between 0 and 1 that do not sum to 1 are rounded or cut probabilities.

    **Rounded**: all have few decimals, or significant digits, and no row's sum differs from 1 by more than the rounding
    of its classes. **The k likeliest classes**, 0 for the others: at most k < C answers of a row are positive, and what
    it lacks is not more than its other classes can have, each at most as likely as the last one listed.
    """

    def __init__(self) -> None:
        self._rows = self._decimals = 0
        self._digits = 2  # significant ones
        self._inside = True
        self._known: BoolArray = np.zeros(0, dtype=np.bool_)  # [C] whether a class had a positive answer
        self._most = 0  # positive answers of a row
        self._over, self._under = -np.inf, -np.inf  # the largest sum less 1, and 1 less the smallest
        self._hidden = -np.inf  # most that a row lacks beyond what its unlisted classes can have

    def add(self, answers: NDArray[Any]) -> None:
        """Add more answers, [B, C]."""
        if not self._inside or not len(answers):
            return
        values = np.asarray(answers, dtype=np.float64)
        low, high = values.min(), values.max()
        if not (low >= 0 and high <= 1):  # logits: one look at the first batch
            self._inside = False
            return
        precision = float(np.finfo(answers.dtype).eps) if answers.dtype.kind == "f" else 0.0
        while self._decimals <= _DECIMALS and not _whole_numbers(values * 10.0**self._decimals, precision):
            self._decimals += 1
        while self._digits <= _SIGNIFICANT and not _significant(values, self._digits, precision):
            self._digits += 1
        positive = values > 0
        counts = positive.sum(axis=1)
        known = positive.any(axis=0)
        self._known = np.asarray(known | self._known if len(self._known) else known)
        self._rows += len(values)
        self._most = max(self._most, int(counts.max()))
        lacks = 1 - values.sum(axis=1)
        self._over, self._under = max(self._over, float(-lacks.min())), max(self._under, float(lacks.max()))
        smallest = values.min(axis=1, where=positive, initial=1.0)
        self._hidden = max(self._hidden, float((lacks - (values.shape[1] - counts) * smallest).max()))

    def found(self) -> Shares | None:
        """What the answers are; None for whole probabilities and for all that is neither."""
        classes = len(self._known)
        if not self._inside or self._rows < _FEW or classes < 2 or not self._most or not self._decimals:
            return None  # without decimals they are votes
        step = 10.0**-self._decimals if self._decimals <= _DECIMALS else 0.0
        rounding = classes * step / 2 + 1e-6
        digits = 0.5 * 10.0 ** (1 - self._digits) if self._digits <= _SIGNIFICANT else 0.0
        off = max(self._over, self._under)
        if off <= _SUMS:
            return None
        if off <= max(rounding, digits):
            return Shares("rounded", step)
        cut = (
            self._most < int(self._known.sum()) and self._over <= rounding + _SUMS and self._hidden <= rounding + _SUMS
        )
        return Shares("top", step) if cut else None


def whole_shares(answers: NDArray[Any], shares: Shares) -> FloatArray:
    """Probabilities [B, C] that sum to 1, from rounded ones or from those of the likeliest classes."""
    values = np.array(answers, dtype=np.float64)
    if shares.kind == "top":  # classes that a row does not list share evenly what it lacks
        precision = float(np.finfo(answers.dtype).eps) if answers.dtype.kind == "f" else 0.0
        listed, lacks = values > 0, 1 - values.sum(axis=1)
        lacks = np.where(lacks < shares.step / 2, 0.0, lacks) if shares.step else np.maximum(lacks, precision)
        smallest = values.min(axis=1, where=listed, initial=1.0)
        each = np.minimum(lacks / np.maximum((~listed).sum(axis=1), 1), smallest)
        values = np.where(listed, values, each[:, None])
    values[~values.any(axis=1)] = 1.0  # a row that lists nothing says nothing
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def shares_note(shares: Shares) -> str:
    """What a report says about such answers."""
    if shares.kind == "rounded":
        return (
            "The model answers with rounded probabilities (their sums differ from 1 by no more than rounding); they "
            "are used as probabilities, at that resolution. Answers with more digits may show more."
        )
    return (
        "The model answers with the probabilities of its likeliest classes alone, and 0 for the others; these are "
        "taken to share what is left. Probabilities of all classes may show more."
    )


def _whole_numbers(values: FloatArray, precision: float) -> bool:
    apart = np.abs(values - np.rint(values))
    return bool((apart <= 4 * max(precision, 1e-15) * np.maximum(np.abs(values), 1.0)).all())


def _significant(values: FloatArray, digits: int, precision: float) -> bool:
    """Whether all values have at most so many significant digits."""
    some = values[values > 1e-30]  # naive Bayes gives 1e-310, which has no digits left
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(some) + 1e-9))
    return _whole_numbers(some * scale, precision)


def common_resolution(target: float | None, shadows: Sequence[float | None]) -> float | None:
    """One step for all models: the coarser of the target's and the median of the shadow models', as one may miss it."""
    median = float(np.median([step or 0.0 for step in shadows])) if len(shadows) else 0.0
    return max(target or 0.0, median) or None


def clipped_losses(loss: FloatArray, resolution: float | None, *, temperature: float = 1.0) -> FloatArray:
    """Losses of any shape, with confidences clipped half a step from 0 and from 1; unchanged without a step."""
    if resolution is None:
        return loss
    margin = (np.log1p(-_clip(resolution)) - np.log(_clip(resolution))) / temperature
    return np.asarray(np.clip(loss, np.logaddexp(0.0, -margin), np.logaddexp(0.0, margin)))


def clipped_log_probabilities(logits: NDArray[Any], resolution: float | None) -> NDArray[Any]:
    """Logits [..., C] as log-probabilities that are at least half a step; unchanged without a step."""
    if resolution is None:
        return logits
    largest = logits.max(axis=-1, keepdims=True)
    total = largest + np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True))
    return np.asarray(np.maximum(logits - total, np.log(_clip(resolution))).astype(logits.dtype))


def resolution_note(resolution: float | None, *, who: str = "The model gives") -> tuple[str, ...]:
    """What a report says about the step: one sentence, or none."""
    if resolution is None:
        return ()
    clip = _clip(resolution)
    between = "nothing between them" if resolution > 0.5 else f"nothing closer to them than {resolution:.3g}"
    digits = 2 - int(np.floor(np.log10(clip)))  # decimals that show three digits of the clip
    low, high = (f"{value:.{digits}f}".rstrip("0") for value in (clip, 1 - clip))
    return (f"{who} exact 0 and 1 and {between}, so confidences are clipped to between {low} and {high}.",)


def _clip(resolution: float) -> float:
    return min(resolution / 2, _LARGEST_CLIP)
