"""What eight shadow models would find, estimated from an audit with one or none: an estimate, never a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.foreseen_table import FRESH, LEVEL, TABLES, Relation, Table
from glasshouse.evaluation.intervals import Interval
from glasshouse.evaluation.roc import auc
from glasshouse.evaluation.simulated import rate_with_ties
from glasshouse.evidence import Evidence

__all__ = ["FEW_MODELS", "Foreseen", "floors", "foresee", "predicted", "signals"]

FEW_MODELS = 2  # with fewer shadow models an audit is a quick look
_FEWEST = 100  # members and others: with fewer, 1 % of them is less than one record
_FPR = 0.01
_UNSEEN = (  # benchmarks/quick_look_misses.md
    "It cannot see what the target's losses alone do not show: where records differ much in difficulty, members and "
    "others look alike, although shadow models tell them apart. There it is too low, so a low upper end does not show "
    "that the model is safe.",
    "One reference model shows a record's difficulty only roughly, so a leak that takes several to be seen can lie "
    "above the interval: a low upper end does not show that the model is safe.",
)
_WIDER = 0.5  # how far a signal may lie outside of what the table was learned from, in units of a normal quantile


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """An estimate of what the strongest attack with eight shadow models would find on the same target.

    Args:
        models: the shadow models that the estimate is made from, 0 or 1.
        auc: the estimated AUC.
        auc_interval: a prediction interval of it.
        tpr: the estimated TPR at 1 % FPR.
        tpr_interval: a prediction interval of it.
        level: of the intervals.
        auc_held: how often such intervals held the AUC, on data that they were not learned from.
        tpr_held: the same for the TPR.
        targets: how many targets they were learned from.
        sources: of how many sources of data.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> members = np.arange(1000) < 500
        >>> evidence = Evidence(target_loss=rng.exponential(np.where(members, 0.3, 1.0)))
        >>> found = foresee(evidence, members)
        >>> found.auc_interval.low < found.auc < found.auc_interval.high
        True
    """

    models: int
    auc: float
    auc_interval: Interval
    tpr: float
    tpr_interval: Interval
    level: float
    auc_held: float
    tpr_held: float
    targets: int
    sources: int

    def sentence(self) -> str:
        """The estimate in words, for a report."""
        from_what = "one reference model" if self.models else "the target's losses alone"
        low, high = self.tpr_interval
        return (
            f"Estimate, not a measurement: the strongest attack with eight shadow models would reach an AUC of about "
            f"{self.auc:.2f} ({100 * self.level:g} % interval {self.auc_interval.low:.2f} to "
            f"{self.auc_interval.high:.2f}) and find about {100 * self.tpr:.1f} % of the members at 1 % false "
            f"positives ({100 * low:.1f} % to {100 * high:.1f} %). It is made from {from_what}, by a relation learned "
            f"from {self.targets} targets of {self.sources} sources of data; on sources that were left out, such "
            f"intervals held {100 * self.auc_held:.0f} % and {100 * self.tpr_held:.0f} % of the time, and on tables "
            f"that came later {100 * FRESH.auc:.0f} % and {100 * FRESH.tpr:.0f} %. {_UNSEEN[self.models]} Train eight "
            f"shadow models to know."
        )


def foresee(evidence: Evidence, members: BoolArray, *, tables: Mapping[int, Table] = TABLES) -> Foreseen | None:
    """The estimate for a target; None with two or more shadow models, few records, or figures unlike all that is known.

    Args:
        evidence: losses of the target, and of at most one reference model.
        members: [N] of the target; at least one hundred, and as many others.
        tables: what was learned, by the number of shadow models.

    Example:
        >>> foresee(Evidence(target_loss=[0.1, 2.0]), np.array([True, False])) is None  # too few records
        True
    """
    if evidence.regression:  # the relation was learned from classifiers
        return None
    if evidence.models >= FEW_MODELS or min(int(members.sum()), int((~members).sum())) < _FEWEST:
        return None
    table = tables[evidence.models]
    reference = evidence.shadow_loss[0] if evidence.models else None
    found = signals(evidence.target_loss, members, reference)
    if not _familiar(found, table):
        return None
    measured = floors(evidence.target_loss, members, reference)
    area, rate = (
        predicted(found, relation, floor) for relation, floor in zip((table.auc, table.tpr), measured, strict=True)
    )
    return Foreseen(
        models=evidence.models,
        auc=float(ndtr(area[1] / np.sqrt(2))),
        auc_interval=Interval(*(float(ndtr(end / np.sqrt(2))) for end in (area[0], area[2]))),
        tpr=float(ndtr(rate[1])),
        tpr_interval=Interval(*(float(ndtr(end)) for end in (rate[0], rate[2]))),
        level=LEVEL,
        auc_held=table.auc.held,
        tpr_held=table.tpr.held,
        targets=table.targets,
        sources=table.sources,
    )


def signals(loss: FloatArray, members: BoolArray, reference: FloatArray | None = None) -> FloatArray:
    """What the estimate is made from, [3] from the target alone, [5] with a reference model.

    The separation that the AUC of the loss means for two normal distributions; the normal quantile of the share of
    non-members whose loss is above that of all but 1 % of the members (Dodd et al., 2025: members have left the tail);
    the share of non-members that the target gives less than one half. With a reference model also the separation by
    the difference of the two losses, and the normal quantile of its TPR at 1 % FPR.

    Args:
        loss: [N] of the target.
        members: [N].
        reference: [N] losses of the reference model.
    """
    calibrated = [] if reference is None else [reference - loss]
    found = [_separation(-loss, members), _quantile(loss, ~members), float((loss[~members] > np.log(2)).mean())]
    for scores in calibrated:
        found += [_separation(scores, members), _quantile(scores, members)]
    return np.array(found)


def _separation(scores: FloatArray, members: BoolArray) -> float:
    """The distance of two normal distributions with this AUC."""
    return float(ndtri(_inside(auc(scores, members), members)) * np.sqrt(2))


def _quantile(scores: FloatArray, positive: BoolArray) -> float:
    """The normal quantile of the TPR at 1 % FPR, ties broken at random."""
    return float(ndtri(_inside(rate_with_ties(scores, positive, _FPR)[0], positive)))


def _inside(share: float, members: BoolArray) -> float:
    """A share that is at least half a record away from 0 and 1."""
    half = 0.5 / min(int(members.sum()), int((~members).sum()))
    return float(np.clip(share, half, 1 - half))


def floors(loss: FloatArray, members: BoolArray, reference: FloatArray | None = None) -> tuple[float, float]:
    """What was measured, less two standard errors, in the units of the figures: a lower end is never above it.

    A model that leaks nothing looks, without shadow models, like one whose members only a reference model shows. So if
    nothing is measured, the interval has to hold "eight find nothing" too.
    """
    scores = -loss if reference is None else reference - loss
    inside, outside = int(members.sum()), int((~members).sum())
    area = auc(scores, members) - 2 * np.sqrt((inside + outside + 1) / (12 * inside * outside))
    share = _inside(rate_with_ties(scores, members, _FPR)[0], members)
    rate = share - 2 * np.sqrt(2 * share * (1 - share) / min(inside, outside))
    return float(ndtri(_inside(area, members)) * np.sqrt(2)), float(ndtri(_inside(rate, members)))


def predicted(found: FloatArray, relation: Relation, floor: float) -> tuple[float, float, float]:
    """The lower end, the estimate and the upper end of a figure, in units of a normal quantile.

    The strongest attack is never worse than guessing, so an estimate is never below chance: the line was learned from
    targets that leak, and where nothing leaks it goes on below chance.
    """
    middle = max(relation.chance, relation.constant + float(np.dot(relation.slopes, found)))
    unit = relation.spread(middle)
    return min(middle + unit * relation.below, floor), middle, middle + unit * relation.above


def _familiar(found: FloatArray, table: Table) -> bool:
    """Whether every signal is within what the table was learned from, or a little outside."""
    low, high = np.array(table.lowest) - _WIDER, np.array(table.highest) + _WIDER
    return bool(((found >= low) & (found <= high)).all())
