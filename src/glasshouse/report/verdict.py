"""The verdict in plain sentences, and what else a reader has to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glasshouse.evaluation import Headline, Interval, PrivacyVerdict
from glasshouse.evaluation.headline import Way
from glasshouse.evaluation.metrics import DEFAULT_FPRS, ENOUGH_WRONG
from glasshouse.evaluation.roc import allowed_wrong
from glasshouse.report.context import Context
from glasshouse.report.figures import AttackFigures, RateFigure, rate_figure
from glasshouse.report.words import percent, rate, whole

__all__ = ["HeadlineFigures", "attackers", "headline_figures", "notes", "verdict"]

_SHOWN: dict[bool | None, str] = {
    True: "A leak is shown",
    False: "No leak is shown",
    None: "Whether the model leaks cannot be told, since members were not drawn at random",
}
_GUESSING = 0.5  # the AUC of scores that say nothing
_BELOW = ", below what guessing gives: by chance, or since it takes members for others; this figure shows no leak"
_FEW = 2  # with fewer shadow models the attacks are weak, and the figures a lower bound
_WAYS: dict[Way, str] = {
    "simulated": "{name}, the strongest of {tried} attacks on simulated targets, finds",
    "half": "{name}, the strongest of {tried} attacks on one half of the records, finds on the other half",
    "only": "{name} finds",
    "shown": (
        "{name}, which shows it best of {tried} attacks on these same records, so that its estimates tend to be too "
        "high (the intervals allow for that choice), finds"
    ),
}


@dataclass(frozen=True, kw_only=True)
class HeadlineFigures:
    """The attack that the verdict is about, measured on records that the choice of it did not look at.

    Args:
        attack: its name.
        way: how it was chosen.
        tried: among how many.
        auc: its AUC.
        auc_interval: of it.
        rate: its TPR at the rate to report first; None if no wanted rate can be measured.
        members: how many members these figures are from.
        non_members: how many others.
        confidence: of the intervals.
        p_value: of "no attack shows any leak".
        permutations: behind the p-value.
        leak: whether a leak is shown; None if members were not drawn at random, so that this cannot be told.
        picked: the attack that `best` picked, if that is the attack; else empty.
        shown_by: the attack whose figure has the p-value; it may be another one that shows the leak too.
        shown_figure: that figure: ``"auc"`` or ``"tpr@0.01"``.
    """

    attack: str
    way: Way
    tried: int
    auc: float
    auc_interval: Interval
    rate: RateFigure | None
    members: int
    non_members: int
    confidence: float
    p_value: float
    permutations: int
    leak: bool | None
    picked: str = ""
    shown_by: str = ""
    shown_figure: str = ""

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
    def carrier(self) -> str:
        """The figure that has the p-value, in words; empty where no leak is shown, or in runs of before."""
        if not self.leak or not self.shown_by:
            return ""
        kind, _, at = self.shown_figure.partition("@")
        return f"the {kind.upper()} of {self.shown_by}{f' at {rate(float(at))} FPR' if at else ''}"


def headline_figures(found: Headline, *, random: bool = True, picked: str = "") -> HeadlineFigures:
    """A headline as plain data.

    Args:
        found: the headline.
        random: False if members were not drawn at random.
        picked: the attack that `best` picked, if that is the headline's attack.
    """
    metrics = found.metrics
    shown = next((rate_figure(one) for one in metrics.rates if one.wanted == found.fpr), None)
    return HeadlineFigures(
        attack=found.attack,
        way=found.way,
        tried=found.tried,
        auc=metrics.auc,
        auc_interval=metrics.auc_interval,
        rate=shown,
        members=metrics.curve.members,
        non_members=metrics.curve.non_members,
        confidence=metrics.confidence,
        p_value=found.test.p_value,
        permutations=found.test.permutations,
        leak=found.test.leak if random else None,
        picked=picked,
        shown_by=found.test.attack,
        shown_figure=found.test.figure,
    )


def attackers(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """The attacks that are not given the members of the target; all attacks if there are no others."""
    return [attack for attack in attacks if not attack.knows_truth] or list(attacks)


def verdict(found: HeadlineFigures | None, context: Context, privacy: PrivacyVerdict | None = None) -> str:
    """Whether a leak is shown, how strong it is and how sure that is; no headline if the members are not known."""
    attacker = _attacker(context)
    if found is None:
        return f"{attacker}. The members of the target are not known, so records are ranked but nothing is measured."
    many = f"{found.tried} attack" + ("s" if found.tried > 1 else "")
    shown, many = _SHOWN[found.leak], f"{many}; by {found.carrier}" if found.carrier else many
    if found.leak is False and context.shadows < _FEW:
        shown = "No leak is shown by attacks this weak, which does not show that the model is safe"
    who = _WAYS[found.way].format(name=found.title, tried=found.tried)
    level = f"{100 * found.confidence:g} % interval"
    low, high = found.auc_interval
    area = f"{found.auc:.3f} ({level} {low:.3f} to {high:.3f})" + (_BELOW if high < _GUESSING else "")
    if found.rate is None:
        who = who.replace("finds", "reaches")
        return f"{shown} ({found.p_text}, {many}). {who} AUC {area}; chance gives 0.5{_and(privacy)}. {attacker}."
    share = _share(found, found.rate, level)
    return f"{shown} ({found.p_text}, {many}). {who} {share}. Its AUC is {area}{_and(privacy)}. {attacker}."


def _attacker(context: Context) -> str:
    """What the attacks had to compare the target with."""
    if context.shadows >= _FEW:
        return f"The attacker had {context.shadows} shadow models ({context.mode})"
    had = "one reference model was" if context.shadows else "no shadow models were"
    return f"{had.capitalize()} trained: these figures are a lower bound of what an attacker finds"


def _and(privacy: PrivacyVerdict | None) -> str:
    """What the attacks show about ε, as the end of a sentence."""
    if privacy is None:
        return ""
    return "; ε is withheld" if privacy.withheld else f"; the attacks show {privacy.bound()}"


def _share(found: HeadlineFigures, figure: RateFigure, level: str) -> str:
    low, high = figure.tpr_interval
    text = f"{percent(figure.tpr)} of {whole(found.members)} members ({level} {percent(low)} to {percent(high)})"
    others = f"{whole(found.non_members)} non-members"
    if not figure.reached:
        return (
            f"{text} while {percent(figure.fpr)} of {others} are wrongly accused; scores are tied, and no threshold "
            f"accuses fewer, so nothing can be measured at {rate(figure.wanted)}; chance finds {percent(figure.chance)}"
        )
    few = f", so this rests on {figure.allowed} of them" if figure.allowed < ENOUGH_WRONG else ""
    price = f"{rate(figure.wanted)} of {others} are wrongly accused{few}"
    return f"{text} while {price}; chance finds {percent(figure.chance)}"


def notes(
    attacks: Sequence[AttackFigures], fprs: Sequence[float], context: Context, warning: str = ""
) -> tuple[str, ...]:
    """The warning, what the data are, which rates the sample cannot resolve, and which thresholds are missing."""
    found = [said for said in (warning, context.about, *context.notes) if said]
    metrics = attacks[0].metrics
    if metrics is not None:
        others = metrics.curve.non_members
        lost = [fpr for fpr in DEFAULT_FPRS if allowed_wrong(fpr, others) < 1]
        if lost and not fprs:
            found.append(f"With {whole(others)} non-members no false-positive rate of 1 % or less is measurable.")
        elif lost:
            found.append(
                f"A false-positive rate of {percent(lost[-1])} is not measurable with {whole(others)} non-members."
            )
        found += [
            f"At {rate(figure.wanted)} false positives only {figure.allowed} of {whole(others)} non-members may be "
            f"accused. The rate rests on these few, so its interval is wide. For a sharp figure, audit "
            f"{whole(ENOUGH_WRONG / figure.wanted)} non-members."
            for figure in metrics.rates
            if figure.allowed < ENOUGH_WRONG
        ]
    return (*found, *(attack.note for attack in attacks if attack.note))
