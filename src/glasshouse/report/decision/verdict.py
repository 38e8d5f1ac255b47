"""The verdict in plain sentences, and what a reader asks after it: wrong flags, groups, which leak could be shown."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.evaluation import PrivacyVerdict
from glasshouse.evaluation.declared import DeclaredDraw
from glasshouse.evaluation.groups import GroupLeak, WorstCell
from glasshouse.evaluation.leakage import Power, Way
from glasshouse.evaluation.metrics import DEFAULT_FPRS, ENOUGH_WRONG
from glasshouse.evaluation.roc import allowed_wrong
from glasshouse.evaluation.thresholds import DISCOVERY_LEVEL
from glasshouse.report.context import Context
from glasshouse.report.decision.conclusion import VerdictFigures
from glasshouse.report.figures import AttackFigures, RateFigure
from glasshouse.report.format import percent, rate, whole

_SHOWN: dict[bool | None, str] = {
    True: "A leak is shown",
    False: "No leak is shown",
    None: "The audit is inconclusive, since members were not drawn at random",
}
_GUESSING = 0.5  # the AUC of scores that say nothing
_BELOW = ", worse than guessing, by chance or because it takes members for non-members; this figure shows no leak"
_FEW = 2  # with fewer shadow models the attacks are weak, and the figures a lower bound
_WAYS: dict[Way, str] = {
    "simulated": "{name}, the strongest of {tried} attacks on simulated targets, identifies",
    "half": "{name}, the strongest of {tried} attacks on one half of the records, identifies on the other half",
    "only": "{name} identifies",
    "shown": (
        "{name}, which shows it best of {tried} attacks on these same records, so its estimates tend to be too high "
        "(the intervals allow for that choice), identifies"
    ),
}


def verdict(
    found: VerdictFigures | None,
    context: Context,
    privacy: PrivacyVerdict | None = None,
    *,
    partly: bool = False,
    draw: DeclaredDraw | None = None,
) -> str:
    """Whether a leak is shown, in all records or ``partly``, how strong it is and how sure that is."""
    if draw is not None:
        told = verdict(found, context, privacy, partly=partly)
        if not draw.random:
            return f"{draw.evidence()} The attacker had {context.shadows} shadow models ({context.mode})."
        return f"{told} {draw.evidence()}"
    had = f"The attacker had {context.shadows} shadow models ({context.mode})"
    if context.shadows < _FEW:
        models = "One reference model was" if context.shadows else "No shadow models were"
        had = f"{models} trained: these figures are a lower bound on what an attacker can do"
    if found is None:
        return f"{had}. The members of the target are not known, so records are ranked but nothing is measured."
    many = f"{found.tried} attack{'s' if found.tried > 1 else ''}"
    shown, many = _SHOWN[found.leak], f"{many}; by {found.carrier}" if found.carrier else many
    if found.leak and found.strength == "weak":
        shown += ", by weak evidence"
    if partly:
        shown = "A leak is shown in a part of the records, but not over all of them"
    elif found.leak is False and context.shadows < _FEW:
        shown = "No leak is shown, but attacks this weak do not show that the model is safe"
    who = _WAYS[found.way].format(name=found.title, tried=found.tried)
    level = f"{100 * found.confidence:g} % interval"
    low, high = found.auc_interval
    area = f"{found.auc:.3f} ({level} {low:.3f} to {high:.3f})" + (_BELOW if high < _GUESSING else "")
    if found.rate is None:
        figures = f"{who.replace('identifies', 'reaches')} AUC {area}; chance gives 0.5"
    else:
        figures = f"{who} {_share(found, found.rate, level)}. Its AUC is {area}"
    if privacy is not None:
        figures += "; ε is withheld" if privacy.withheld else f"; the attacks show {privacy.bound()}"
    return f"{shown} ({found.p_text}, {many}). {figures}. {had}."


def _share(found: VerdictFigures, figure: RateFigure, level: str) -> str:
    low, high = figure.tpr_interval
    text = f"{percent(figure.tpr)} of {whole(found.members)} members ({level} {percent(low)} to {percent(high)})"
    others = f"{whole(found.non_members)} non-members"
    if not figure.reached:
        return (
            f"{text} while {percent(figure.fpr)} of {others} are flagged; scores are tied and no threshold flags "
            f"fewer, so nothing can be measured at {rate(figure.wanted)}; chance identifies {percent(figure.chance)}"
        )
    few = "" if figure.resolved else f", so this rests on {figure.allowed} of them"
    price = f"{rate(figure.wanted)} of {others} are flagged{few}"
    return f"{text} while {price}; chance identifies {percent(figure.chance)}"


def target_sentence(context: Context) -> str:
    """How well the target does on members and on non-members; empty if that is not known."""
    if context.train_accuracy is not None and context.test_accuracy is not None:
        inside, outside = percent(context.train_accuracy), percent(context.test_accuracy)
        return f"Target: accuracy {inside} on members, {outside} on non-members."
    if context.train_rmse is None or context.test_rmse is None:
        return ""
    inside, outside = ("" if share is None else f" (R² {share:.2f})" for share in (context.train_r2, context.test_r2))
    errors = f"{context.train_rmse:.4g} on members{inside}, {context.test_rmse:.4g} on non-members{outside}"
    return f"Target: root mean squared error {errors}."


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
            least = percent(lost[-1])
            found.append(f"A false-positive rate of {least} is not measurable with {whole(others)} non-members.")
        found += [
            f"At {rate(figure.wanted)} false positives only {figure.allowed} of {whole(others)} non-members may be "
            f"flagged. The rate rests on these few, so its interval is wide. For a sharper figure, audit "
            f"{whole(ENOUGH_WRONG / figure.wanted)} non-members."
            for figure in metrics.rates
            if not figure.resolved
        ]
    return (*found, *(attack.note for attack in attacks if attack.note))


def whole_sentence(attack: AttackFigures) -> str:
    """What a sample says about all records; empty if the audited records are not a random sample of more."""
    found = attack.whole
    if found is None:
        return ""
    low, high = found.auc_interval
    rates = [
        f"; it identifies {percent(one.tpr)} of the members ({percent(one.interval.low)} to "
        f"{percent(one.interval.high)}) while {rate(one.wanted)} of the non-members are flagged"
        for one in found.rates[:1]
    ]
    return (
        f"Estimated from a sample of {whole(found.audited)} of {whole(found.records)} records: over all of them "
        f"{attack.title} has AUC {found.auc:.3f} ({100 * found.confidence:g} % interval {low:.3f} to {high:.3f})"
        f"{''.join(rates)}."
    )


def precision_sentence(attack: AttackFigures) -> str:
    """How many flags of an attack are wrong; empty if it has no threshold or the members are not known."""
    if not attack.accusations:
        return ""
    first = attack.accusations[0]
    if not first.tpr and not first.fpr:
        return f"At its threshold for {rate(first.wanted)} FPR, {attack.name} flags no record."
    shares = [
        (
            rate(one.prior),
            f"{percent(1 - one.value)} ({percent(1 - one.interval.high)} to {percent(1 - one.interval.low)})",
        )
        for one in reversed(first.precisions)
        if one.value is not None
    ]
    (prior, wrong), *others = shares
    more = "".join(f"; {share} at {prior}" for prior, share in others)
    return (
        f"At its threshold for {rate(first.wanted)} FPR, {wrong} of the records that {attack.name} flags are not "
        f"members if {prior} of all records are members{more}."
    )


def list_sentence(attack: AttackFigures, *, leak: bool = True) -> str:
    """How many records can be flagged with a bounded share of errors; empty without simulated targets or leak."""
    if attack.listed is None or not leak:
        return ""
    if not attack.listed:
        return f"{attack.name} can flag no record if at most {rate(DISCOVERY_LEVEL)} of the flags may be wrong."
    many = f"{whole(attack.listed)} record" + ("" if attack.listed == 1 else "s")
    return (
        f"{attack.name} can flag {many} with at most {rate(DISCOVERY_LEVEL)} of the flags wrong, on average over "
        f"targets like the shadow models."
    )


def groups_sentence(groups: Sequence[GroupLeak], cell: WorstCell | None = None) -> str:
    """Which groups differ from the others of their column, and the most exposed cell; empty if none was compared."""
    compared = sum(one.judged for one in groups)
    worst = "" if cell is None else f" {cell_sentence(cell)}"
    if not compared:
        return worst.lstrip()
    apart, corrected = [one for one in groups if one.singled_out], f"(corrected for {compared} comparisons)"
    if not apart:
        return f"No group differs significantly from the others of its column {corrected}.{worst}"
    named = [f"{one.column} {one.group} ({one.singled_out}, {one.flags or f'AUC {one.auc:.3f}'})" for one in apart]
    which = "Groups that leak significantly more or less than the others of their column"
    return f"{which} {corrected}: {'; '.join(named)}.{worst}"


def cell_sentence(cell: WorstCell) -> str:
    """The most exposed group or combination of two, with the interval of the share that is identified."""
    low, high = cell.tpr_interval
    return (
        f"Most exposed is {cell.name}: {cell.identified} of {cell.members} members are identified (between "
        f"{whole(1000 * low)} and {whole(1000 * high)} of {whole(1000)}), and {cell.flagged} of {cell.non_members} "
        f"non-members flagged; {whole(cell.cells)} groups and combinations were looked at."
    )


def power_sentences(power: Power) -> tuple[str, str]:
    """Which leak this audit could have shown, and what a finer one needs."""
    rates = [f"a TPR of {percent(one.tpr)} at {rate(one.wanted)} FPR" for one in power.rates]
    shown = ", or ".join([f"an AUC of {power.auc:.3f}", *rates])
    return (
        f"This audit would detect {shown} in four of five cases (at 5 %, corrected for {power.figures} figures). A "
        f"smaller leak would probably stay undetected.",
        f"To detect an AUC of {power.finer_auc:g}, audit about {whole(power.records_for_auc)} records; for a rate at "
        f"{rate(power.finer_rate)} FPR that rests on ten false positives, {whole(power.non_members_for_rate)} "
        f"non-members.",
    )
