"""The confidence that shadow models lead to expect of a target, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.sides import reference_sums
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation, reference_rows
from glasshouse.numerics import log_mean_exp

__all__ = ["SimulatedConfidence", "expected_confidence", "simulated_confidence"]

_SMALLEST = 1e-200  # a sum below this may have lost terms to underflow


class SimulatedConfidence(NamedTuple):
    """A simulated target: its losses, the expected log-confidence and its members, [N] each."""

    loss: FloatArray
    expected: FloatArray
    members: BoolArray


def expected_confidence(evidence: Evidence, mode: Mode) -> FloatArray:
    """Log of the mean confidence of the shadow models in each record, [N]; offline of its out-models.

    Example:
        >>> evidence = Evidence(target_loss=[1.0], shadow_loss=[[0.0], [2.0]], shadow_members=[[1], [0]])
        >>> expected_confidence(evidence, "offline")
        array([-2.])
    """
    asked = None if mode == "online" else evidence.references(mode)
    return log_mean_exp(-evidence.shadow_loss, where=asked)


def simulated_confidence(evidence: Evidence, mode: Mode) -> Iterator[SimulatedConfidence]:
    """The same for each simulated target, without a copy of the pool for every one of them.

    Confidences are computed once, relative to the largest of each record. Where a simulated target's references all
    have far smaller ones, they are computed again.

    Args:
        evidence: the pool; the target's own losses are not used.
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> members = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool)
        >>> loss = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> next(simulated_confidence(evidence, "offline")).expected.round(6)
        array([-7., -6.])
    """
    check_simulation(evidence.models)
    members, loss = evidence.shadow_members, evidence.shadow_loss
    asked = ~members if mode == "offline" else np.ones_like(members)
    smallest = np.where(asked, loss, np.inf).min(axis=0)  # [N]
    smallest[np.isinf(smallest)] = 0.0  # a record without out-models is refused below
    confidence = np.where(asked, np.exp(np.minimum(smallest - loss, 0.0)), 0.0)  # [K, N], at most 1 where asked
    counted = asked.astype(np.int32)
    known: tuple[bytes, FloatArray] = (b"", np.empty(0))
    for k in range(evidence.models):
        rows = reference_rows(members, k)
        if rows.tobytes() != known[0]:
            count, total = reference_sums(counted, rows), reference_sums(confidence, rows)
            if not count.all():
                evidence.among(rows, model=k).require_side(inside=False)
            lost = np.flatnonzero(total < _SMALLEST)
            with np.errstate(divide="ignore"):
                expected = np.log(total) - smallest - np.log(count)
            if len(lost):
                part = rows if rows.shape[1] == 1 else rows[:, lost]
                expected[lost] = log_mean_exp(-loss[part, lost], where=asked[part, lost])
            known = (rows.tobytes(), expected)
        yield SimulatedConfidence(loss[k], known[1], members[k])
