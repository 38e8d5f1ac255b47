"""The confidence that shadow models lead to expect of a target, record by record; and how one number is tuned on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from glasshouse.attacks.shared.in_out_moments import LeaveOut, simulated_sets
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import area_under_roc, log_mean_exp
from glasshouse.core.threads import over_records, side_by_side
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import rows_without

_SMALLEST = 1e-200  # a sum below this may have lost terms to underflow
_SIDE_BY_SIDE = 8  # simulated targets


class SimulatedConfidence(NamedTuple):
    """A simulated target: its losses, the expected log-confidence and its members, [N] each."""

    loss: FloatArray
    expected: FloatArray
    members: BoolArray


def expected_confidence(evidence: Evidence, mode: Mode) -> FloatArray:
    """Log of the mean confidence of the shadow models in each record, [N]; offline of its out-models."""
    asked = None if mode == "online" else evidence.references(mode)
    loss, found = evidence.shadow_loss, np.empty(evidence.records)

    def write(some: slice) -> None:
        found[some] = log_mean_exp(-loss[:, some], where=None if asked is None else asked[:, some])

    over_records(write, evidence.records, models=evidence.models)
    return found


def expected_among(evidence: Evidence, mode: Mode, sets: Sequence[Positions]) -> FloatArray:
    """The same without some of the shadow models, for each of several sets that are left out: [sets, N].

    A set is rows of the pool, [L, 1] the same for all records, or [L, N] record by record. Confidences are computed
    once, relative to the largest of each record; where the models that are left have far smaller ones, once more.
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
        pool = LeaveOut(parts, lambda *each: tuple(part.sum(axis=0) for part in each))
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


def simulated_confidence(evidence: Evidence, mode: Mode) -> Iterator[SimulatedConfidence]:
    """The same for each simulated target; a model and its complement, which have the same references, share it."""
    for targets, sets in simulated_sets(evidence.shadow_members):
        expected = expected_among(evidence, mode, sets)
        for k, number in targets:
            yield SimulatedConfidence(evidence.shadow_loss[k], expected[number], evidence.shadow_members[k])


def scored_targets(
    evidence: Evidence, mode: Mode, score: Callable[[SimulatedConfidence], FloatArray]
) -> Iterator[tuple[FloatArray, BoolArray]]:
    """Scores and members, [N] each, of every simulated target; a few are scored side by side."""
    targets = simulated_confidence(evidence, mode)
    while some := list(islice(targets, _SIDE_BY_SIDE)):
        yield from zip(side_by_side(score, some, records=evidence.records), (one.members for one in some), strict=True)


Statistic = Callable[[float], FloatArray]
_FEW = 4000  # records that show which numbers are clearly not the best
_TARGETS = 16  # with fewer, their spread is not known well enough for that, and all records take little time
_CLEARLY = 6.0  # standard errors


def best_share(
    evidence: Evidence, statistic_of: Callable[[FloatArray, FloatArray], Statistic], *, mode: Mode, name: str
) -> float:
    """The number in [0, 1] with the largest mean AUC over all simulated targets, to two decimals.

    The paper (App. A) searches with cross-validation over shadow models acting as targets; for one number a
    grid is enough, first in tenths, then in hundredths around the best. In a large pool some of the records first show
    which numbers are clearly worse; only the others are compared on all records.

    ``statistic_of`` makes, from a simulated target's losses and expected log-confidences, [N] each, a function
    number -> scores [N]. Errors call the number ``name``.
    """
    try:
        simulated = list(simulated_confidence(evidence, mode))
    except InputError as error:
        raise InputError(f"{name}: cannot be tuned automatically. {error} Or give {name} a number.") from error
    step = -(-evidence.records // _FEW) if len(simulated) >= _TARGETS else 1
    few = [SimulatedConfidence(one.loss[::step], one.expected[::step], one.members[::step]) for one in simulated]

    def areas(share: float, targets: Sequence[SimulatedConfidence]) -> list[float]:
        return [area_under_roc(statistic_of(one.loss, one.expected)(share), one.members) for one in targets]

    def best(shares: list[float]) -> float:
        kept = shares if step == 1 else _not_clearly_worse(np.array([areas(share, few) for share in shares]), shares)
        return kept[0] if len(kept) == 1 else max(kept, key=lambda share: float(np.mean(areas(share, simulated))))

    tenth = best(np.linspace(0.0, 1.0, 11).round(2).tolist())
    near = np.arange(tenth - 0.09, tenth + 0.095, 0.01).round(2)
    # the best of the coarse grid comes first: among equals, the rounder number is kept
    return float(best([tenth, *near[(near >= 0) & (near <= 1)].tolist()]))


def _not_clearly_worse(areas: FloatArray, shares: list[float]) -> list[float]:
    """The shares whose areas [shares, targets] are not clearly smaller than those of the best, target by target."""
    behind = areas[areas.mean(axis=1).argmax()] - areas
    error = behind.std(axis=1, ddof=1) / np.sqrt(behind.shape[1])
    return [share for share, worse in zip(shares, behind.mean(axis=1) > _CLEARLY * error, strict=True) if not worse]
