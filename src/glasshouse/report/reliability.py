"""Whether posteriors are calibrated: of the records with a posterior of 70 %, are 70 % members?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation import Interval, clopper_pearson
from glasshouse.evaluation.believed import binned, calibration_floor

__all__ = ["Reliability", "reliability_of"]


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: records in bins of their posterior.

    Args:
        said: mean posterior of each bin that holds a record.
        found: share of members in it.
        intervals: Clopper-Pearson intervals of the share.
        counts: records in it.
        error: expected calibration error: the mean of |said - found| over records.
        floor: the error that chance alone gives, even if every posterior is exactly right.
    """

    said: tuple[float, ...]
    found: tuple[float, ...]
    intervals: tuple[Interval, ...]
    counts: tuple[int, ...]
    error: float
    floor: float


def reliability_of(posteriors: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> Reliability:
    """Compare posteriors [N] with true membership [N], in ten bins of equal width.

    Example:
        >>> found = reliability_of(np.array([0.2, 0.2, 0.8, 0.8]), np.array([0, 0, 1, 0], dtype=bool))
        >>> found.found, round(found.error, 3)
        ((0.0, 0.5), 0.25)
    """
    bins = binned(posteriors, members)
    counts = np.rint(bins.mass * len(posteriors)).astype(np.int64)
    hits = np.rint(bins.found * counts).astype(np.int64)
    return Reliability(
        said=tuple(bins.said.tolist()),
        found=tuple(bins.found.tolist()),
        intervals=tuple(
            clopper_pearson(int(hit), int(count), confidence=confidence)
            for hit, count in zip(hits, counts, strict=True)
        ),
        counts=tuple(counts.tolist()),
        error=bins.error,
        floor=calibration_floor(posteriors),
    )
