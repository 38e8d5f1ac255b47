"""What a run lets one conclude: whether it says anything, what, how strongly, and by which attack.

Rating, gate, first page, next steps, comparisons, evidence file, page and terminal read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from glasshouse.evaluation import Interval, VerdictAttack
from glasshouse.evaluation.declared import DeclaredDraw
from glasshouse.evaluation.leakage import Way
from glasshouse.report.context import Context
from glasshouse.report.figures import AttackFigures, RateFigure, rate_figure
from glasshouse.report.format import rate

Strength = Literal["weak", "clear", "strong"]
Reason = Literal["warning", "members unknown", "members not random", "no draw", "mismatch", "few models"]

_WEAK, _STRONG = 0.01, 0.001  # p-values
_FEW = 4  # shadow models; with fewer the attacks are weak, and finding nothing says little
_WHY: dict[Reason, tuple[str, str]] = {  # in a few words, and in a sentence
    "warning": (
        "the input of the audit has a fault",
        "The input of the audit has a fault, which the warning above describes.",
    ),
    "members unknown": (
        "the members of the target are not known",
        "It is not known which records trained the model, so nothing could be measured.",
    ),
    "members not random": (
        "members were not drawn at random",
        "The training data differ in kind from the non-members, so nothing here shows what the model reveals.",
    ),
    "no draw": (
        "no random draw of the members was declared",
        "No random draw of the members was declared, so no test can tell what the model reveals from what members are.",
    ),
    "mismatch": (
        "the target answers unlike its shadow models",
        "The model answers differently from its shadow models, so the attacks were weaker than they could be. A leak "
        "that they show is real; one that they do not show may exist too.",
    ),
    "few models": (
        "there are too few shadow models",
        "With {shadows} shadow models the attacks are weak, so a negative result says little.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class VerdictFigures:
    """The attack that the verdict is about, measured on records that the choice of it did not look at."""

    attack: str  # its name
    way: Way  # how it was chosen
    tried: int  # among how many
    auc: float
    auc_interval: Interval
    rate: RateFigure | None  # its TPR at the rate to report first; None if no wanted rate can be measured
    members: int  # how many members these figures are from
    non_members: int  # how many others
    confidence: float  # of the intervals
    p_value: float  # of "no attack shows any leak"
    permutations: int  # behind the p-value
    leak: bool | None  # whether a leak is shown; None if members were not drawn at random, so that this cannot be told
    picked: str = ""  # the attack that `best` picked, if that is the attack
    shown_by: str = ""  # the attack whose figure has the p-value; it may be another one that shows the leak too
    shown_figure: str = ""  # that figure: ``"auc"`` or ``"tpr@0.01"``

    @property
    def title(self) -> str:
        """The attack's name, and what it picked."""
        return f"{self.attack} (here {self.picked})" if self.picked else self.attack

    @property
    def p_text(self) -> str:
        """The p-value in words; the smallest possible one is only a bound."""
        sign = "≤" if self.p_value * (self.permutations + 1) < 1.5 else "="
        return f"p {sign} {self.p_value:.2g}"

    @property
    def strength(self) -> Strength:
        """How strong the evidence of a leak is, if one is shown."""
        return "weak" if self.p_value > _WEAK else "clear" if self.p_value > _STRONG else "strong"

    @property
    def carrier(self) -> str:
        """The figure that has the p-value, in words; empty where no leak is shown, or in runs of before."""
        if not self.leak or not self.shown_by:
            return ""
        kind, _, at = self.shown_figure.partition("@")
        return f"the {kind.upper()} of {self.shown_by}{f' at {rate(float(at))} FPR' if at else ''}"


def verdict_figures(found: VerdictAttack, *, random: bool = True, picked: str = "") -> VerdictFigures:
    """A verdict attack as plain data; ``random``: whether members were drawn so; ``picked``: what `best` picked."""
    metrics, test = found.metrics, found.test
    return VerdictFigures(
        attack=found.attack,
        way=found.way,
        tried=found.tried,
        auc=metrics.auc,
        auc_interval=metrics.auc_interval,
        rate=next((rate_figure(one) for one in metrics.rates if one.wanted == found.fpr), None),
        members=metrics.curve.members,
        non_members=metrics.curve.non_members,
        confidence=metrics.confidence,
        p_value=test.p_value,
        permutations=test.permutations,
        leak=test.leak if random else None,
        picked=picked,
        shown_by=test.attack,
        shown_figure=test.figure,
    )


class Look(NamedTuple):
    """A look besides the TPR at the wanted rate, by which the usual limit is exceeded (`decision/evidence.py`)."""

    rule: str  # what is limited
    reason: str  # what was found, for the expert
    plain: str  # the same for a reader who knows no abbreviation


@dataclass(frozen=True)
class Conclusion:
    """Whether a run says anything about its model, what, how strongly, and by which attack."""

    figures: VerdictFigures | None  # None if the members are not known
    reasons: tuple[Reason, ...]  # why finding nothing would say nothing, the weightiest first
    shadows: int  # how many shadow models the attacker had
    evidence: tuple[Look, ...] = ()  # looks by which the usual limit is exceeded

    @property
    def leak(self) -> bool | None:
        """Whether a leak is shown, over all records or in a part of them; None if the run cannot tell."""
        if self.figures is None or self.figures.leak is None:
            return None
        return self.figures.leak or bool(self.evidence)

    @property
    def partly(self) -> bool:
        """Whether a leak is shown in a part of the records alone, and not by the test of all of them."""
        return self.leak is True and self.figures is not None and not self.figures.leak

    @property
    def strength(self) -> Strength:
        """How strong the evidence of a leak is, if one is shown."""
        return "strong" if self.figures is None or self.partly else self.figures.strength

    @property
    def measured(self) -> VerdictFigures | None:
        """The figures, if they say something about the model.

        They do not where the members are not known or were not drawn at random, or where the input has a fault.
        """
        return None if self.leak is None or "warning" in self.reasons else self.figures

    @property
    def silent(self) -> bool:
        """Whether the run says nothing about the model; a leak that is shown was shown, however weak the attacks."""
        return bool(self.reasons) and (self.leak is not True or "warning" in self.reasons)

    @property
    def why(self) -> str:
        """The weightiest reason in a sentence; empty if there is none."""
        return _WHY[self.reasons[0]][1].format(shadows=self.shadows or "no") if self.reasons else ""

    @property
    def why_in_short(self) -> str:
        """The weightiest reason in a few words; empty if there is none."""
        return _WHY[self.reasons[0]][0] if self.reasons else ""

    @property
    def lists_records(self) -> bool:
        """Whether to list records, and to say how many can be flagged; not where no leak is shown."""
        return self.figures is None or self.leak is True


def concluded(
    figures: VerdictFigures | None,
    context: Context,
    *,
    mismatch: bool,
    evidence: Iterable[Look] = (),
    draw: DeclaredDraw | None = None,
) -> Conclusion:
    """What these figures let one conclude.

    Args:
        figures: of the verdict attack; None if the members are not known.
        context: what was audited.
        mismatch: whether the target answers unlike its shadow models.
        evidence: looks by which the usual limit is exceeded; they count only where figures say something.
        draw: the declared draw of the members, if one was declared.
    """
    found = () if figures is None or figures.leak is None or context.warnings else tuple(evidence)

    def reasons() -> Iterator[Reason]:
        if context.warnings:
            yield "warning"
        if figures is None:
            yield "members unknown"
        elif figures.leak is None:
            yield "members not random" if draw is None or draw.random else "no draw"
        elif mismatch:
            yield "mismatch"
        if context.shadows < _FEW:
            yield "few models"

    return Conclusion(figures, tuple(reasons()), context.shadows, found)


def attackers(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """The attacks that are not given the members of the target; all attacks if there are no others."""
    return [attack for attack in attacks if not attack.knows_truth] or list(attacks)
