"""What a comparison found, in words."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.evaluation.difference import Difference
from glasshouse.report.compare_choice import ENOUGH, Choice
from glasshouse.report.compared import ComparedRun
from glasshouse.report.words import percent, points, rate

__all__ = ["RESAMPLED", "compare_notes", "compare_verdict", "how_tested"]

RESAMPLED = {"paired": "paired", "unpaired": "unpaired", "opposed": "unpaired and opposite members"}


def compare_verdict(runs: Sequence[ComparedRun], choice: Choice) -> str:
    """The most private of the other runs beside the first, and whether the difference is more than chance."""
    first, others = runs[0], runs[1:]
    best = min(others, key=lambda run: run.rate.strength)
    found = best.tpr_difference
    if found is None:
        raise AssertionError("every run but the first has a difference")
    text = (
        f"At {rate(choice.fpr)} false accusations {choice.attack} finds {_share(first)} of the members of "
        f"{first.name} and {_share(best)} of those of {best.name}: {points(found.value)} points, "
        f"{rate(found.confidence)} interval {points(found.interval.low)} to {points(found.interval.high)} "
        f"({how_tested(found)}), {'more than chance' if found.shown else 'which may be chance'}."
    )
    if len(others) > 1:
        sure = [run.name for run in others if run.tpr_difference is not None and run.tpr_difference.shown]
        text += f" Runs that differ from {first.name} by more than chance: {', '.join(sure) or 'none'}."
    before, after = first.summary.context.test_accuracy, best.summary.context.test_accuracy
    if before is not None and after is not None:
        text += f" The test accuracy of {best.name} is {percent(after)}, that of {first.name} is {percent(before)}."
    errors = first.summary.context.test_rmse, best.summary.context.test_rmse
    if errors[0] is not None and errors[1] is not None:
        text += f" The test error of {best.name} is {errors[1]:.4g}, that of {first.name} is {errors[0]:.4g}."
    return text


def _share(run: ComparedRun) -> str:
    tied = "" if run.rate.reached else f" (at {percent(run.rate.fpr)}, since scores are tied)"
    return f"{percent(run.rate.tpr)}{tied}"


def how_tested(found: Difference) -> str:
    """The p-value, and how it was found.

    Example:
        >>> from glasshouse.evaluation import Interval
        >>> how_tested(Difference(-0.1, Interval(-0.2, -0.05), 0.002, "paired", 4, 0.95))
        'p = 0.002, paired, corrected for 4 comparisons'
    """
    value = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.2g}"
    many = f", corrected for {found.comparisons} comparisons" if found.comparisons > 1 else ""
    return f"{value}, {RESAMPLED[found.resampling]}{many}"


def compare_notes(runs: Sequence[ComparedRun], choice: Choice) -> tuple[str, ...]:
    """Which attack and why, how few non-members the rate rests on, and what makes the runs hard to compare."""
    contexts = [run.summary.context for run in runs]
    found = [choice.reason]
    if choice.allowed < ENOUGH:
        found.append(
            f"A rate of {rate(choice.fpr)} allows only {choice.allowed} false accusation"
            f"{'' if choice.allowed == 1 else 's'}, so the figures rest on very few non-members: only large "
            f"differences can be shown. Audit more non-members, or measure a larger rate."
        )
    found += [
        f"In {run.name} scores are tied, and no threshold of {run.attack.name} accuses fewer than "
        f"{percent(run.rate.fpr)} of the non-members; that rate is shown. Its difference is that of the TPR at "
        f"{rate(choice.fpr)} when ties are ordered at random."
        for run in runs
        if not run.rate.reached
    ]
    if len({run.attack.description.partition("(")[0] for run in runs}) > 1:
        each = ", ".join(f"{run.attack.description.partition('(')[0]} in {run.name}" for run in runs)
        found.append(f"{choice.attack} is not the same attack in all runs: {each}.")
    if len({context.fingerprint for context in contexts}) > 1:
        found.append("The runs use different data, so differences between them are not due to a defence alone.")
    if len({(context.shadows, context.mode) for context in contexts}) > 1:
        found.append("The attackers had different shadow models, so a difference may be due to these.")
    if len({frozenset(attack.name for attack in run.summary.attacks) for run in runs}) > 1:
        found.append("Not every attack was tried in every run.")
    if lost := [run.name for run in runs if run.accuracy_interval is None and run.summary.context.test_rmse is None]:
        found.append(f"Not in the picture, since the test accuracy is not known: {', '.join(lost)}.")
    return tuple(found)
