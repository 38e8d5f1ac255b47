"""The loss calibrated by class: how much surer the target is of a record than of others of the same class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin

__all__ = ["ClassLoss"]


@register("class-loss")
@dataclass(frozen=True, kw_only=True)
class ClassLoss(Attack):
    """The target's margin minus the median margin of the audited records with the same label.

    It asks no shadow model and does not need to know any member: the median is over members and others alike. One
    threshold for it is one threshold per class for the loss (Song and Mittal, 2021).

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 0.2, 1.0, 2.0], labels=[0, 0, 1, 1])
        >>> ClassLoss().score(evidence).round(2)
        array([ 0.37, -0.37,  0.66, -0.66])
    """

    least_models: ClassVar[int] = 0
    needs_classes: ClassVar[str] = "it compares records of one class"

    def score(self, evidence: Evidence) -> FloatArray:
        """Margins above the median of the class, [N]."""
        if evidence.labels is None:
            raise InputError("class-loss: it compares records of one class, but the evidence has no labels.")
        margins = loss_to_margin(evidence.target_loss)
        usual = np.empty_like(margins)
        for label in np.unique(evidence.labels):
            same = evidence.labels == label
            usual[same] = np.median(margins[same])
        return np.asarray(margins - usual)

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone, once per record."""
        return QueryCount(1.0)
