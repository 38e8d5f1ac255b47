"""The regressed likelihood ratio: LiRA whose means are learned from simulated targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.in_out_moments import Moments, side_moments, simulated_moments, wanted_sides
from glasshouse.attacks.shared.prior import check_prior, prior_log_odds
from glasshouse.attacks.shared.regression import Example, SidesFit, fit_sides, record_folds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evidence import Evidence, Mode


@register("regressed")
@dataclass(frozen=True, kw_only=True)
class Regressed(Attack):
    r"""Posterior probability of membership from the likelihood ratio of two regressions.

    The margin h of a record given membership m is Gaussian with mean
    :math:`a_m + b_m \mu_{in} + c_m \mu_{out}` and variance :math:`\sigma_m^2`, where :math:`\mu_{in}` and
    :math:`\mu_{out}` are the record's mean margins over in- and out-models. The eight numbers are fitted by
    least squares to all simulated targets. Offline there is no :math:`\mu_{in}`, and the six numbers that judge a
    record come only from other records: an attacker without in-models of a record cannot learn from them.

    LiRA uses the means of a few models as they are. Here noisy means are shrunk as far as they mislead. For a
    regression h is the residual, as for LiRA: that of a member is pulled towards 0 by a factor, which a line can learn.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the record.
        prior: λ, the share of members expected before looking at the model: one number, or one per record.
        folds: number of groups of records for fitting offline.
        seed: seed of the draw of these groups.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (3, 1)), 20, axis=1).astype(bool)  # [6, 40]
        >>> loss = np.logaddexp(0.0, rng.normal(size=(6, 40)) - 3.0 * members)
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss[2:], shadow_members=members[2:])
        >>> scores = Regressed().score(evidence)  # the first twenty trained the target
        >>> scores[:20].mean().round(1), scores[20:].mean().round(1)
        (np.float64(0.9), np.float64(0.0))
    """

    version: ClassVar[int] = 2
    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True
    learns_elsewhere: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    folds: int = 5
    seed: int = 0
    fit_: SidesFit | None = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2:
            raise InputError(f"folds: {self.folds} is too few; a record's numbers come from other folds. Use 5.")

    def score(self, evidence: Evidence) -> FloatArray:
        """Posteriors, [N]; higher means member."""
        return np.asarray(expit(self.log_odds(evidence)))

    def log_odds(self, evidence: Evidence) -> FloatArray:
        """Logits of the posteriors, [N]: they differ where probabilities would all round to 1."""
        known = prior_log_odds(self.prior, evidence.records)
        signals = mean_margins(side_moments(evidence, self.mode))
        return np.asarray(self._fit(evidence).log_ratio(signals, evidence.target_statistic[:, None]) + known)

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with its numbers fitted to this pool; it does not look at the target's losses.

        Thresholds score simulated targets by numbers that were fitted to them too. Eight numbers from thousands of
        answers cannot remember one model, so these scores are as good as those of new targets.
        """
        return dataclasses.replace(self, fit_=self._fit(evidence))

    def _fit(self, evidence: Evidence) -> SidesFit:
        folds = record_folds(evidence.records, mode=self.mode, folds=self.folds, seed=self.seed)
        return self.fit_ or fit_sides(self._examples(evidence), folds)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Posteriors [N] and members [N] of each simulated target, all of them in one pass over the pool."""
        fit = self._fit(evidence)
        known = prior_log_odds(self.prior, evidence.records)
        for signals, margins, members in self._examples(evidence):
            yield np.asarray(expit(fit.log_ratio(signals, margins) + known)), members

    def _examples(self, evidence: Evidence) -> Iterator[Example]:
        for one in simulated_moments(evidence, wanted_sides(self.mode), spread=False):
            yield Example(mean_margins(one.sides), one.statistic[:, None], one.members)


def mean_margins(sides: Sequence[Moments]) -> FloatArray:
    """Mean margins [N, 2] of each record over in- and out-models; offline over out-models only, [N, 1]."""
    return np.stack([side.mean for side in reversed(sides)], axis=1)
