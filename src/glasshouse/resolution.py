"""The step between a model's confidences, such as one vote in a hundred, and what an exact 0 or 1 then means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import FloatArray

__all__ = ["StepFinder", "clipped_log_probabilities", "clipped_losses", "common_resolution", "resolution_note"]

_NOISE = 64  # times the precision: 1 - p of votes that add up to 1 in floating point
_GAP = 1e3  # rounding noise is at least this factor below the first step
_LARGEST_CLIP = 0.25  # a single vote gives 0 or 1 and nothing between; clipping at a half would make both equal


class StepFinder:
    """Finds the step between a model's class probabilities, batch by batch.

    A forest of 100 full trees answers in hundredths, five nearest neighbours in fifths, a single full tree with 0 or
    1. An exact 0 then means "less than one step", not "never". The step is the smallest positive answer of a model that
    also gives an exact 0 to some class that it knows. Models that never give an exact 0 have no such step. Models such
    as naive Bayes have none either: their answers go down to the precision of the numbers and are 0 only below it.

    Example:
        >>> finder = StepFinder()
        >>> finder.add(np.array([[0.01, 0.99], [0.0, 1.0], [0.37, 0.63]]))
        >>> finder.resolution()
        0.01
        >>> finder = StepFinder()
        >>> finder.add(np.array([[0.01, 0.99], [1e-9, 1 - 1e-9]]))
        >>> finder.resolution() is None
        True
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
        values = values.astype(np.float64)
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


def common_resolution(target: float | None, shadows: Sequence[float | None]) -> float | None:
    """One step for all models, so that the target and its references are clipped in the same way: the coarser of two.

    The two are the target's step and the median of the shadow models' steps. A single model may by chance not give its
    smallest step to any record.

    Example:
        >>> common_resolution(0.01, [0.01, 0.02, 0.01]), common_resolution(None, [0.1, 0.1])
        (0.01, 0.1)
        >>> common_resolution(None, [None, None]) is None
        True
    """
    median = float(np.median([step or 0.0 for step in shadows])) if len(shadows) else 0.0
    return max(target or 0.0, median) or None


def clipped_losses(loss: FloatArray, resolution: float | None, *, temperature: float = 1.0) -> FloatArray:
    """Losses of any shape, with confidences clipped half a step from 0 and from 1; unchanged without a step.

    Args:
        loss: of any shape.
        resolution: the step.
        temperature: by which the logits were divided.

    Example:
        >>> np.exp(-clipped_losses(np.array([36.0, 0.69, 0.0]), 0.01)).round(3)
        array([0.005, 0.502, 0.995])
    """
    if resolution is None:
        return loss
    margin = (np.log1p(-_clip(resolution)) - np.log(_clip(resolution))) / temperature
    return np.asarray(np.clip(loss, np.logaddexp(0.0, -margin), np.logaddexp(0.0, margin)))


def clipped_log_probabilities(logits: NDArray[Any], resolution: float | None) -> NDArray[Any]:
    """Logits [..., C] as log-probabilities that are at least half a step; unchanged without a step.

    Example:
        >>> np.exp(clipped_log_probabilities(np.array([[0.0, -36.0]]), 0.01)).round(3)
        array([[1.   , 0.005]])
    """
    if resolution is None:
        return logits
    largest = logits.max(axis=-1, keepdims=True)
    total = largest + np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True))
    return np.asarray(np.maximum(logits - total, np.log(_clip(resolution))).astype(logits.dtype))


def resolution_note(resolution: float | None, *, who: str = "The model gives") -> tuple[str, ...]:
    """What a report says about the step: one sentence, or none.

    Example:
        >>> resolution_note(0.01)[0]
        'The model gives exact 0 and 1 and nothing closer to them than 0.01, so confidences are clipped to between \
0.005 and 0.995.'
        >>> resolution_note(1.0)[0]
        'The model gives exact 0 and 1 and nothing between them, so confidences are clipped to between 0.25 and 0.75.'
    """
    if resolution is None:
        return ()
    clip = _clip(resolution)
    between = "nothing between them" if resolution > 0.5 else f"nothing closer to them than {resolution:.3g}"
    digits = 2 - int(np.floor(np.log10(clip)))  # decimals that show three digits of the clip
    low, high = (f"{value:.{digits}f}".rstrip("0") for value in (clip, 1 - clip))
    return (f"{who} exact 0 and 1 and {between}, so confidences are clipped to between {low} and {high}.",)


def _clip(resolution: float) -> float:
    return min(resolution / 2, _LARGEST_CLIP)
