"""The top of a comparison, in counts of people: for the one who decides between two ways to train."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.report.compared import ComparedRun, Comparison
from glasshouse.report.exposure import Exposure, counted, exposure_at, unit_of
from glasshouse.report.rating import Rating, rating_of
from glasshouse.report.words import whole

__all__ = ["FirstRun", "compare_sentences", "first_runs"]


@dataclass(frozen=True, kw_only=True)
class FirstRun:
    """One run at the top of a comparison: its rating, its counts, and how often its model is right."""

    number: int
    name: str
    rating: Rating
    exposure: Exposure | None
    useful: str


def first_runs(comparison: Comparison) -> tuple[FirstRun, ...]:
    """Every run; one whose figures say nothing about its model has no counts."""
    return tuple(
        FirstRun(
            number=run.number,
            name=run.name,
            rating=rating_of(run.summary),
            exposure=_exposure(run),
            useful=_useful(run),
        )
        for run in comparison.runs
    )


def compare_sentences(comparison: Comparison) -> tuple[str, ...]:
    """What the runs expose, whether the difference is more than chance, and what it costs."""
    runs = [(run, found) for run in comparison.runs if (found := _exposure(run)) is not None]
    if len(runs) < len(comparison.runs):
        return ("At least one of the runs shows nothing about its model, so they cannot be compared in plain counts.",)
    first = runs[0][1]
    each = ", ".join(f"about {counted(found.found)} with {run.name}" for run, found in runs)
    told = [
        f"Of {whole(first.per)} {first.unit} in the training data, so many could be singled out: {each}; "
        f"{counted(first.wrong)} of {whole(first.per)} outsiders would be wrongly accused."
    ]
    for run, _ in runs[1:]:
        gap = run.tpr_difference
        if gap is not None:
            less = "fewer" if gap.value < 0 else "more"
            shown = f"{less} than" if gap.shown else "not shown to be more or fewer than"
            luck = "more than luck explains" if gap.shown else "luck may do this"
            told.append(f"With {run.name} they are {shown} with {runs[0][0].name}: {luck}.")
    costs = [f"{useful} with {run.name}" for run, _ in runs if (useful := _useful(run))]
    if costs:
        told.append(f"How useful the models are: {'; '.join(costs)}.")
    return tuple(told)


def _exposure(run: ComparedRun) -> Exposure | None:
    headline, measured = run.summary.headline, run.attack.metrics
    if headline is None or headline.leak is None or run.summary.context.warnings or measured is None:
        return None
    members, others = measured.curve.members, measured.curve.non_members
    return exposure_at(
        run.rate, unit=unit_of(run.summary), members=members, others=others, confidence=measured.confidence
    )


def _useful(run: ComparedRun) -> str:
    context = run.summary.context
    if context.test_accuracy is not None:
        return f"right about {100 * context.test_accuracy:.0f} of 100 outsiders"
    return "" if context.test_rmse is None else f"off by {context.test_rmse:.4g} on outsiders, typically"
