"""The confidence that shadow models lead to expect of a target, record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.sides import left_out, simulated_sets, sums_among
from glasshouse.evidence import Evidence, Mode
from glasshouse.numerics import log_mean_exp
from glasshouse.threads import over_records

__all__ = ["SimulatedConfidence", "expected_among", "expected_confidence", "simulated_confidence"]

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
    loss, found = evidence.shadow_loss, np.empty(evidence.records)

    def write(some: slice) -> None:
        found[some] = log_mean_exp(-loss[:, some], where=None if asked is None else asked[:, some])

    over_records(write, evidence.records, models=evidence.models)
    return found


def expected_among(evidence: Evidence, mode: Mode, sets: Sequence[NDArray[np.intp]]) -> FloatArray:
    """The same with some of the shadow models alone, for each of several sets of them: [sets, N].

    Confidences are computed once, relative to the largest of each record. Where the models of a set all have far
    smaller ones, they are computed again.

    Args:
        evidence: the pool; the target's own losses are not used.
        mode: ``"online"`` or ``"offline"``.
        sets: rows of the pool, [R, 1] the same for all records, or [R, N] record by record.

    Example:
        >>> evidence = Evidence(target_loss=[1.0], shadow_loss=[[0.0], [2.0]], shadow_members=[[1], [0]])
        >>> expected_among(evidence, "online", [np.array([[0]]), np.array([[1]])])
        array([[ 0.],
               [-2.]])
    """
    members, loss = evidence.shadow_members, evidence.shadow_loss
    found = np.empty((len(sets), evidence.records))
    without = [left_out(rows, evidence.models) for rows in sets]
    short = np.zeros(len(sets), dtype=np.bool_)  # which sets have no out-model of some record

    def write(some: slice) -> None:
        block, asked = loss[:, some], ~members[:, some] if mode == "offline" else None
        smallest = (block if asked is None else np.where(asked, block, np.inf)).min(axis=0)
        smallest[np.isinf(smallest)] = 0.0  # a record without out-models is refused below
        confidence = np.exp(np.minimum(smallest - block, 0.0))  # at most 1 where asked
        counted = None if asked is None else asked.astype(np.float64)
        if asked is not None:
            confidence[~asked] = 0.0
        for number, rows in enumerate(sets):
            part = rows if rows.shape[1] == 1 else rows[:, some]
            if counted is None:
                count = np.full(block.shape[1], float(len(rows)))
            else:
                count = sums_among(counted, part, without[number])
                short[number] |= not count.all()
            total = sums_among(confidence, part, without[number])
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = np.log(total) - smallest - np.log(count)
            lost = np.flatnonzero((total < _SMALLEST) & (count > 0))
            if len(lost):
                at = part if part.shape[1] == 1 else part[:, lost]
                expected[lost] = log_mean_exp(-block[at, lost], where=None if asked is None else asked[at, lost])
            found[number, some] = expected

    over_records(write, evidence.records, models=evidence.models)
    for number in np.flatnonzero(short)[:1].tolist():
        evidence.among(sets[number]).require_side(inside=False)
    return found


def simulated_confidence(evidence: Evidence, mode: Mode) -> Iterator[SimulatedConfidence]:
    """The same for each simulated target, without a copy of the pool for every one of them.

    A model and its complement, which have the same references, share what is expected.

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
    for targets, sets in simulated_sets(evidence.shadow_members):
        expected = expected_among(evidence, mode, sets)
        for k, number in targets:
            yield SimulatedConfidence(evidence.shadow_loss[k], expected[number], evidence.shadow_members[k])
