"""The loss threshold (Yeom et al., 2018): records that the target fits well are called members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from glasshouse.arrays import FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.evidence import Evidence

__all__ = ["LossThreshold"]


@register("loss")
@dataclass(frozen=True, kw_only=True)
class LossThreshold(Attack):
    """The negative loss of the target; it asks no shadow model.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> LossThreshold().score(evidence)
        array([-0.1, -2. ])
    """

    least_models: ClassVar[int] = 0

    def score(self, evidence: Evidence) -> FloatArray:
        """Negative losses, [N]."""
        return -evidence.target_loss

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone, once per record."""
        return QueryCount(1.0)
