"""Attack-R (Ye et al., CCS 2022): the rank of the target's loss among models without the record."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.attacks.queries import Queries
from glasshouse.attacks.registry import Attack, register
from glasshouse.evidence import Evidence
from glasshouse.numerics import FloatArray

__all__ = ["AttackR"]


@register("attack-r")
@dataclass(frozen=True, kw_only=True)
class AttackR(Attack):
    """Share of out-models with a larger loss than the target's, ties counting half. It has no online form.

    One less the score estimates the false-positive rate at which a record is called a member; with few out-models it
    takes few values.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.6, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[0, 0], [0, 1]]
        ... )
        >>> AttackR().score(evidence)
        array([0.5, 0. ])
    """

    def score(self, evidence: Evidence) -> FloatArray:
        """Shares, [N]."""
        outside = evidence.references("offline")
        larger = (evidence.shadow_loss > evidence.target_loss).mean(axis=0, where=outside)
        equal = (evidence.shadow_loss == evidence.target_loss).mean(axis=0, where=outside)
        result: FloatArray = larger + equal / 2
        return result

    def queries(self, evidence: Evidence) -> Queries:
        """The target and the out-models."""
        return Queries(1 + float((~evidence.shadow_members).sum(axis=0).mean()))
