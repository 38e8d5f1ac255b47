"""What a comparison of runs found, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.evaluation import Interval
from glasshouse.evaluation.difference import Difference
from glasshouse.report.compare_choice import Choice
from glasshouse.report.figures import AttackFigures, RateFigure
from glasshouse.report.summarise import Summary

__all__ = ["ComparedRun", "Comparison"]


@dataclass(frozen=True)
class ComparedRun:
    """One run in a comparison.

    Args:
        number: its mark in the picture.
        name: the name that it was given.
        summary: its own figures.
        attack: the figures of the compared attack.
        rate: the TPR of that attack at the compared rate.
        tpr_difference: that TPR minus the first run's; None for the first run.
        auc_difference: AUC minus the first run's; None for the first run.
        accuracy_interval: Clopper-Pearson, of the target's accuracy on non-members; None if it is not known.
    """

    number: int
    name: str
    summary: Summary
    attack: AttackFigures
    rate: RateFigure
    tpr_difference: Difference | None
    auc_difference: Difference | None
    accuracy_interval: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Two or more runs of one attack at one false-positive rate.

    Args:
        runs: in the order in which they were given; the others are compared with the first.
        choice: which rate and attack, and why.
        verdict: what was found, in words.
        notes: what else a reader has to know.
    """

    runs: tuple[ComparedRun, ...]
    choice: Choice
    verdict: str
    notes: tuple[str, ...]
