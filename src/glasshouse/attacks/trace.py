"""The trace: how far the loss on a record fell while the target was trained; only its owner can know this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from glasshouse.arrays import FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.evidence.trace import loss_falls

__all__ = ["TraceFall"]


@register("trace")
@dataclass(frozen=True, kw_only=True)
class TraceFall(Attack):
    """Mean loss over the first quarter of the training minus mean loss over the last quarter.

    The target's own early epochs replace a reference model: they show how difficult a record is before it is
    remembered. It is the signed form of the interquartile range of the loss trace (Pollock et al., 2024), since the
    loss of a non-member may rise. An attacker from outside has no such losses, so it is shown as a limit, never as the
    strongest attack.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.0], target_trace=[[2.0, 1.5], [0.9, 1.2], [0.2, 1.9], [0.1, 2.0]])
        >>> TraceFall().score(evidence)
        array([ 1.9, -0.5])
    """

    needs_trace: ClassVar[bool] = True
    least_models: ClassVar[int] = 0

    @property
    def knows_truth(self) -> bool:
        """True: it is given what nobody outside has."""
        return True

    def score(self, evidence: Evidence) -> FloatArray:
        """Falls of the loss, [N]."""
        if evidence.target_trace is None:
            raise InputError("trace: it needs losses from the training of the target: pass trace=LossTrace(…).")
        return loss_falls(evidence.target_trace)

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target at every recorded moment of its training."""
        return QueryCount(float(1 if evidence.target_trace is None else len(evidence.target_trace)))
