"""BASE with a temperature, and with an estimate of what a model shows about a record before its label is seen.

Sablayrolles' rule (ICML 2019) has a temperature T, and the paper's Theorem 1 a ratio Λ of the models' likelihoods
before labels are seen; BASE and G-BASE set both to 1. Here signals are divided by T, and log Λ is estimated by c times
the record's excess of certainty: by how much the target is surer of it than the shadow models are, whatever its label.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.prior import check_prior, prior_log_odds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import area_under_roc, log_mean_exp
from glasshouse.evidence import Evidence, Mode

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
