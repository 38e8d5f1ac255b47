"""The relation between a quick look and eight shadow models: numbers, learned and tested by benchmarks/cheap.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["FRESH", "LEVEL", "TABLES", "Fresh", "Relation", "Table"]

LEVEL = 0.9  # of the prediction intervals


class Fresh(NamedTuple):
    """How often the intervals held on tables that came after everything was settled (benchmarks/cheap_fresh.md)."""

    auc: float
    tpr: float


FRESH = Fresh(auc=45 / 48, tpr=36 / 48)


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A line from signals to a figure, in units of a normal quantile, and how far figures are from it.

    Args:
        constant: of the line.
        slopes: one for each signal.
        chance: the figure of a target that leaks nothing; the farther above it, the less sure is the line.
        below: the 5 % quantile of what a figure is above the line, in units of `spread`, on data that was left out.
        above: the 95 % quantile.
        held: how often an interval of that kind held the figure, on sources that were left out of line and quantiles.
    """

    constant: float
    slopes: tuple[float, ...]
    chance: float
    below: float
    above: float
    held: float

    def spread(self, middle: float) -> float:
        """The unit of ``below`` and ``above``: it grows with the leak that the line says.

        Example:
            >>> Relation(constant=0.0, slopes=(), chance=0.0, below=-0.4, above=0.4, held=0.9).spread(1.5)
            2.0
        """
        return 0.5 + max(0.0, middle - self.chance)


@dataclass(frozen=True, kw_only=True)
class Table:
    """What was learned for audits with one number of shadow models.

    Args:
        auc: to the separation that the AUC of the strongest attack with eight shadow models means.
        tpr: to the normal quantile of its TPR at 1 % FPR.
        lowest: the smallest of each signal among the targets.
        highest: the largest.
        targets: how many there were.
        sources: of how many sources of data.
    """

    auc: Relation
    tpr: Relation
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    targets: int
    sources: int


# learned from the problems of benchmarks/cheap_problems.py; `python benchmarks/cheap.py --learn` prints these lines
TABLES: Mapping[int, Table] = {
    0: Table(
        auc=Relation(
            constant=0.5008, slopes=(1.4296, 0.0398, -0.2945), chance=0.0, below=-0.3143, above=0.2895, held=0.949
        ),
        tpr=Relation(
            constant=-1.8884, slopes=(1.5859, -0.1353, -0.7272), chance=-2.3263, below=-0.4092, above=0.3717, held=0.955
        ),
        lowest=(-0.11, -2.52, 0.03),
        highest=(3.73, 1.7, 1.0),
        targets=177,
        sources=16,
    ),
    1: Table(
        auc=Relation(
            constant=0.7437,
            slopes=(0.7432, -0.0182, -0.4058, 1.1528, 0.3227),
            chance=0.0,
            below=-0.1723,
            above=0.2724,
            held=0.955,
        ),
        tpr=Relation(
            constant=-0.0383,
            slopes=(0.8027, -0.0375, -0.7508, 0.4704, 0.8844),
            chance=-2.3263,
            below=-0.2836,
            above=0.3867,
            held=0.938,
        ),
        lowest=(-0.11, -2.52, 0.03, -0.05, -2.72),
        highest=(3.73, 1.7, 1.0, 1.67, -0.38),
        targets=177,
        sources=16,
    ),
}
