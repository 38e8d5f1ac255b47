"""BASE: the Bayes-approximate membership posterior of one record (paper, Definition 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import left_out
from glasshouse.attacks.shared.prior import check_prior, prior_log_odds
from glasshouse.attacks.shared.reference_confidence import (
    Statistic,
    best_share,
    expected_among,
    expected_confidence,
    scored_targets,
)
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.evidence import Evidence, Mode


@register("base")
@dataclass(frozen=True, kw_only=True)
class BASE(Attack):
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
    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    scale: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.scale != "auto" and not 0 <= self.scale <= 1:
            raise InputError(f"scale: {self.scale} is not between 0 and 1.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        return np.asarray(expit(self.log_odds(evidence)))

    def log_odds(self, evidence: Evidence) -> FloatArray:
        """Logits of the posteriors, [N]: they differ where probabilities would all round to 1."""
        return self._odds(evidence)(evidence.target_loss, expected_confidence(evidence, self.mode))

    def _odds(self, evidence: Evidence) -> Callable[[FloatArray, FloatArray], FloatArray]:
        """Log-odds [N] of a target of this pool, from its losses and expected log-confidences [N]."""
        known, scale = prior_log_odds(self.prior, evidence.records), float(self.tuned(evidence).scale)
        return lambda loss, expected: _statistic(loss, expected)(scale) + known

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors and members of each simulated target, without a copy of the pool for every one of them."""
        return ((expit(odds), members) for odds, members in self.simulated_log_odds(evidence))

    def simulated_log_odds(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Logits of these posteriors, and the members."""
        odds = self._odds(evidence)
        return scored_targets(evidence, self.mode, lambda target: odds(target.loss, target.expected))

    def scores_among(self, evidence: Evidence, sets: Sequence[Positions]) -> Iterator[FloatArray | None]:
        """Posteriors of the target beside some of the shadow models, for each set; confidences are computed once."""
        if self.mode == "offline":  # a set without an out-model of some record is refused, and the others are not
            yield from super().scores_among(evidence, sets)
            return
        odds = self._odds(evidence)
        for expected in expected_among(evidence, self.mode, [left_out(rows, evidence.models) for rows in sets]):
            yield expit(odds(evidence.target_loss, expected))

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its scale chosen: 1 online, the best on simulated targets offline."""
        if self.scale != "auto":
            return self
        settled = 1.0 if self.mode == "online" else best_share(evidence, _statistic, mode=self.mode, name="scale")
        return dataclasses.replace(self, scale=settled)


def _statistic(loss: FloatArray, expected: FloatArray) -> Statistic:
    return lambda scale: -loss - scale * expected
