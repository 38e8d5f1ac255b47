"""Difficulty calibration (Watson et al., ICLR 2022): the loss, compared with the usual loss on this record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import register
from glasshouse.attacks.sides import simulated_means
from glasshouse.evidence import Evidence, Mode

__all__ = ["Calibration"]


@register("calibration")
@dataclass(frozen=True, kw_only=True)
class Calibration(Attack):
    """Mean loss of the shadow models minus the loss of the target.

    Args:
        mode: ``"online"`` averages over every shadow model, ``"offline"`` over those without the record, as Watson.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[1, 0], [0, 1]]
        ... )
        >>> Calibration(mode="offline").score(evidence).round(2)
        array([ 0.6, -1. ])
    """

    quick_simulation: ClassVar[bool] = True

    mode: Mode = "online"

    def score(self, evidence: Evidence) -> FloatArray:
        """Calibrated negative losses, [N]."""
        usual: FloatArray = evidence.shadow_loss.mean(axis=0, where=evidence.references(self.mode))
        return usual - evidence.target_loss

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target, without a copy of the pool for every one of them."""
        asked = None if self.mode == "online" else False
        for target in simulated_means(evidence, [asked], statistic=evidence.shadow_loss):
            yield target.means[:, 0] - target.margins, target.members
