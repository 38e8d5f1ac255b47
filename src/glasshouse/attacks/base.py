"""BASE, and what attacks share that compare a target's loss with the confidence that shadow models lead to expect."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.in_out_moments import LeaveOut, left_out, sets_at_once, simulated_sets
from glasshouse.attacks.prior import check_prior, prior_log_odds
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
    """The same without some of the shadow models, [sets, N], for each set of rows that is left out, [L, 1] or [L, N].

    Confidences are computed relative to the largest of each record; where the models that are left have far smaller
    ones, once more.
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


Statistic = Callable[[float], FloatArray]


class ConfidenceAttack(Attack):
    """An attack on a statistic of the loss, the expected log-confidence and one number, which is tuned offline."""

    quick_simulation: ClassVar[bool] = True
    _number: ClassVar[str] = "offline_a"  # the field that holds the number, or "auto"

    mode: Mode

    @abc.abstractmethod
    def _statistic(self, loss: FloatArray, expected: FloatArray) -> Statistic:
        """Ratios [N] as a function of the number, from losses and expected log-confidences, [N] each."""

    def _scored(self, ratios: FloatArray, members: BoolArray | None = None) -> FloatArray:
        """Scores [N] from ratios [N] of the target, or of a simulated target with these members [N]."""
        return ratios

    def _settled(self, evidence: Evidence) -> float:
        """The number: 1 online, which leaves the mean confidence as it is; else as given, or tuned."""
        given: Any = getattr(self, self._number)
        if self.mode == "online" and (given == "auto" or self._number == "offline_a"):
            return 1.0
        return best_share(evidence, self._statistic, mode=self.mode, name=self._number) if given == "auto" else given

    def _ratios(self, evidence: Evidence, number: float) -> FloatArray:
        return self._statistic(evidence.target_loss, expected_confidence(evidence, self.mode))(number)

    def score(self, evidence: Evidence) -> FloatArray:
        """Scores, [N]; higher means member."""
        return self._scored(self._ratios(evidence, self._settled(evidence)))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target, without a copy of the pool for every one of them."""
        number, targets = self._settled(evidence), simulated_confidence(evidence, self.mode)

        def scored(one: SimulatedConfidence) -> FloatArray:
            return self._scored(self._statistic(one.loss, one.expected)(number), one.members)

        while some := list(islice(targets, min(joblib.cpu_count(), _SIDE_BY_SIDE))):
            members = [one.members for one in some]  # scores have no name: they would be kept while others are made
            yield from zip(side_by_side(scored, some, records=evidence.records), members, strict=True)

    def scores_among(self, evidence: Evidence, sets: Sequence[Positions]) -> Iterator[FloatArray | None]:
        """Scores of the target beside some of the shadow models, for each set; confidences are computed once."""
        if self.mode == "offline":  # a set without an out-model of some record is refused, and the others are not
            yield from super().scores_among(evidence, sets)
            return
        number = self._settled(evidence)

        def scored(expected: FloatArray) -> FloatArray:
            return self._scored(self._statistic(evidence.target_loss, expected)(number))

        many = 2 * sets_at_once(evidence.records)
        for some in (sets[start : start + many] for start in range(0, len(sets), many)):
            expected = expected_among(evidence, self.mode, [left_out(rows, evidence.models) for rows in some])
            yield from side_by_side(scored, expected, records=evidence.records)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its number chosen: 1 online, the best on simulated targets offline."""
        return dataclasses.replace(self, **{self._number: self._settled(evidence)})  # type: ignore[type-var]


_FEW = 4000  # records that show which numbers are clearly not the best
_TARGETS = 16  # with fewer, their spread is not known well enough for that, and all records take little time
_CLEARLY = 6.0  # standard errors


def best_share(
    evidence: Evidence, statistic_of: Callable[[FloatArray, FloatArray], Statistic], *, mode: Mode, name: str
) -> float:
    """The number in [0, 1] with the largest mean AUC over all simulated targets, to two decimals (paper, App. A).

    A grid in tenths, then in hundredths around the best. In a large pool some of the records first show which numbers
    are clearly worse; only the others are compared on all records.
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
        kept = shares
        if step > 1:
            rough = np.array([areas(share, few) for share in shares])  # [shares, targets]
            behind = rough[rough.mean(axis=1).argmax()] - rough
            worse = behind.mean(axis=1) > _CLEARLY * behind.std(axis=1, ddof=1) / np.sqrt(behind.shape[1])
            kept = [share for share, far in zip(shares, worse, strict=True) if not far]
        return kept[0] if len(kept) == 1 else max(kept, key=lambda share: float(np.mean(areas(share, simulated))))

    tenth = best(np.linspace(0.0, 1.0, 11).round(2).tolist())
    near = np.arange(tenth - 0.09, tenth + 0.095, 0.01).round(2)
    # the best of the coarse grid comes first: among equals, the rounder number is kept
    return float(best([tenth, *near[(near >= 0) & (near <= 1)].tolist()]))


@register("base")
@dataclass(frozen=True, kw_only=True)
class BASE(ConfidenceAttack):
    r"""Posterior probability that a record was trained on.

    :math:`\sigma(-\ell - \alpha \log \frac1K \sum_k e^{-\ell_k} + \log\frac{\lambda}{1-\lambda})`, where :math:`\ell`
    is the target's loss on the record and :math:`\ell_k` that of shadow model k.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        scale: α, which replaces the missing in-models offline. ``"auto"`` is 1 online; offline it is tuned on
            simulated targets (paper, App. "Online vs. offline").

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> BASE().score(evidence).round(2)
        array([0.62, 0.29])
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True
    _number: ClassVar[str] = "scale"

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    scale: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.scale != "auto" and not 0 <= self.scale <= 1:
            raise InputError(f"scale: {self.scale} is not between 0 and 1.")

    def log_odds(self, evidence: Evidence) -> FloatArray:
        """Logits of the posteriors, [N]: they differ where probabilities would all round to 1."""
        return self._ratios(evidence, self._settled(evidence)) + prior_log_odds(self.prior, evidence.records)

    def _statistic(self, loss: FloatArray, expected: FloatArray) -> Statistic:
        return lambda scale: -loss - scale * expected

    def _scored(self, ratios: FloatArray, members: BoolArray | None = None) -> FloatArray:
        return np.asarray(expit(ratios + prior_log_odds(self.prior, len(ratios))))
