"""Whether posteriors are calibrated: of the records with a posterior of 70 %, are 70 % members?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation import Interval, clopper_pearson
from glasshouse.randomness import generator

__all__ = ["Reliability", "reliability_floor", "reliability_of"]

_BINS = 10
_DRAWS = 100  # of memberships, to estimate what error chance alone gives


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: records in bins of their posterior.

    Args:
        said: mean posterior of each bin that holds a record.
        found: share of members in it.
        intervals: Clopper-Pearson intervals of the share.
        counts: records in it.
        error: expected calibration error: the mean of |said - found| over records.
    """

    said: tuple[float, ...]
    found: tuple[float, ...]
    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    error: float


def reliability_of(posteriors: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> Reliability:
    """Compare posteriors [N] with true membership [N], in ten bins of equal width.

    Example:
        >>> found = reliability_of(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0, 0, 1, 0], dtype=bool))
        >>> found.found, round(found.error, 3)
        ((0.0, 0.5), 0.25)
    """
    place = np.clip((posteriors * _BINS).astype(np.int64), 0, _BINS - 1)
    counts = np.bincount(place, minlength=_BINS)
    filled = np.flatnonzero(counts)
    hits = np.bincount(place[members], minlength=_BINS)[filled]
    said = np.bincount(place, weights=posteriors, minlength=_BINS)[filled] / counts[filled]
    found = hits / counts[filled]
    return Reliability(
        said=tuple(said.tolist()),
        found=tuple(found.tolist()),
        intervals=tuple(
            clopper_pearson(int(hit), int(count), confidence=confidence)
            for hit, count in zip(hits, counts[filled], strict=True)
        ),
        counts=tuple(counts[filled].tolist()),
        error=float(np.average(np.abs(said - found), weights=counts[filled])),
    )


def reliability_floor(posteriors: FloatArray, *, seed: int = 0) -> float:
    """The calibration error that posteriors [N] would have by chance even if all of them were exactly right.

    Example:
        >>> reliability_floor(np.full(100, 0.5)) > reliability_floor(np.full(10_000, 0.5)) > 0
        True
    """
    random = generator(seed, "calibration floor")
    return float(
        np.mean([reliability_of(posteriors, random.random(len(posteriors)) < posteriors).error for _ in range(_DRAWS)])
    )
