"""RMIA: the share of other records that the target favours less than this one (Zarifzadeh et al., ICML 2024)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack, seen_by
from glasshouse.attacks.expected import SimulatedConfidence, expected_among, expected_confidence, simulated_confidence
from glasshouse.attacks.prior import check_prior, prior_weights
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.attacks.sides import left_out
from glasshouse.attacks.tuning import Statistic, best_share
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.threads import side_by_side

__all__ = ["RMIA"]

_TARGETS = 8  # simulated targets that are scored side by side


@register("rmia")
@dataclass(frozen=True, kw_only=True)
class RMIA(Attack):
    r"""Share of a population Z that the record's likelihood ratio beats by a factor γ.

    :math:`\Pr_{z \sim Z}[r(x) / r(z) \ge \gamma]` with :math:`r(x) = p(x|\theta) / p(x)`, and p(x) the mean confidence
    of the shadow models. Offline p(x) is :math:`\frac12((1 + a)\,p_{out}(x) + 1 - a)`.

    Z is sorted once and searched for each record: this costs as much as BASE and a sort, not N x Z comparisons. If Z is
    the whole population and γ = 1, the ranking is that of BASE (paper, Theorem 2).

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        gamma: γ, by how much a record of Z must be beaten.
        offline_a: a, which replaces the missing in-models offline; ``"auto"`` is tuned on simulated targets.
        prior: λ, the share of members that is expected: one number, or one per record. It changes no score. But the
            score is a share of Z, and so depends on how many of Z are members: for thresholds, the Z of a simulated
            target is weighted to this share.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[1, 0], [0, 1]]
        ... )
        >>> RMIA().score(evidence)
        array([1. , 0.5])
    """

    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    gamma: float = 1.0
    offline_a: float | Literal["auto"] = "auto"
    # not in the repr, by which experiments find stored scores: no score depends on it
    prior: float | ArrayLike = dataclasses.field(default=0.5, repr=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if not self.gamma > 0:
            raise InputError(f"gamma: {self.gamma} is not positive.")
        if self.offline_a != "auto" and not 0 <= self.offline_a <= 1:
            raise InputError(f"offline_a: {self.offline_a} is not between 0 and 1.")

    def score(self, evidence: Evidence, population: Evidence | None = None) -> FloatArray:
        """Scores, [N]; higher means member.

        Args:
            evidence: the records to score.
            population: evidence about the records of Z; the scored records themselves by default.
        """
        share = float(self.tuned(evidence).offline_a)
        ratios = self._ratios(evidence, share)
        return self._beaten(ratios, ratios if population is None else self._ratios(seen_by(self, population), share))

    def scores_among(self, evidence: Evidence, sets: Sequence[NDArray[np.intp]]) -> Iterator[FloatArray | None]:
        """Scores of the target beside some of the shadow models, for each set; confidences are computed once."""
        if self.mode == "offline":  # a set without an out-model of some record is refused, and the others are not
            yield from super().scores_among(evidence, sets)
            return

        def beaten(expected: FloatArray) -> FloatArray:
            ratios = _statistic(evidence.target_loss, expected)(1.0)
            return self._beaten(ratios, ratios)

        left = [left_out(rows, evidence.models) for rows in sets]
        yield from side_by_side(beaten, expected_among(evidence, self.mode, left), records=evidence.records)

    def _beaten(self, ratios: FloatArray, others: FloatArray) -> FloatArray:
        """The share of the ratios of Z that each ratio [N] beats."""
        order = np.argsort(ratios)  # a search in this order is many times faster than in any other
        scores = np.empty(len(ratios))
        scores[order] = np.searchsorted(np.sort(others), ratios[order] - np.log(self.gamma), side="right")
        return scores / len(others)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target; the Z of each, its own records, is weighted to the prior."""
        share = float(self.tuned(evidence).offline_a)
        targets = simulated_confidence(evidence, self.mode)
        while some := list(islice(targets, _TARGETS)):
            scores = side_by_side(lambda one: self._simulated(one, share), some, records=evidence.records)
            yield from ((found, one.members) for found, one in zip(scores, some, strict=True))

    def _simulated(self, target: SimulatedConfidence, share: float) -> FloatArray:
        """Scores [N] of one simulated target."""
        ratios = _statistic(target.loss, target.expected)(share)
        weights = prior_weights(target.members, self.prior)
        order = np.argsort(ratios)
        ranked = ratios[order]  # searched in this order, which is many times faster than in any other
        if (ranked[1:] == ranked[:-1]).any():  # the order of equals, which a slower sort keeps, is that of the sums
            order = np.argsort(ratios, kind="stable")
        beaten = np.searchsorted(ranked, ranked - np.log(self.gamma), side="right")
        scores = np.empty(len(ratios))
        scores[order] = np.append(0.0, np.cumsum(weights[order]))[beaten] / weights.sum()
        return scores

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its a chosen: 1 online, which leaves p(x) as it is; tuned on the pool offline."""
        if self.mode == "online":
            return dataclasses.replace(self, offline_a=1.0)
        if self.offline_a != "auto":
            return self
        return dataclasses.replace(self, offline_a=best_share(evidence, _statistic, mode=self.mode, name="offline_a"))

    def queries(self, evidence: Evidence) -> QueryCount:
        """The queries of BASE about the record, and the same about each record of Z, which all records share."""
        each = super().queries(evidence).per_record
        return QueryCount(each, shared=round(each * evidence.records))

    def _ratios(self, evidence: Evidence, share: float) -> FloatArray:
        return _statistic(evidence.target_loss, expected_confidence(evidence, self.mode))(share)


def _statistic(loss: FloatArray, expected: FloatArray) -> Statistic:
    """Log of r(x), [N], as a function of a; a = 1 leaves the mean confidence, log p(x) [N], as it is."""

    def ratio(share: float) -> FloatArray:
        if share == 1.0:
            return np.asarray(-loss - expected)
        return np.asarray(-loss - np.log((1 + share) * confidence() + (1 - share)) + np.log(2.0))

    confidence = functools.cache(lambda: np.exp(expected))
    return ratio
