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


FRESH = Fresh(auc=96 / 96, tpr=94 / 96)


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A line from signals to a figure, in units of a normal quantile, and how far figures are from it.

    Args:
        constant: of the line.
        slopes: one for each signal.
        chance: the figure of a target that leaks nothing; the farther above it, the less sure is the line.
        below: how far the interval reaches below the line, in units of `spread`: as far as it takes to hold a target
            of a family of data that was left out (`benchmarks/cheap_learning.py`).
        above: how far above it.
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
            constant=0.4702, slopes=(1.3588, 0.1015, 0.1646), chance=0.0, below=-0.4354, above=0.4354, held=0.974
        ),
        tpr=Relation(
            constant=-1.6636, slopes=(1.2255, 0.0639, 0.0465), chance=-2.3263, below=-0.5164, above=0.5164, held=0.961
        ),
        lowest=(-0.11, -2.52, 0.0),
        highest=(2.96, 1.57, 1.0),
        targets=77,
        sources=17,
    ),
    1: Table(
        auc=Relation(
            constant=0.5837,
            slopes=(0.8552, -0.0417, -0.3179, 1.1961, 0.2681),
            chance=0.0,
            below=-0.302,
            above=0.302,
            held=0.948,
        ),
        tpr=Relation(
            constant=-0.6064,
            slopes=(0.6763, -0.0029, -0.3876, 0.8164, 0.6182),
            chance=-2.3263,
            below=-0.44,
            above=0.44,
            held=0.974,
        ),
        lowest=(-0.11, -2.52, 0.0, 0.01, -2.46),
        highest=(2.96, 1.57, 1.0, 1.53, -0.7),
        targets=77,
        sources=17,
    ),
}
