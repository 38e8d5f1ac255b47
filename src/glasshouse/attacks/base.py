"""BASE, and what attacks share that compare a target's loss with the confidence that shadow models lead to expect.

BASE with a temperature, and with an estimate of what a model shows about a record before its label is seen:
Sablayrolles' rule (ICML 2019) has a temperature T, and the paper's Theorem 1 a ratio Λ of the models' likelihoods
before labels are seen; BASE and G-BASE set both to 1. Here signals are divided by T, and log Λ is estimated by c times
the record's excess of certainty: by how much the target is surer of it than the shadow models are, whatever its label.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax

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
        del expected  # before the next are made


Statistic = Callable[[float], FloatArray]


@dataclass(frozen=True, kw_only=True)
class ConfidenceAttack(Attack):
    """An attack on a statistic of the loss, the expected log-confidence and one number, which is tuned offline."""

    quick_simulation: ClassVar[bool] = True
    _number: ClassVar[str] = "offline_a"  # the field that holds the number, or "auto"

    mode: Mode = "online"

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

        while some := list(islice(targets, 2 * sets_at_once(evidence.records))):
            members = [one.members for one in some]  # scores have no name: they would be kept while others are made
            yield from zip(side_by_side(scored, some, records=evidence.records), members, strict=True)
            some.clear()

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
            left = [left_out(rows, evidence.models) for rows in some]
            yield from side_by_side(scored, expected_among(evidence, self.mode, left), records=evidence.records)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its number chosen: 1 online, the best on simulated targets offline."""
        settled: dict[str, Any] = {self._number: self._settled(evidence)}
        return dataclasses.replace(self, **settled)


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


TEMPERATURES = (1.0, 0.85, 1.2, 0.7, 1.5, 0.5, 2.0, 0.35, 3.0, 0.25, 4.0)  # those near 1 first: equals keep the first
RATIOS = (0.0, 0.5, -0.5, 1.0, 2.0)
Number = float | Literal["auto"]


class Signals(NamedTuple):
    """What the log-odds of one target are made of."""

    own: FloatArray  # [M, N] its signals: losses, or S of eq. (6) under M training sets
    others: FloatArray  # [K, M, N] those of the shadow models
    usable: BoolArray | None  # [K, N] which shadow models are compared with; None for all
    surer: FloatArray  # [N] excess of certainty, in nats


def tempered_odds(signals: Signals, temperature: float, ratio: float) -> FloatArray:
    """Log-odds without the prior, [M, N]: the paper's rule on signals / T, plus c times the excess of certainty."""
    own, others = signals.own / temperature, signals.others / temperature
    rows = [
        -one - log_mean_exp(-some, where=signals.usable) for one, some in zip(own, others.swapaxes(0, 1), strict=True)
    ]
    return np.stack(rows) + ratio * signals.surer


def excess_of_certainty(target: ArrayLike, shadows: ArrayLike, usable: BoolArray | None) -> FloatArray:
    """By how much the target's answers [N, C] have less entropy than those of the shadow models [K, N, C], [N] in nats.

    Example:
        >>> excess_of_certainty([[9.0, 0.0]], [[[0.0, 0.0]], [[0.0, 0.0]]], None).round(2)
        array([0.69])
    """
    certain = _certainty(shadows)
    if usable is None:
        return np.asarray(_certainty(target) - certain.mean(axis=0))
    return np.asarray(_certainty(target) - (certain * usable).sum(axis=0) / usable.sum(axis=0))


def _certainty(logits: ArrayLike) -> FloatArray:
    """Negative entropy of answers [..., C]; a class that is never answered adds nothing."""
    logs = log_softmax(np.asarray(logits, dtype=np.float64), axis=-1)
    shares = np.exp(logs)
    return np.asarray(np.where(shares > 0, shares * np.where(shares > 0, logs, 0.0), 0.0).sum(axis=-1))


def best_numbers(
    simulated: Sequence[tuple[Signals, BoolArray]], temperature: Number, ratio: Number
) -> tuple[float, float]:
    """T and c with the largest mean AUC over simulated targets, where they are ``"auto"``; 1 and 0 among equals."""
    cases = [
        (one, other)
        for other in (RATIOS if ratio == "auto" else (float(ratio),))
        for one in (TEMPERATURES if temperature == "auto" else (float(temperature),))
    ]

    def area(case: tuple[float, float]) -> float:
        found = [(tempered_odds(signals, *case), members) for signals, members in simulated]
        return float(np.mean([area_under_roc(mean_posterior(odds), members) for odds, members in found]))

    return cases[0] if len(cases) == 1 else max(cases, key=area)


def mean_posterior(odds: FloatArray) -> FloatArray:
    """The mean of the posteriors under M training sets, [N], from log-odds [M, N]; of one set the log-odds."""
    return odds[0] if len(odds) == 1 else np.asarray(expit(odds).mean(axis=0))


def check_numbers(temperature: Number, ratio: Number) -> None:
    """Refuse a T that is not positive, and a c that is not finite."""
    if temperature != "auto" and not 0 < temperature < np.inf:
        raise InputError(f'temperature: {temperature} is not positive; use "auto" to tune it on simulated targets.')
    if ratio != "auto" and not np.isfinite(ratio):
        raise InputError(f'ratio: {ratio} is not a number; use "auto" to tune it on simulated targets.')


@register("base-tempered")
@dataclass(frozen=True, kw_only=True)
class TemperedBASE(Attack):
    r"""Log-odds of BASE with a temperature T and an estimated ratio Λ.

    :math:`-\ell / T - \log \frac1K \sum_k e^{-\ell_k / T} + c E + \log\frac{\lambda}{1-\lambda}`, where E is the
    target's negative entropy minus the mean of the shadow models'. It needs the answers for all classes.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        temperature: T; ``"auto"`` is tuned on simulated targets.
        ratio: c; ``"auto"`` is tuned on simulated targets. With T = 1 and c = 0 this is BASE online.

    Example:
        >>> logits = np.array([[[4.0, 0.0], [0.0, 0.5]], [[0.5, 0.0], [0.0, 4.0]]])  # [K, N, C]
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 0.1], shadow_loss=[[0.1, 1.0], [1.0, 0.1]], shadow_members=[[1, 0], [0, 1]],
        ...     target_logits=logits[0], shadow_logits=logits,
        ... )
        >>> TemperedBASE(temperature=1.0, ratio=1.0).score(evidence).round(2)
        array([0.64, 0.07])
    """

    needs_logits: ClassVar[bool] = True
    needs_classes: ClassVar[str] = "it looks at the probabilities of all classes"

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    temperature: Number = "auto"
    ratio: Number = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        check_numbers(self.temperature, self.ratio)

    def score(self, evidence: Evidence) -> FloatArray:
        """Log-odds, [N]; higher means member."""
        settled = self.tuned(evidence)
        odds = tempered_odds(self._signals(evidence), float(settled.temperature), float(settled.ratio))
        return np.asarray(odds[0] + prior_log_odds(self.prior, evidence.records))

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with T and c chosen on simulated targets."""
        if "auto" not in (self.temperature, self.ratio):
            return self
        simulated = [(self._signals(target.view), target.members) for target in evidence.simulated()]
        temperature, ratio = best_numbers(simulated, self.temperature, self.ratio)
        return dataclasses.replace(self, temperature=temperature, ratio=ratio)

    def _signals(self, evidence: Evidence) -> Signals:
        if evidence.target_logits is None or evidence.shadow_logits is None:
            raise InputError(
                "base-tempered: it looks at all classes, but the evidence holds only losses. Give logits or "
                "probabilities, or leave this attack out."
            )
        usable = None if self.mode == "online" else evidence.references(self.mode)
        surer = excess_of_certainty(evidence.target_logits, evidence.shadow_logits, usable)
        return Signals(evidence.target_loss[None], evidence.shadow_loss[:, None], usable, surer)
