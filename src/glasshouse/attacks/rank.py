"""Attack-R (Ye et al., CCS 2022): the rank of the target's loss among models without the record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin

__all__ = ["AttackR"]

_WIDEST = 710.0  # margins of losses that float64 can resolve are within this


@register("attack-r")
@dataclass(frozen=True, kw_only=True)
class AttackR(Attack):
    """Share of out-models with a larger loss than the target's, ties count half. It has no online form.

    1 minus the share estimates the false-positive rate at which a record is called a member. With few out-models it
    takes few values: with four, all members of an overfitted model and a fifth of the others have the highest value.
    So records with the same share are ordered by the target's loss, which adds less than half a step between shares.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.6, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[0, 0], [0, 1]]
        ... )
        >>> AttackR().score(evidence).round(2)
        array([0.56, 0.12])
    """

    def score(self, evidence: Evidence) -> FloatArray:
        """Shares, [N], each with less than half a step added by the margin of the target."""
        outside = evidence.references("offline")
        larger = (evidence.shadow_loss > evidence.target_loss).mean(axis=0, where=outside)
        equal = (evidence.shadow_loss == evidence.target_loss).mean(axis=0, where=outside)
        margin = np.clip(loss_to_margin(evidence.target_loss), -_WIDEST, _WIDEST)
        within = 0.5 + 0.499 * margin / _WIDEST  # in (0, 1), linear, so that different margins stay different
        result: FloatArray = larger + equal / 2 + within / (4 * outside.sum(axis=0))
        return result

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target and the out-models."""
        return QueryCount(1 + float((~evidence.shadow_members).sum(axis=0).mean()))
