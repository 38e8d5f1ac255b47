"""InfoRMIA: how much more the target tells about a record than models usually do (Tao and Shokri, ICLR 2026)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.expected import expected_confidence, simulated_confidence
from glasshouse.attacks.registry import register
from glasshouse.attacks.tuning import Statistic, best_share
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.numerics import loss_to_margin

__all__ = ["InfoRMIA"]


@register("informia")
@dataclass(frozen=True, kw_only=True)
class InfoRMIA(Attack):
    r"""Information gained about a record, plus the divergence that is usual: a continuous form of RMIA.

    :math:`\log\frac{p(x|\theta)}{p(x)} + D_{KL}(p(z) \,\|\, p(z|\theta))`, where p(x) is the mean confidence of the
    shadow models; offline it is :math:`\frac12((1 + a)\,p_{out}(x) + 1 - a)`, as in RMIA.

    For whole records the paper takes z from a population. The divergence is then one number for all records, so the
    order is that of BASE, and of RMIA with γ = 1. For tokens it takes z from the vocabulary: all answers that the model
    could give at this place. For a classifier these are the classes; of them, losses tell the true one and the rest
    apart. With these two outcomes the score becomes :math:`(1 - p)\,(h - h_p)`, where h is the target's logit margin
    and :math:`h_p` that of p(x): records of which models are sure anyway count less.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        over: ``"answers"`` takes z from the answers about the record itself, ``"population"`` from the records.
        offline_a: a, which replaces the missing in-models offline; ``"auto"`` is tuned on simulated targets.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[1, 0], [0, 1]]
        ... )
        >>> InfoRMIA().score(evidence).round(2)
        array([ 0.92, -0.78])
    """

    version: ClassVar[int] = 2
    quick_simulation: ClassVar[bool] = True
    needs_classes: ClassVar[str] = "its divergence is between the true class and all others"

    mode: Mode = "online"
    over: Literal["answers", "population"] = "answers"
    offline_a: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.over not in ("answers", "population"):
            raise InputError(f'over: "{self.over}" is not one of answers, population.')
        if self.offline_a != "auto" and not 0 <= self.offline_a <= 1:
            raise InputError(f"offline_a: {self.offline_a} is not between 0 and 1.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Information in nats, [N]; higher means member."""
        share = float(self.tuned(evidence).offline_a)
        return self._statistic(evidence.target_loss, expected_confidence(evidence, self.mode))(share)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target, without a copy of the pool for every one of them."""
        share = float(self.tuned(evidence).offline_a)
        for target in simulated_confidence(evidence, self.mode):
            yield self._statistic(target.loss, target.expected)(share), target.members

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its a chosen: 1 online, which leaves p(x) as it is; tuned on the pool offline."""
        if self.mode == "online":
            return dataclasses.replace(self, offline_a=1.0)
        if self.offline_a != "auto":
            return self
        return dataclasses.replace(
            self, offline_a=best_share(evidence, self._statistic, mode=self.mode, name="offline_a")
        )

    def _statistic(self, loss: FloatArray, expected: FloatArray) -> Statistic:
        """Scores [N] as a function of a, from losses and log p(x), [N] each."""

        def score(share: float) -> FloatArray:
            usual = expected if share == 1.0 else np.log((1 + share) / 2 * np.exp(expected) + (1 - share) / 2)
            usual = np.minimum(usual, 0.0)  # rounding may lift the log of a mean of ones above 0
            if self.over == "answers":
                return np.asarray(-np.expm1(usual) * (loss_to_margin(loss) - loss_to_margin(-usual)))
            weights = np.exp(usual - usual.max())
            return np.asarray((-loss - usual) + np.average(usual + loss, weights=weights))

        return score
