"""What an attacker can do, in counts instead of rates: "of 1 000 members, about 40 could be identified"."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

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

    def sentence(self) -> str:
        """The counts in words, with the interval."""
        per, members = whole(self.per), f"Of {whole(self.per)} {self.unit} in the training data"
        found, wrong = counted(self.found), counted(self.wrong)
        between = f"(between {counted(self.low)} and {counted(self.high)})"
        if not self.leak:
            return (
                f"No better than guessing: {found} against {wrong}. {members} {found} are flagged {between}, and of "
                f"{per} non-members {wrong}."
            )
        return (
            f"{members}, an attacker could identify about {found} {between}, while wrongly flagging {wrong} of {per} "
            f"non-members. Guessing, with as many wrong flags, would identify about {counted(self.chance)}."
        )

    def measured(self) -> str:
        """What the counts rest on."""
        told = (
            f"Measured on {whole(self.members)} {self.unit} of the training data and {whole(self.others)} non-members. "
            f"“Between” holds with {100 * self.confidence:g} % confidence."
        )
        if self.reached:
            return told
        return f"{told} The model gives the same answer for many {self.unit}, so no attacker can flag fewer."


def exposure_of(summary: Summary) -> Exposure | None:
    """The counts of a run, without a leak those of the attack's own threshold; None where there is nothing to count."""
    shown = summary.conclusion.measured
    if shown is None or shown.rate is None:
        return None
    counts = {"members": shown.members, "others": shown.non_members}
    found = exposure_at(shown.rate, unit=unit_of(summary), confidence=shown.confidence, **counts)
    if summary.conclusion.leak:
        return found
    flags = summary.attack(shown.attack).first_flags
    if flags is None:
        return dataclasses.replace(found, leak=False)
    low, high = (found.per * end for end in flags.tpr_interval)
    wrong = found.per * flags.fpr
    return dataclasses.replace(
        found, found=found.per * flags.tpr, low=low, high=high, wrong=wrong, chance=wrong, leak=False
    )


def exposure_at(figure: RateFigure, *, unit: str, members: int, others: int, confidence: float) -> Exposure:
    """One rate as counts; the first that can be reached, where the wanted one cannot."""
    wrong = figure.wanted if figure.reached else figure.fpr
    per = _USUAL
    while per * wrong < 1 and per < _MOST:
        per *= 10
    return Exposure(
        unit=unit,
        per=per,
        found=per * figure.tpr,
        low=per * figure.tpr_interval.low,
        high=per * figure.tpr_interval.high,
        wrong=per * wrong,
        chance=per * figure.chance,
        members=members,
        others=others,
        confidence=confidence,
        reached=figure.reached,
    )


def pairs_sentence(summary: Summary) -> str:
    """The area under the curve in words: how often the attacker is right about a pair; empty where it says nothing."""
    shown = summary.conclusion.measured
    if shown is None:
        return ""
    low, high = shown.auc_interval
    one = unit_of(summary).removesuffix("s")
    return (
        f"Given one {one} of the training data and one non-member, the attacker can tell which is which in about "
        f"{100 * shown.auc:.0f} of 100 cases (between {100 * low:.0f} and {100 * high:.0f}); guessing is right in 50."
    )


def unit_of(summary: Summary) -> str:
    """What is audited, in the plural: the nodes of a graph, records, or units such as persons."""
    if unit := summary.context.settings.get("unit"):
        return f"{unit}s"
    node = (summary.privacy is not None and summary.privacy.unit == "node") or "setting" in summary.context.settings
    return "nodes" if node else "records"


def worded(text: str, summary: Summary) -> str:
    """A sentence about records as one about units such as persons, where those were audited."""
    unit = summary.context.settings.get("unit")
    if not unit:
        return text
    return re.sub(r"\b([Rr])ecord(s?)\b", lambda found: _as(str(unit), found[1] == "R") + found[2], text)


def _as(word: str, first: bool) -> str:
    return word.capitalize() if first else word


def counted(value: float) -> str:
    """A count: whole, but never a 0 that was not measured."""
    return "fewer than 1" if 0 < value < 0.5 else whole(value)
