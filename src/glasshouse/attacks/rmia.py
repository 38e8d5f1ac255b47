"""RMIA: the share of other records that the target favours less than this one (Zarifzadeh et al., ICML 2024).

InfoRMIA: how much more the target tells about a record than models usually do (Tao and Shokri, ICLR 2026).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.attack import Attack, QueryCount, register, seen_by
from glasshouse.attacks.base import ConfidenceAttack, Statistic
from glasshouse.attacks.prior import check_prior, prior_weights
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import cached_blocks
from glasshouse.evidence import Evidence


@register("rmia")
@dataclass(frozen=True, kw_only=True)
class RMIA(ConfidenceAttack):
    r"""Share of a population Z that the record's likelihood ratio beats by a factor γ.

    :math:`\Pr_{z \sim Z}[r(x) / r(z) \ge \gamma]` with :math:`r(x) = p(x|\theta) / p(x)`, and p(x) the mean confidence
    of the shadow models. Offline p(x) is :math:`\frac12((1 + a)\,p_{out}(x) + 1 - a)`.

    Z is sorted once and searched for each record: this costs as much as BASE and a sort, not N x Z comparisons. If Z is
    the whole population and γ = 1, the ranking is that of BASE (paper, Theorem 2).

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        gamma: γ, by how much a record of Z must be beaten.
        offline_a: a, which replaces the missing in-models offline; ``"auto"`` is tuned on simulated targets.
        prior: λ, the share of members that is expected: one number, or one per record. It changes no score; for
            thresholds, the Z of a simulated target is weighted to this share.

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> RMIA().score(evidence)
        array([1. , 0.5])
    """

    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True

    gamma: float = 1.0
    offline_a: float | Literal["auto"] = "auto"
    # not in the repr, by which experiments find stored scores: no score depends on it
    prior: float | ArrayLike = dataclasses.field(default=0.5, repr=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if not self.gamma > 0:
            raise InputError(f"gamma: {self.gamma} is not positive.")
        _check_share(self.offline_a)

    def score(self, evidence: Evidence, population: Evidence | None = None) -> FloatArray:
        """Scores, [N]; higher means member.

        Args:
            evidence: the records to score.
            population: evidence about the records of Z; the scored records themselves by default.
        """
        share = self._settled(evidence)
        own = self._ratios(evidence, share)
        if population is None:
            return self._scored(own)
        others = np.sort(self._ratios(seen_by(self, population), share))
        return np.asarray(np.searchsorted(others, own - np.log(self.gamma), side="right") / len(others))

    def _scored(self, ratios: FloatArray, members: BoolArray | None = None) -> FloatArray:
        """The share of the ratios of Z, their own records, that each ratio [N] beats by γ.

        The Z of a simulated target is weighted to the prior.
        """
        weights = np.ones(len(ratios)) if members is None else prior_weights(members, self.prior)
        order = np.argsort(ratios)
        ranked = ratios[order]  # searched in this order, which is many times faster than in any other
        if (ranked[1:] == ranked[:-1]).any():  # the order of equals, which a slower sort keeps, is that of the sums
            order = np.argsort(ratios, kind="stable")
        total, upto = weights.sum(), np.zeros(len(ratios) + 1)
        np.take(weights, order, out=upto[1:], mode="clip")
        np.cumsum(upto[1:], out=upto[1:])
        for some in cached_blocks(len(ratios), models=1):
            beaten = np.searchsorted(ranked, ranked[some] - np.log(self.gamma), side="right")
            weights[order[some]] = upto[beaten] / total  # in the memory of the weights
        return weights

    def _statistic(self, loss: FloatArray, expected: FloatArray) -> Statistic:
        """Log of r(x), [N], as a function of a; a = 1 leaves the mean confidence, log p(x) [N], as it is."""

        def ratio(share: float) -> FloatArray:
            if share == 1.0:
                return np.asarray(-loss - expected)
            return np.asarray(-loss - np.log((1 + share) * confidence() + (1 - share)) + np.log(2.0))

        confidence = functools.cache(lambda: np.exp(expected))
        return ratio

    def queries(self, evidence: Evidence) -> QueryCount:
        """The queries of BASE about the record, and the same about each record of Z, which all records share."""
        each = super().queries(evidence).per_record
        return QueryCount(each, shared=round(each * evidence.records))


def _check_share(share: float | Literal["auto"]) -> None:
    if share != "auto" and not 0 <= share <= 1:
        raise InputError(f"offline_a: {share} is not between 0 and 1.")


@register("informia")
@dataclass(frozen=True, kw_only=True)
class InfoRMIA(ConfidenceAttack):
    r"""Information gained about a record, plus the divergence that is usual: a continuous form of RMIA.

    :math:`\log\frac{p(x|\theta)}{p(x)} + D_{KL}(p(z) \,\|\, p(z|\theta))`, where p(x) is the mean confidence of the
    shadow models; offline it is :math:`\frac12((1 + a)\,p_{out}(x) + 1 - a)`, as in RMIA.

    With z from a population the divergence is one number for all records, so the order is that of BASE. For tokens the
    paper takes z from all answers that the model could give. For a classifier these are the true class and the rest:
    the score becomes :math:`(1 - p)\,(h - h_p)`, where h is the target's logit margin and :math:`h_p` that of p(x), so
    records of which models are sure anyway count less.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        over: ``"answers"`` takes z from the answers about the record itself, ``"population"`` from the records.
        offline_a: a, which replaces the missing in-models offline; ``"auto"`` is tuned on simulated targets.

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> InfoRMIA().score(evidence).round(2)
        array([ 0.92, -0.78])
    """

    version: ClassVar[int] = 2
    needs_classes: ClassVar[str] = "its divergence is between the true class and all others"

    over: Literal["answers", "population"] = "answers"
    offline_a: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if self.over not in ("answers", "population"):
            raise InputError(f'over: "{self.over}" is not one of answers, population.')
        _check_share(self.offline_a)

    def scores_among(self, evidence: Evidence, sets: Sequence[Positions]) -> Iterator[FloatArray | None]:
        """Scores of the target beside some of the shadow models, each set by itself."""
        return Attack.scores_among(self, evidence, sets)

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
