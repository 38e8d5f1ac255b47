"""Several runs side by side: what a defence buys, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glasshouse.errors import InputError
from glasshouse.evaluation import Interval, clopper_pearson
from glasshouse.report.figures import AttackFigures, RateFigure
from glasshouse.report.summarise import Summary
from glasshouse.report.verdict import attackers
from glasshouse.report.words import percent, rate

__all__ = ["ComparedRun", "Comparison", "compare"]


@dataclass(frozen=True)
class ComparedRun:
    """One run in a comparison.

    Args:
        number: its mark in the picture.
        name: the name that it was given.
        summary: its own figures.
        strongest: the attack with the largest TPR at the compared rate.
        rate: the TPR of that attack at this rate.
        accuracy_interval: Clopper-Pearson, of the target's accuracy on non-members; None if it is not known.
    """

    number: int
    name: str
    summary: Summary
    strongest: AttackFigures
    rate: RateFigure
    accuracy_interval: Interval | None


@dataclass(frozen=True)
class Comparison:
    """Two or more runs at one false-positive rate.

    Args:
        runs: in the order in which they were given; the others are compared with the first.
        fpr: the smallest rate at which all of them were measured.
        attacks: names of the attacks that every run has.
        verdict: what was found, in words.
        notes: what else a reader has to know.
    """

    runs: tuple[ComparedRun, ...]
    fpr: float
    attacks: tuple[str, ...]
    verdict: str
    notes: tuple[str, ...]


def compare(summaries: Mapping[str, Summary]) -> Comparison:
    """Compare runs: before and after a defence, or several strengths of one.

    Each run is shown by its own strongest attack at the smallest false-positive rate that all of them measured: a
    defence is only as good as it is against the attack that works best against it.

    Args:
        summaries: of the runs, by name; the others are compared with the first.

    Example:
        >>> compare({})
        Traceback (most recent call last):
        glasshouse.errors.InputError: runs: 0 given; a comparison needs two or more.
    """
    if len(summaries) < 2:
        raise InputError(f"runs: {len(summaries)} given; a comparison needs two or more.")
    unknown = [name for name, summary in summaries.items() if summary.members is None]
    if unknown:
        raise InputError(f"{unknown[0]}: its members are not known, so there are no figures to compare.")
    shared = set.intersection(*(set(summary.fprs) for summary in summaries.values()))
    if not shared:
        told = "; ".join(f"{name}: {', '.join(map(rate, one.fprs)) or 'none'}" for name, one in summaries.items())
        raise InputError(f"runs: no false-positive rate was measured in all of them ({told}). Use the same rates.")
    fpr = min(shared)
    runs = tuple(_compared(number, name, one, fpr) for number, (name, one) in enumerate(summaries.items(), start=1))
    every = [attack.name for attack in runs[0].summary.attacks]
    common = tuple(name for name in every if all(name in _names(run.summary) for run in runs))
    return Comparison(runs, fpr, common, _verdict(runs, fpr), _notes(runs))


def _compared(number: int, name: str, summary: Summary, fpr: float) -> ComparedRun:
    reached = [
        (attack, attack.metrics.rate_at(fpr)) for attack in attackers(summary.attacks) if attack.metrics is not None
    ]
    strongest, found = max(
        ((attack, figure) for attack, figure in reached if figure is not None), key=lambda pair: pair[1].strength
    )
    accuracy, interval = summary.context.test_accuracy, None
    if accuracy is not None and summary.members is not None:
        others = summary.records - summary.members
        interval = clopper_pearson(min(others, round(accuracy * others)), others)
    return ComparedRun(number, name, summary, strongest, found, interval)


def _verdict(runs: tuple[ComparedRun, ...], fpr: float) -> str:
    """The most private run compared with the first, and whether the difference is more than chance."""
    first, best = runs[0], min(runs, key=lambda run: run.rate.strength)
    base = f"In {first.name}, {percent(first.rate.tpr)} of the members are found at {rate(fpr)} false accusations"
    if best is first:
        return f"{base}; no other run has less."
    apart = best.rate.tpr_interval.high < first.rate.tpr_interval.low
    sure = "their intervals do not overlap" if apart else "but their intervals overlap, so it may be chance"
    before, after = first.summary.context.test_accuracy, best.summary.context.test_accuracy
    price = ""
    if before is not None and after is not None:
        price = f" The test accuracy of {best.name} is {percent(after)}, that of {first.name} is {percent(before)}."
    return f"{base}; in {best.name}, {percent(best.rate.tpr)} ({sure}).{price}"


def _notes(runs: tuple[ComparedRun, ...]) -> tuple[str, ...]:
    contexts = [run.summary.context for run in runs]
    found = [
        f"In {run.name} scores are tied, and no threshold of {run.strongest.name} accuses fewer than "
        f"{percent(run.rate.fpr)} of the non-members; that rate is shown."
        for run in runs
        if not run.rate.reached
    ]
    if len({context.fingerprint for context in contexts}) > 1:
        found.append("The runs use different data, so differences between them are not due to a defence alone.")
    if len({(context.shadows, context.mode) for context in contexts}) > 1:
        found.append("The attackers had different shadow models, so a difference may be due to these.")
    if len({_names(run.summary) for run in runs}) > 1:
        found.append("Not every attack was tried in every run.")
    if lost := [run.name for run in runs if run.accuracy_interval is None]:
        found.append(f"Not in the picture, since the test accuracy is not known: {', '.join(lost)}.")
    return tuple(found)


def _names(summary: Summary) -> frozenset[str]:
    return frozenset(attack.name for attack in summary.attacks)
