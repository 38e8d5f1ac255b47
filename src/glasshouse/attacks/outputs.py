"""Attacks on all of the target's answer, without shadow models: modified entropy, and the hinge of the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from glasshouse.arrays import FloatArray, IntArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin

__all__ = ["Hinge", "ModifiedEntropy"]


@register("modified-entropy")
@dataclass(frozen=True, kw_only=True)
class ModifiedEntropy(Attack):
    r"""The negative modified entropy (Song and Mittal, 2021): small if the target is sure of the true class.

    :math:`-(1 - p_y) \log p_y - \sum_{i \ne y} p_i \log (1 - p_i)`, with :math:`p` the target's probabilities and
    :math:`y` the true class. It asks no shadow model.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.3], labels=[0, 0], target_logits=np.log([[0.9, 0.1], [0.1, 0.9]]))
        >>> ModifiedEntropy().score(evidence).round(2)
        array([-0.02, -4.14])
    """

    needs_logits: ClassVar[bool] = True
    least_models: ClassVar[int] = 0
    needs_classes: ClassVar[str] = "it looks at all classes"

    def score(self, evidence: Evidence) -> FloatArray:
        """Negative modified entropies, [N]."""
        logits, rows, labels = _answers(self.name, evidence)
        logs = log_softmax(logits, axis=1)  # [N, C]
        shares = np.exp(logs)
        # log(1 - p) of every class; the true one's comes from its loss, which keeps its digits near 1
        rest = np.log(np.maximum(-np.expm1(np.minimum(logs, -1e-16)), np.finfo(np.float64).tiny))
        wrong = shares * rest
        wrong[rows, labels] = 0.0
        loss = evidence.target_loss
        return np.asarray(-(-np.expm1(-loss) * loss - wrong.sum(axis=1)))

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone, once per record."""
        return QueryCount(1.0)


@register("hinge")
@dataclass(frozen=True, kw_only=True)
class Hinge(Attack):
    """The logit of the true class minus the largest other logit; it asks no shadow model.

    With two classes it orders records as the loss does.

    Example:
        >>> logits = [[3.0, 1.0, 0.0], [0.0, 2.0, 1.0]]
        >>> Hinge().score(Evidence(target_loss=[0.2, 2.4], labels=[0, 0], target_logits=logits))
        array([ 2., -2.])
    """

    needs_logits: ClassVar[bool] = True
    least_models: ClassVar[int] = 0
    needs_classes: ClassVar[str] = "it looks at all classes"

    def score(self, evidence: Evidence) -> FloatArray:
        """Differences of logits, [N]."""
        logits, rows, labels = _answers(self.name, evidence)
        if logits.shape[1] == 2:
            return loss_to_margin(evidence.target_loss)  # the same number, with all of its digits
        own = logits[rows, labels]
        others = logits.copy()
        others[rows, labels] = -np.inf
        return np.asarray(own - others.max(axis=1))

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target alone, once per record."""
        return QueryCount(1.0)


def _answers(name: str, evidence: Evidence) -> tuple[FloatArray, NDArray[np.intp], IntArray]:
    """Logits [N, C], row numbers [N] and true columns [N]; refused where the evidence has losses only."""
    if evidence.target_logits is None or evidence.labels is None:
        raise InputError(f"{name}: it looks at all classes; give logits and labels, not only losses.")
    return evidence.target_logits.astype(np.float64), np.arange(evidence.records), evidence.labels
