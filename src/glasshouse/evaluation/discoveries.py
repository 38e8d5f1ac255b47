"""Which records can be called members with a stated share of errors, without knowing any member of the target."""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.tried import Scored
from glasshouse.threads import side_by_side

__all__ = ["DISCOVERY_LEVEL", "conformal_p_values", "discovery_levels"]

DISCOVERY_LEVEL = 0.1  # the share of wrongly listed records that a report allows


def conformal_p_values(scores: FloatArray, scored: Scored) -> FloatArray:
    """[N] how rare each score would be for a non-member: (1 + #{simulated non-members ≥ s}) / (1 + #).

    The non-members of all simulated targets are the calibration sample (Bates, Candès, Lei, Romano, Sesia 2023). That
    is right for targets of the pool's kind, as thresholds are.

    Args:
        scores: [N] of the target's records.
        scored: simulated targets: pairs of scores [N] and members [N].

    Example:
        >>> pair = (np.array([0.0, 1.0, 2.0, 9.0]), np.array([False, False, False, True]))
        >>> conformal_p_values(np.array([5.0, 1.5]), [pair])
        array([0.25, 0.5 ])
    """
    order = np.argsort(scores)
    asked = scores[order]
    ending = np.zeros(len(scores) + 1, dtype=np.int64)  # how many non-members reach exactly so many of these scores

    def of_target(pair: tuple[FloatArray, BoolArray]) -> int:
        others = np.sort(pair[0][~pair[1]])  # sorted: the next search then starts in what the cache still holds
        found = np.bincount(np.searchsorted(asked, others, side="right"), minlength=len(ending))
        with lock:  # one sum for all, so that no [K, N] copy is made; whole numbers add up in any order
            np.add(ending, found, out=ending)
        return len(others)

    lock = Lock()
    count = sum(side_by_side(of_target, scored, records=len(scores)))
    levels = np.empty(len(scores))
    levels[order] = (1 + count - np.cumsum(ending)[:-1]) / (1 + count)
    return levels


def discovery_levels(p_values: ArrayLike, *, prior: float = 0.0) -> FloatArray:
    """[N] the smallest false-discovery rate at which each record is listed (Benjamini and Hochberg 1995).

    Conformal p-values that share a calibration sample depend on each other positively, for which the rule holds. Only
    non-members can be listed wrongly, and they are a share 1 - λ of the records: the rule without it would keep a list
    at 10 % below 5 % if half of the records are members. If fewer are members than is stated, λ' < λ, up to
    (1 - λ') / (1 - λ) times the stated rate is wrong; if more are, less.

    Args:
        p_values: [N] of the records.
        prior: λ, the stated share of members; 0 if nothing is known about it.

    Example:
        >>> discovery_levels([0.01, 0.5, 0.02])
        array([0.03, 0.5 , 0.03])
        >>> discovery_levels([0.01, 0.5, 0.02], prior=0.5)
        array([0.015, 0.25 , 0.015])
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    raised = (1 - prior) * values[order] * len(values) / np.arange(1, len(values) + 1)
    levels = np.empty(len(values))
    levels[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return levels
