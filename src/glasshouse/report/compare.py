"""Several runs side by side: what a defence buys, what it costs, and whether the difference is more than chance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glasshouse.errors import InputError
from glasshouse.evaluation import clopper_pearson
from glasshouse.evaluation.difference import Difference, Resampling, ScoredRecords, auc_difference, tpr_difference
from glasshouse.report.compare_choice import Choice, choose
from glasshouse.report.compare_words import compare_notes, compare_verdict
from glasshouse.report.compared import ComparedRun, Comparison
from glasshouse.report.saved_run import Run
from glasshouse.report.summarise import Summary
from glasshouse.table import Table

__all__ = ["compare"]

_OPPOSED = 0.1  # correlation of members below minus this; random members of the same records have about 0


def compare(runs: Mapping[str, Run], *, attack: str | None = None, confidence: float = 0.95) -> Comparison:
    """Compare runs: before and after a defence, or several strengths of one.

    All runs are compared by the same attack, at the smallest false-positive rate that all of them measured and that
    allows ten false positives. Each run is compared with the first by a bootstrap that reads the threshold again from
    every sample: paired if both runs have the same records and members, else each run is resampled alone. Intervals
    and p-values are corrected for the number of runs.

    Args:
        runs: by name: `glasshouse.AuditResult`, or what `read_run_with_records` gives.
        attack: the name of the attack; by default the one that is strongest on simulated targets.
        confidence: that all intervals of differences hold at once.

    Example:
        >>> compare({})
        Traceback (most recent call last):
        glasshouse.errors.InputError: runs: 0 given; a comparison needs two or more.
    """
    if len(runs) < 2:
        raise InputError(f"runs: {len(runs)} given; a comparison needs two or more.")
    summaries = {name: run.summary() for name, run in runs.items()}
    unknown = [name for name, summary in summaries.items() if summary.members is None]
    if unknown:
        raise InputError(f"{unknown[0]}: its members are not known, so there are no figures to compare.")
    choice = choose(summaries, attack)
    tables = {name: _by_id(name, run.records(), choice.attack) for name, run in runs.items()}
    baseline = next(iter(tables.values()))
    found = []
    for number, (name, summary) in enumerate(summaries.items(), start=1):
        differences = (
            (None, None)
            if number == 1
            else _differences(baseline, tables[name], choice, comparisons=len(runs) - 1, confidence=confidence)
        )
        found.append(_compared(number, name, summary, choice, *differences))
    compared = tuple(found)
    return Comparison(compared, choice, compare_verdict(compared, choice), compare_notes(compared, choice))


def _differences(
    first: Table, second: Table, choice: Choice, *, comparisons: int, confidence: float
) -> tuple[Difference, Difference]:
    drawn = _resampling(first, second)
    one, other = (_scored(table) for table in (first, second))
    return (
        tpr_difference(one, other, fpr=choice.fpr, resampling=drawn, comparisons=comparisons, confidence=confidence),
        auc_difference(one, other, resampling=drawn, comparisons=comparisons, confidence=confidence),
    )


def _resampling(first: Table, second: Table) -> Resampling:
    """Paired if both have the same records and members; opposed if members of one are often outside in the other."""
    if all(np.array_equal(first[column], second[column]) for column in ("id", "member")):
        return "paired"
    _, here, there = np.intersect1d(first["id"], second["id"], assume_unique=True, return_indices=True)
    one, other = first["member"][here].astype(np.float64), second["member"][there].astype(np.float64)
    if not len(here):
        return "unpaired"
    together = float(np.mean(one * other) - one.mean() * other.mean())
    return "opposed" if together < -_OPPOSED * float(one.std() * other.std()) else "unpaired"


def _scored(table: Table) -> ScoredRecords:
    return table["score"], table["member"]


def _by_id(name: str, records: Table, attack: str) -> Table:
    """Ids, members and scores of one attack, in the order of the ids: runs of the same records then agree by row."""
    lost = [column for column in ("id", "member", f"{attack}_score") if column not in records]
    if lost:
        raise InputError(
            f"{name}: its records have no column {lost[0]}, so it cannot be compared. Run the audit again."
        )
    columns = {"id": records["id"].astype(np.str_), "member": records["member"].astype(np.bool_)}
    return Table({**columns, "score": records[f"{attack}_score"].astype(np.float64)}).sorted_by("id")


def _compared(
    number: int, name: str, summary: Summary, choice: Choice, tpr: Difference | None, auc: Difference | None
) -> ComparedRun:
    attack = summary.attack(choice.attack)
    figure = None if attack.metrics is None else attack.metrics.rate_at(choice.fpr)
    if figure is None:
        raise InputError(f"{name}: {choice.attack} was not measured at the compared rate. Run the audit again.")
    accuracy, interval = summary.context.test_accuracy, None
    if accuracy is not None and summary.members is not None:
        others = summary.records - summary.members
        interval = clopper_pearson(min(others, round(accuracy * others)), others)
    return ComparedRun(number, name, summary, attack, figure, tpr, auc, interval)
