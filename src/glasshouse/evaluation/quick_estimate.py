"""What eight shadow models would find, estimated from an audit with one or none: an estimate, never a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation.intervals import Interval
from glasshouse.evaluation.roc import auc
from glasshouse.evaluation.thresholds import rate_with_ties
from glasshouse.evidence import Evidence

LEVEL = 0.9  # of the prediction intervals

# how often the intervals of AUC and TPR held on tables that came after everything was settled (`cheap_fresh.md`)
FRESH = (96 / 96, 94 / 96)


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A line from signals to a figure, in units of a normal quantile, and how far figures are from it."""

    constant: float  # of the line
    slopes: tuple[float, ...]  # one for each signal
    chance: float  # the figure of a target that leaks nothing; the farther above it, the less sure is the line
    reach: float  # how far the interval reaches below and above the line, in units of `spread` (`cheap_learning.py`)
    held: float  # how often an interval of that kind held the figure, on sources that were left out

    def spread(self, middle: float) -> float:
        """The unit of ``reach``: it grows with the leak that the line says."""
        return 0.5 + max(0.0, middle - self.chance)


@dataclass(frozen=True, kw_only=True)
class Table:
    """What was learned for audits with one number of shadow models."""

    auc: Relation  # to the separation that the AUC of the strongest attack with eight shadow models means
    tpr: Relation  # to the normal quantile of its TPR at 1 % FPR
    lowest: tuple[float, ...]  # the smallest of each signal among the targets
    highest: tuple[float, ...]  # the largest
    targets: int  # how many there were
    sources: int  # of how many sources of data


# learned from the problems of benchmarks/records/cheap_problems.py; `python benchmarks/records/cheap.py --learn`
# prints these lines
TABLES: Mapping[int, Table] = {
    0: Table(
        auc=Relation(constant=0.4702, slopes=(1.3588, 0.1015, 0.1646), chance=0.0, reach=0.4354, held=0.974),
        tpr=Relation(constant=-1.6636, slopes=(1.2255, 0.0639, 0.0465), chance=-2.3263, reach=0.5164, held=0.961),
        lowest=(-0.11, -2.52, 0.0),
        highest=(2.96, 1.57, 1.0),
        targets=77,
        sources=17,
    ),
    1: Table(
        auc=Relation(
            constant=0.5837, slopes=(0.8552, -0.0417, -0.3179, 1.1961, 0.2681), chance=0.0, reach=0.302, held=0.948
        ),
        tpr=Relation(
            constant=-0.6064, slopes=(0.6763, -0.0029, -0.3876, 0.8164, 0.6182), chance=-2.3263, reach=0.44, held=0.974
        ),
        lowest=(-0.11, -2.52, 0.0, 0.01, -2.46),
        highest=(2.96, 1.57, 1.0, 1.53, -0.7),
        targets=77,
        sources=17,
    ),
}


FEW_MODELS = 2  # with fewer shadow models an audit is a quick look
_FEWEST = 100  # members and non-members: with fewer, 1 % of them is less than one record
_FPR = 0.01
_UNSEEN = (  # benchmarks/records/quick_look_misses.md
    "It cannot see what the target's losses alone do not show: where records differ much in difficulty, members and "
    "non-members look alike, although shadow models tell them apart. There it is too low, so a low upper end does not "
    "show that the model is safe.",
    "One reference model shows a record's difficulty only roughly, so a leak that takes several to be seen can lie "
    "above the interval: a low upper end does not show that the model is safe.",
)
_WIDER = 0.5  # how far a signal may lie outside of what the table was learned from, in units of a normal quantile


@dataclass(frozen=True, kw_only=True)
class QuickEstimate:
    """An estimate of what the strongest attack with eight shadow models would find on the same target."""

    models: int  # the shadow models that the estimate is made from, 0 or 1
    auc: float  # the estimated AUC
    auc_interval: Interval  # a prediction interval of it
    tpr: float  # the estimated TPR at 1 % FPR
    tpr_interval: Interval  # a prediction interval of it
    level: float  # of the intervals
    auc_held: float  # how often such intervals held the AUC, on data that they were not learned from
    tpr_held: float  # the same for the TPR
    targets: int  # how many targets they were learned from
    sources: int  # of how many sources of data

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
            f"that came later {100 * FRESH[0]:.0f} % and {100 * FRESH[1]:.0f} %. {_UNSEEN[self.models]} Train eight "
            f"shadow models to know."
        )


def quick_estimate_of(
    evidence: Evidence, members: BoolArray, *, tables: Mapping[int, Table] = TABLES
) -> QuickEstimate | None:
    """The estimate for a target; None with two or more shadow models, few records, or figures unlike all known ones."""
    few = min(int(members.sum()), int((~members).sum())) < _FEWEST
    if evidence.regression or evidence.models >= FEW_MODELS or few:  # the relation was learned from classifiers
        return None
    table = tables[evidence.models]
    reference = evidence.shadow_loss[0] if evidence.models else None
    found = signals(evidence.target_loss, members, reference)
    if ((found < np.array(table.lowest) - _WIDER) | (found > np.array(table.highest) + _WIDER)).any():
        return None
    floor_auc, floor_tpr = floors(evidence.target_loss, members, reference)
    auc_low, area, auc_high = ndtr(np.array(predicted(found, table.auc, floor_auc)) / np.sqrt(2)).tolist()
    tpr_low, rate, tpr_high = ndtr(predicted(found, table.tpr, floor_tpr)).tolist()
    return QuickEstimate(
        models=evidence.models,
        auc=area,
        auc_interval=Interval(auc_low, auc_high),
        tpr=rate,
        tpr_interval=Interval(tpr_low, tpr_high),
        level=LEVEL,
        auc_held=table.auc.held,
        tpr_held=table.tpr.held,
        targets=table.targets,
        sources=table.sources,
    )


def signals(loss: FloatArray, members: BoolArray, reference: FloatArray | None = None) -> FloatArray:
    """What the estimate is made from, [3] from the target's losses [N] alone, [5] with those of a reference model.

    The separation that the AUC of the loss means for two normal distributions; the normal quantile of the share of
    non-members whose loss is above that of all but 1 % of the members (Dodd et al., 2025); and the share of non-members
    that the target gives less than one half. With a reference model the first two also by the losses' difference.
    """
    found = [_separation(-loss, members), _quantile(loss, ~members), float((loss[~members] > np.log(2)).mean())]
    if reference is not None:
        found += [_separation(reference - loss, members), _quantile(reference - loss, members)]
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
    """What was measured, less two standard errors, in the units of the figures: a lower end is never above it."""
    scores = -loss if reference is None else reference - loss
    inside, outside = int(members.sum()), int((~members).sum())
    area = auc(scores, members) - 2 * np.sqrt((inside + outside + 1) / (12 * inside * outside))
    share = _inside(rate_with_ties(scores, members, _FPR)[0], members)
    rate = share - 2 * np.sqrt(2 * share * (1 - share) / min(inside, outside))
    return float(ndtri(_inside(area, members)) * np.sqrt(2)), float(ndtri(_inside(rate, members)))


def predicted(found: FloatArray, relation: Relation, floor: float) -> tuple[float, float, float]:
    """The lower end, the estimate (never below chance) and the upper end of a figure, as normal quantiles."""
    middle = max(relation.chance, relation.constant + float(np.dot(relation.slopes, found)))
    unit = relation.spread(middle)
    return min(middle - unit * relation.reach, floor), middle, middle + unit * relation.reach
