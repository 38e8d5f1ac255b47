"""What the first page of a report says, for the decision-maker: in counts instead of rates, and about groups.

"Of 1 000 members, about 40 could be identified."
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.figures import RateFigure
from glasshouse.report.format import whole
from glasshouse.report.summary import Summary

_USUAL, _MOST = 1000, 1_000_000


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The strongest attack's figure as counts, out of ``per`` members and ``per`` non-members."""

    unit: str  # what is counted, in the plural
    per: int  # 1 000, or more where fewer than one of 1 000 non-members may be flagged
    found: float  # members that are identified
    low: float  # lower end of its interval
    high: float  # upper end of it
    wrong: float  # non-members that are flagged with them
    chance: float  # members that guessing identifies with as many wrong flags
    members: int  # how many members the figure was measured on
    others: int  # how many non-members
    confidence: float  # of the interval
    reached: bool = True  # False if no threshold flags so few non-members as wanted, because scores are tied
    leak: bool = True  # whether a leak is shown; without one members are flagged as guessing flags them


def exposure_of(summary: Summary) -> Exposure | None:
    """The counts of a run, without a leak those of the attack's own threshold; None where there is nothing to count."""
    shown = summary.conclusion.measured
    if shown is None or shown.rate is None:
        return None
    known: dict[str, Any] = {"unit": summary.unit, "leak": bool(summary.conclusion.leak)}
    known |= {"members": shown.members, "others": shown.non_members}
    found = exposure_at(shown.rate, confidence=shown.confidence, **known)
    flags = summary.attack(shown.attack).first_flags
    if found.leak or flags is None:
        return found
    low, high = (found.per * end for end in flags.tpr_interval)
    wrong = found.per * flags.fpr
    return dataclasses.replace(found, found=found.per * flags.tpr, low=low, high=high, wrong=wrong, chance=wrong)


def exposure_at(figure: RateFigure, *, confidence: float, **known: Any) -> Exposure:
    """One rate as counts; the first that can be reached, where the wanted one cannot."""
    wrong = figure.wanted if figure.reached else figure.fpr
    per = _USUAL
    while per * wrong < 1 and per < _MOST:
        per *= 10
    return Exposure(
        per=per,
        found=per * figure.tpr,
        low=per * figure.tpr_interval.low,
        high=per * figure.tpr_interval.high,
        wrong=per * wrong,
        chance=per * figure.chance,
        confidence=confidence,
        reached=figure.reached,
        **known,
    )


def counted(value: float) -> str:
    """A count: whole, but never a 0 that was not measured."""
    return "fewer than 1" if 0 < value < 0.5 else whole(value)


_SHOWN = 12


def shown_groups(summary: Summary) -> tuple[GroupLeak, ...]:
    """The groups of the first page: those that differ, and the largest others, in their order."""
    measured = [one for one in summary.groups if one.tpr is not None or one.auc is not None]
    order = sorted(measured, key=lambda one: (not one.singled_out, -one.members))[:_SHOWN]
    return tuple(one for one in measured if one in order)
