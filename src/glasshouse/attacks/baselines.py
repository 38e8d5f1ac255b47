"""Attacks that compare one number of a record: its loss, its rank, its fall in training, or the whole answer.

The loss threshold (Yeom et al., 2018), the loss by class, difficulty calibration (Watson et al., ICLR 2022), Attack-R
(Ye et al., CCS 2022), the training trace that only the owner has, modified entropy and the hinge of the logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax
from scipy.stats import rankdata

from glasshouse.attacks.attack import Attack, QueryCount, register
from glasshouse.attacks.in_out_moments import simulated_moments
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import over_records
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import check_simulation, left_out_models, rows_without
from glasshouse.evidence.trace import loss_falls


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


@register("calibration")
@dataclass(frozen=True, kw_only=True)
class Calibration(Attack):
    """Mean loss of the shadow models minus the loss of the target.

    Args:
        mode: ``"online"`` averages over every shadow model, ``"offline"`` over those without the record, as Watson.

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
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
        for target in simulated_moments(evidence, [asked], statistic=evidence.shadow_loss):
            yield target.sides[0].mean - target.statistic, target.members


_WIDEST = 710.0  # margins of losses that float64 can resolve are within this


@register("attack-r")
@dataclass(frozen=True, kw_only=True)
class AttackR(Attack):
    """Share of out-models with a larger loss than the target's, ties count half. It has no online form.

    1 minus the share estimates the false-positive rate at which a record is called a member. With few out-models it
    takes few values, so records with the same share are ordered by the target's loss, which adds less than half a step.

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[0, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.6, 2.0], shadow_loss=losses, shadow_members=members)
        >>> AttackR().score(evidence).round(2)
        array([0.56, 0.12])
    """

    quick_simulation: ClassVar[bool] = True
    mode: ClassVar[Mode] = "offline"

    def score(self, evidence: Evidence) -> FloatArray:
        """Shares, [N], each with less than half a step added by the margin of the target."""
        outside = evidence.references("offline")
        larger = (evidence.shadow_loss > evidence.target_loss).sum(axis=0, where=outside)
        equal = (evidence.shadow_loss == evidence.target_loss).sum(axis=0, where=outside)
        return _shares(evidence.target_loss, larger, equal, outside.sum(axis=0))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: all models are ranked once, and a few are taken off again."""
        check_simulation(evidence.models)
        loss, outside = evidence.shadow_loss, ~evidence.shadow_members
        ranks, total = _ranks(loss, outside), outside.sum(axis=0)
        for k, left in enumerate(left_out_models(evidence.shadow_members)):
            at = (left, np.arange(evidence.records))
            gone, away = outside[at], loss[at]
            count = total - gone.sum(axis=0)
            if not count.all():
                evidence.among(rows_without(left, evidence.models)).require_side(inside=False)
            larger = ranks[0, k] - (gone & (away > loss[k])).sum(axis=0)
            equal = ranks[1, k] - (gone & (away == loss[k])).sum(axis=0)
            yield _shares(loss[k], larger, equal, count), evidence.shadow_members[k]


def _shares(loss: FloatArray, larger: IntArray, equal: IntArray, count: IntArray) -> FloatArray:
    """Scores [N] from the target's losses and the numbers of out-models: with a larger loss, with the same, and all."""
    margin = np.clip(loss_to_margin(loss), -_WIDEST, _WIDEST)
    within = 0.5 + 0.499 * margin / _WIDEST  # in (0, 1), linear, so that different margins stay different
    return np.asarray(larger / count + equal / count / 2 + within / (4 * count))


def _ranks(loss: FloatArray, outside: BoolArray) -> IntArray:
    """[2, K, N] how many out-models of a record have a larger loss than model k, and how many the same."""
    found = np.empty((2, *loss.shape), dtype=np.int64)

    def write(some: slice) -> None:
        rank = rankdata(loss[:, some], method="dense", axis=0) - 1
        here = np.zeros_like(rank)  # [K, n] out-models with a loss of each rank
        np.add.at(here, (rank, np.arange(rank.shape[1])), outside[:, some])
        for part, counts in zip(found, (here.sum(axis=0) - np.cumsum(here, axis=0), here), strict=True):
            part[:, some] = np.take_along_axis(counts, rank, axis=0)

    over_records(write, loss.shape[1], models=len(loss))
    return found


@register("trace")
@dataclass(frozen=True, kw_only=True)
class TraceFall(Attack):
    """Mean loss over the first quarter of the training minus mean loss over the last quarter.

    The target's own early epochs show how difficult a record is before it is remembered. It is the signed form of the
    interquartile range of the loss trace (Pollock et al., 2024). An attacker from outside has no such losses, so it is
    shown as a limit, never as the strongest attack.

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


def _answers(name: str, evidence: Evidence) -> tuple[FloatArray, Positions, IntArray]:
    """Logits [N, C], row numbers [N] and true columns [N]; refused where the evidence has losses only."""
    if evidence.target_logits is None or evidence.labels is None:
        raise InputError(f"{name}: it looks at all classes; give logits and labels, not only losses.")
    return evidence.target_logits.astype(np.float64), np.arange(evidence.records), evidence.labels
