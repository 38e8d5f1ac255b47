"""The verdict in two sentences, and what else a reader has to know."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.evaluation.metrics import DEFAULT_FPRS
from glasshouse.report.context import Context
from glasshouse.report.figures import AttackFigures
from glasshouse.report.words import percent, whole

__all__ = ["attackers", "notes", "strongest", "verdict"]


def strongest(attacks: Sequence[AttackFigures]) -> AttackFigures:
    """By TPR at the smallest rate (or at the first that can be reached with tied scores), then by AUC.

    An attack that is given the members of the target is a limit for comparison, and not counted.
    """

    def strength(attack: AttackFigures) -> tuple[float, float]:
        if attack.metrics is None:
            return (0.0, 0.0)
        lowest = min(attack.metrics.rates, key=lambda rate: rate.wanted, default=None)
        return (lowest.strength if lowest else 0.0, attack.metrics.auc)

    return max(attackers(attacks), key=strength)


def attackers(attacks: Sequence[AttackFigures]) -> list[AttackFigures]:
    """The attacks that are not given the members of the target; all attacks if there are no others."""
    return [attack for attack in attacks if not attack.knows_truth] or list(attacks)


def verdict(best: AttackFigures, attacks: Sequence[AttackFigures], context: Context) -> str:
    """Two sentences: what was found, and how sure that is."""
    attacker = f"The attacker had {context.shadows} shadow models ({context.mode})"
    metrics = best.metrics
    if metrics is None:
        return f"{attacker}. The members of the target are not known, so records are ranked but nothing is measured."
    tried = len(attackers(attacks))
    count = f"{tried} attack" + ("s" if tried > 1 else "")
    level = f"{metrics.confidence:.0%} interval"
    area = f"AUC {metrics.auc:.3f}, {level} {metrics.auc_interval.low:.3f} to {metrics.auc_interval.high:.3f}"
    if not metrics.rates:
        return f"The strongest of {count}, {best.name}, reaches {area}. {attacker}."
    rate = min(metrics.rates, key=lambda rate: rate.wanted)
    others = metrics.curve.non_members
    price = f"{percent(rate.fpr)} and at most {percent(rate.wanted)} of {others} non-members are wrongly accused"
    if not rate.reached:
        price = (
            f"{percent(rate.fpr)} and the same share of {others} non-members is wrongly accused; scores are tied, and "
            f"no threshold accuses fewer, so nothing can be measured at {percent(rate.wanted)}"
        )
    return (
        f"The strongest of {count}, {best.name}, finds {percent(rate.tpr)} of {metrics.curve.members} members: "
        f"{level} {percent(rate.tpr_interval.low)} to {percent(rate.tpr_interval.high)}, where chance gives {price}. "
        f"{attacker}; over all thresholds it reaches {area}."
    )


def notes(
    attacks: Sequence[AttackFigures], fprs: Sequence[float], context: Context, warning: str = ""
) -> tuple[str, ...]:
    """The warning, what the data are, which rates the sample cannot resolve, and which thresholds are missing."""
    found = [said for said in (warning, context.about, *context.notes) if said]
    metrics = attacks[0].metrics
    if metrics is not None:
        others = metrics.curve.non_members
        lost = [fpr for fpr in DEFAULT_FPRS if fpr * others * (1 + 1e-12) < 1]
        if lost and not fprs:
            found.append(f"With {whole(others)} non-members no false-positive rate of 1 % or less is measurable.")
        elif lost:
            found.append(
                f"A false-positive rate of {percent(lost[-1])} is not measurable with {whole(others)} non-members."
            )
    return (*found, *(attack.note for attack in attacks if attack.note))
