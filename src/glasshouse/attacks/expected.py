"""The confidence that shadow models lead to expect of a target, record by record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.sides import LeaveOut, simulated_sets
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import rows_without
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
    """The same without some of the shadow models, for each of several sets that are left out: [sets, N].

    Confidences are computed once, relative to the largest of each record. Where the models that are left all have
    far smaller ones, they are computed again.

    Args:
        evidence: the pool; the target's own losses are not used.
        mode: ``"online"`` or ``"offline"``.
        sets: rows of the pool that are left out, [L, 1] the same for all records, or [L, N] record by record.

    Example:
        >>> evidence = Evidence(target_loss=[1.0], shadow_loss=[[0.0], [2.0]], shadow_members=[[1], [0]])
        >>> expected_among(evidence, "online", [np.array([[1]]), np.array([[0]])])
        array([[ 0.],
               [-2.]])
    """
    members, loss = evidence.shadow_members, evidence.shadow_loss
    found = np.empty((len(sets), evidence.records))
    short = np.zeros(len(sets), dtype=np.bool_)  # which sets have no out-model of some record

    def write(some: slice) -> None:
        block, asked = loss[:, some], ~members[:, some] if mode == "offline" else None
        smallest = (block if asked is None else np.where(asked, block, np.inf)).min(axis=0)
        smallest[np.isinf(smallest)] = 0.0  # a record without out-models is refused below
        confidence = np.exp(np.minimum(smallest - block, 0.0))  # at most 1 where asked
        parts = [confidence]
        if asked is not None:
            confidence[~asked] = 0.0
            parts.append(asked.astype(np.float64))
        pool = LeaveOut(parts, _sums)
        for number, left in enumerate(sets):
            part = left if left.shape[1] == 1 else left[:, some]
            total, *counted = pool.without(part)
            count = counted[0] if counted else np.full(block.shape[1], float(len(loss) - len(left)))
            short[number] |= not count.all()
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = np.log(total) - smallest - np.log(count)
            lost = np.flatnonzero((total < _SMALLEST) & (count > 0))
            if len(lost):
                who = np.ones((len(loss), len(lost)), dtype=np.bool_) if asked is None else asked[:, lost]
                np.put_along_axis(who, part if part.shape[1] == 1 else part[:, lost], False, axis=0)
                expected[lost] = log_mean_exp(-block[:, lost], where=who)
            found[number, some] = expected

    over_records(write, evidence.records, models=evidence.models)
    for number in np.flatnonzero(short)[:1].tolist():
        evidence.among(rows_without(sets[number], evidence.models)).require_side(inside=False)
    return found


def _sums(*parts: FloatArray) -> tuple[FloatArray, ...]:
    """Sums [N] of several arrays [K, N]."""
    return tuple(part.sum(axis=0) for part in parts)


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
