"""BASE: the Bayes-approximate membership posterior of one record (paper, Definition 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from glasshouse.attacks.registry import register
from glasshouse.attacks.shared.prior import check_prior, prior_log_odds
from glasshouse.attacks.shared.reference_confidence import ConfidenceAttack, Statistic
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evidence import Evidence, Mode


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
