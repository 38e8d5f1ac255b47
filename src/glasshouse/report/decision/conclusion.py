"""What a run lets one conclude: whether it says anything, what, how strongly, by which attack, on which evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from glasshouse.evaluation import Interval, PrivacyVerdict, VerdictAttack, clopper_pearson
from glasshouse.evaluation.declared import DeclaredDraw
from glasshouse.evaluation.groups import WorstCell
from glasshouse.evaluation.intervals import separated
from glasshouse.evaluation.leakage import Way
from glasshouse.evaluation.privacy.claim import LOOK_ERROR
from glasshouse.report.context import Context
from glasshouse.report.figures import AttackFigures, RateFigure, rate_figure
from glasshouse.report.format import percent, rate, texts_beside, whole

Strength = Literal["weak", "clear", "strong"]
Reason = Literal["warning", "members unknown", "members not random", "no draw", "mismatch", "few models"]

_WEAK, _STRONG = 0.01, 0.001  # p-values
_FEW = 4  # shadow models; with fewer the attacks are weak, and finding nothing says little
_WHY: dict[str, dict[str, str]] = texts_beside(__file__)


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
        """The figure that has the p-value, in words; empty where no leak is shown."""
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
    """A look besides the TPR at the wanted rate, by which the usual limit is exceeded."""

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
        """The figures; None where they say nothing about the model."""
        return None if self.leak is None or "warning" in self.reasons else self.figures

    @property
    def silent(self) -> bool:
        """Whether the run says nothing about the model; a leak that is shown was shown, however weak the attacks."""
        return bool(self.reasons) and (self.leak is not True or "warning" in self.reasons)

    @property
    def why(self) -> str:
        """The weightiest reason in a sentence; empty if there is none."""
        return _WHY[self.reasons[0]]["why"].format(shadows=self.shadows or "no") if self.reasons else ""

    @property
    def why_in_short(self) -> str:
        """The weightiest reason in a few words; empty if there is none."""
        return _WHY[self.reasons[0]]["short"] if self.reasons else ""

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
    """What the verdict attack's figures let one conclude; looks count only where these say something."""
    found = () if figures is None or figures.leak is None or context.warnings else tuple(evidence)
    reasons: list[Reason] = ["warning"] if context.warnings else []
    if figures is None:
        reasons.append("members unknown")
    elif figures.leak is None:
        reasons.append("members not random" if draw is None or draw.random else "no draw")
    elif mismatch:
        reasons.append("mismatch")
    if context.shadows < _FEW:
        reasons.append("few models")
    return Conclusion(figures, tuple(reasons), context.shadows, found)


def attackers(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """The attacks that are not given the members of the target; all attacks if there are no others."""
    return [attack for attack in attacks if not attack.knows_truth] or list(attacks)


# All evidence that a model reveals more than the usual limit allows, a TPR of at most `FACTOR` times the FPR: one
# rate that few non-members cannot resolve says little, however perfect the leak, and other figures then say the same
# at operating points that the sample resolves. Each look tests that at no threshold the TPR exceeds `FACTOR` times
# the FPR, so what is shown with few records is shown with more of them too. One correction holds for all looks
# (Bonferroni with weights): they call a model that keeps the limit "High" in at most 5 % of audits. The TPR at the
# wanted rate has half of this error, since its interval of 95 % is judged by its lower end; the four looks below
# share the other half.
FACTOR = 5.0  # the largest ratio of the true-positive rate to the false-positive rate; 1 is guessing
_AREA = 1 - 1 / (2 * FACTOR)  # of the region under a TPR of FACTOR · FPR: a larger AUC needs a point above that line


def evidence_of(
    found: VerdictFigures,
    attack: AttackFigures,
    privacy: PrivacyVerdict | None,
    cell: WorstCell | None,
    *,
    members: int,
    others: int,
) -> Iterator[Look]:
    """The looks that show, with confidence, more than the usual limit allows; the plainest first.

    ``found`` are the verdict attack's figures, ``attack`` is the same attack on all audited records.
    """
    error = LOOK_ERROR / (found.tried if found.way == "shown" else 1)  # of several attacks the strongest was taken
    yield from _flagged(attack, members, others, error)
    yield from _in_a_cell(attack, cell, error)
    low = separated(found.auc, found.members, found.non_members, confidence=1 - 2 * error).low
    if low > _AREA:
        yield Look(
            f"AUC of the verdict attack at most {_AREA:g}",
            f"{found.title} {found.auc:.3f}, at least {low:.3f}; above {_AREA:g} some TPR exceeds {FACTOR:g} FPR",
            f"{found.title} is right about {100 * found.auc:.0f} of 100 pairs of a member and a non-member (at least "
            f"{100 * low:.0f}; limit {100 * _AREA:.0f})",
        )
    yield from _proven(privacy)


def _flagged(attack: AttackFigures, members: int, others: int, error: float) -> Iterator[Look]:
    """Members and non-members above the first threshold, which is fixed: exact intervals, half of the error each."""
    for one in attack.accusations[:1]:
        hits, wrong = round(one.tpr * members), round(one.fpr * others)
        least = clopper_pearson(hits, members, confidence=1 - error).low
        ratio = least / clopper_pearson(wrong, others, confidence=1 - error).high
        if ratio > FACTOR:
            counts = f"{whole(hits)} of {whole(members)} members and {whole(wrong)} of {whole(others)} non-members"
            yield Look(
                f"members flagged at most {FACTOR:g} times as often as non-members",
                f"{attack.name} flags {counts} at its first threshold, a ratio of at least {ratio:.1f}",
                f"at its fixed threshold {attack.name} flags {counts}, so members at least {ratio:.1f} times as often "
                f"(limit {FACTOR:g})",
            )


def _in_a_cell(attack: AttackFigures, cell: WorstCell | None, error: float) -> Iterator[Look]:
    """The share of identified members of a group beside the rate of non-members that the same threshold flags.

    A group has too few non-members for a rate of its own, so the largest of three counts: the wanted one, that of all
    non-members, and its own.
    """
    first = attack.first_flags
    if cell is None or first is None or cell.p_value > error:
        return
    most = FACTOR * max(first.wanted, first.fpr, cell.flagged / cell.non_members)
    low = clopper_pearson(cell.identified, cell.members, confidence=1 - 2 * error / cell.cells).low
    if low > most:
        counts = f"{cell.identified} of {cell.members} members and {cell.flagged} of {cell.non_members} non-members"
        yield Look(
            f"TPR of every group at most {FACTOR:g} times the FPR",
            f"{cell.name}: {counts} flagged, a TPR of at least {percent(low)} (corrected for {cell.cells} groups)",
            f"in {cell.name}, {attack.name} flags {counts} (at least {whole(1000 * low)} of 1\u00a0000 members; limit "
            f"{whole(1000 * most)}; {cell.cells} groups and combinations were looked at)",
        )


def _proven(privacy: PrivacyVerdict | None) -> Iterator[Look]:
    """The bound on ε at δ = 0 beside ln 5: below that, no attack's TPR exceeds five times its FPR."""
    limit = math.log(FACTOR)
    if privacy is None:
        return
    if (proven := privacy.pure if privacy.rated is None else privacy.rated) > limit:
        yield Look(
            f"lower bound on ε at most {limit:.2f}",
            f"corrected for five figures, the attacks show ε ≥ {proven:.2f} at δ = 0 (limit {limit:.2f}, the logarithm "
            f"of {FACTOR:g})",
            f"the attacks prove a privacy loss ε of at least {proven:.2f}, corrected for five figures "
            f"(limit {limit:.2f}: a factor of {FACTOR:g})",
        )
