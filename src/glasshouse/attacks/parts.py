"""Attacks that look at the parts of a record, such as the tokens of a text: the sum of what each part tells.

A model that predicts each part from those before it gives a record the sum of their losses, and the posterior of the
sum follows from the sum alone. But its reference is one number for the whole record. Part by part, every part has
references of its own, and the log ratios add up; so a part that every model finds hard does not hide one that only the
target knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.base import BASE
from glasshouse.attacks.by_unit import ByUnit
from glasshouse.attacks.lira import LiRA
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.randomness import some_of
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.evidence import UnitView

_ENOUGH = 2**18  # parts that an attack on parts is tuned on


def enough_parts(evidence: Evidence, *, least: int = 1) -> Positions:
    """So many records that what all parts share is known well from theirs."""
    most = max(least, int(_ENOUGH * evidence.records / len(evidence.require_parts().target)))
    return some_of(evidence.records, most, 0, "parts")


@dataclass(frozen=True, kw_only=True)
class _Parts(Attack):
    """What both share: a record is a unit of its parts, whose log ratios are summed."""

    needs_parts: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True
    on_part: ClassVar[Callable[..., Attack]]  # what scores each part, in log ratios
    version: ClassVar[int] = 2
    mode: Mode = "online"
    each_: Attack | None = dataclasses.field(default=None, repr=False, compare=False)  # tuned

    def check(self, members: BoolArray) -> None:
        """Refuse a pool that the attack on each part refuses."""
        self.on_part(mode=self.mode).check(members)

    def score(self, evidence: Evidence) -> FloatArray:
        """Sums of log ratios, [N]; higher means member."""
        return self._joined.score(UnitView.of_parts(evidence))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: those of its parts, summed."""
        return self._joined.simulated_scores(UnitView.of_parts(evidence))

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack, its numbers chosen on some of the parts: a few numbers are known well from these."""
        some = evidence.of_records(enough_parts(evidence))
        return dataclasses.replace(self, each_=self.on_part(mode=self.mode).tuned(some.of_parts()))

    @property
    def _joined(self) -> ByUnit:
        return ByUnit(attack=self.each_ or self.on_part(mode=self.mode), power=0.0)


class _LogOdds(BASE):
    """BASE whose scores are the logits of its posteriors, which can be summed."""

    posterior: ClassVar[bool] = False

    def _scored(self, ratios: FloatArray, members: BoolArray | None = None) -> FloatArray:
        return ratios


@register("base-parts")
@dataclass(frozen=True, kw_only=True)
class PartsBASE(_Parts):
    """BASE part by part, with the log-odds of all parts of a record summed.

    Args:
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> import numpy as np
        >>> from glasshouse.evidence import PartLosses
        >>> parts = PartLosses(target=np.array([0.1, 0.2, 2.0], np.float32), offsets=np.array([0, 2, 3]),
        ...                    shadow=np.array([[0.5, 0.9, 1.0], [0.7, 0.8, 1.2]], np.float32))
        >>> evidence = Evidence(target_loss=[0.3, 2.0], shadow_loss=[[1.4, 1.0], [1.5, 1.2]],
        ...                     shadow_members=[[1, 0], [0, 1]], parts=parts)
        >>> PartsBASE().score(evidence).round(2)
        array([ 1.14, -0.9 ])
    """

    on_part: ClassVar[Callable[..., Attack]] = _LogOdds


@register("lira-parts")
@dataclass(frozen=True, kw_only=True)
class PartsLiRA(_Parts):
    """LiRA part by part, with the log ratios of all parts of a record summed.

    Args:
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> PartsLiRA().mode
        'online'
    """

    on_part: ClassVar[Callable[..., Attack]] = LiRA
