"""What an attacker can do, in counts of people instead of rates: "of 1 000 members, about 40 are singled out"."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.report.figures import RateFigure
from glasshouse.report.format import whole
from glasshouse.report.summary import Summary

_USUAL, _MOST = 1000, 1_000_000


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """The strongest attack's figure as counts, out of ``per`` members and ``per`` others.

    Args:
        unit: what is counted, such as ``"records"``.
        per: 1 000, or more where fewer than one of 1 000 outsiders may be accused.
        found: members that are singled out.
        low: lower end of the interval of ``found``.
        high: upper end of it.
        wrong: outsiders that are wrongly accused with them.
        chance: members that blind guessing finds with as many false accusations.
        members: how many members the figure was measured on.
        others: how many outsiders.
        confidence: of the interval.
        reached: False if no threshold accuses so few outsiders as wanted, because answers are tied.
    """

    unit: str
    per: int
    found: float
    low: float
    high: float
    wrong: float
    chance: float
    members: int
    others: int
    confidence: float
    reached: bool = True

    def sentence(self) -> str:
        """The counts in words, with the interval.

        Example:
            >>> rates = {"found": 42.2, "low": 31.0, "high": 55.9, "wrong": 10.0, "chance": 10.9}
            >>> told = Exposure(unit="records", per=1000, **rates, members=900, others=900, confidence=0.95)
            >>> told.sentence().split(",")[0].replace(chr(160), " ")
            'Of 1 000 records in the training data'
        """
        return (
            f"Of {whole(self.per)} {self.unit} in the training data, about {counted(self.found)} could be singled out "
            f"(between {counted(self.low)} and {counted(self.high)}), while {counted(self.wrong)} of {whole(self.per)} "
            f"outsiders would be wrongly accused. Blind guessing with as many false accusations would find about "
            f"{counted(self.chance)}."
        )

    def measured(self) -> str:
        """What the counts rest on."""
        told = (
            f"Measured on {whole(self.members)} {self.unit} of the training data and {whole(self.others)} outsiders. "
            f"“Between” holds with {100 * self.confidence:g} % confidence."
        )
        if self.reached:
            return told
        return f"{told} The model gives the same answer about many {self.unit}, so no attacker can accuse fewer."


def exposure_of(summary: Summary) -> Exposure | None:
    """The counts of a run; None where no rate was measured, or where it says nothing about the model.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> exposure_of(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary()) is None
        True
    """
    shown = summary.verdict_attack
    if shown is None or shown.rate is None or shown.leak is None or summary.context.warnings:
        return None
    return exposure_at(
        shown.rate,
        unit=unit_of(summary),
        members=shown.members,
        others=shown.non_members,
        confidence=shown.confidence,
    )


def exposure_at(figure: RateFigure, *, unit: str, members: int, others: int, confidence: float) -> Exposure:
    """One rate as counts.

    Args:
        figure: the rate; the first that can be reached, where the wanted one cannot.
        unit: what is counted, in the plural.
        members: how many members it was measured on.
        others: how many outsiders.
        confidence: of its interval.
    """
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
    shown = summary.verdict_attack
    if shown is None or shown.leak is None or summary.context.warnings:
        return ""
    low, high = shown.auc_interval
    one = unit_of(summary).removesuffix("s")
    return (
        f"Given one {one} of the training data and one outsider, the attacker tells which is which in about "
        f"{100 * shown.auc:.0f} of 100 cases (between {100 * low:.0f} and {100 * high:.0f}); a coin is right in 50."
    )


def unit_of(summary: Summary) -> str:
    """What is audited, in the plural: the nodes of a graph, or records."""
    node = (summary.privacy is not None and summary.privacy.unit == "node") or "setting" in summary.context.settings
    return "nodes" if node else "records"


def counted(value: float) -> str:
    """A count of people: whole, but never a 0 that was not found.

    Example:
        >>> counted(12.3), counted(0.2)
        ('12', 'fewer than 1')
    """
    return "fewer than 1" if 0 < value < 0.5 else whole(value)
