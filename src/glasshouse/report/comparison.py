"""Several runs side by side: benefit and cost of a defence, and whether the difference is more than chance."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glasshouse.core.errors import InputError
from glasshouse.core.table import Table
from glasshouse.evaluation import Interval, clopper_pearson
from glasshouse.evaluation.difference import Difference, Resampling, auc_difference, tpr_difference
from glasshouse.evaluation.roc import allowed_wrong
from glasshouse.report.decision.first_page import Exposure, exposure_at
from glasshouse.report.decision.rating import Rating, rating_of
from glasshouse.report.figures import AttackFigures, RateFigure
from glasshouse.report.format import percent, points, rate
from glasshouse.report.run_folder import Run
from glasshouse.report.summary import Summary

ENOUGH = 10  # allowed false positives, below which a rate rests on very few non-members


class Choice(NamedTuple):
    """The rate and the attack."""

    fpr: float  # the false-positive rate
    allowed: int  # how many false positives it allows in the run with the fewest non-members
    attack: str  # its name
    reason: str  # why this attack
    attacks: tuple[str, ...]  # the names of all attacks that every run measured


def choose(summaries: Mapping[str, Summary], attack: str | None = None) -> Choice:
    """The smallest common rate with ten false positives, and the attack: as wanted, or by simulation, not by result."""
    shared = set.intersection(*(set(summary.fprs) for summary in summaries.values()))
    if not shared:
        told = _by_run(summaries, lambda one: ", ".join(map(rate, one.fprs)) or "none")
        raise InputError(f"runs: no false-positive rate was measured in all of them ({told}). Use the same rates.")
    fewest = min(summary.records - (summary.members or 0) for summary in summaries.values())
    fpr = next((fpr for fpr in sorted(shared) if allowed_wrong(fpr, fewest) >= ENOUGH), max(shared))
    measured = [  # attacks that know the members are limits, and not attacks
        [one.name for one in summary.attacks if one.metrics is not None and not one.knows_truth]
        for summary in summaries.values()
    ]
    attacks = tuple(name for name in measured[0] if all(name in names for names in measured))
    allowed = allowed_wrong(fpr, fewest)
    if attack is not None:
        _check_wanted(attack, attacks, summaries)
        return Choice(fpr, allowed, attack, f"The compared attack is {attack}, as requested.", attacks)
    # ``best`` may be another attack in every run
    same = [name for name in attacks if len({_kind(summary.attack(name)) for summary in summaries.values()}) == 1]
    if not same:
        told = _by_run(summaries, lambda one: ", ".join(attack.name for attack in one.attacks))
        raise InputError(f"runs: no attack was made in all of them ({told}). Audit them with the same attacks.")
    strengths = {name: _strength(name, summaries, fpr) for name in same}
    known = {name: strength for name, strength in strengths.items() if strength is not None}
    best = max(known, key=lambda name: known[name], default=same[0])
    if not known:
        why = "the first that all runs have; not all runs know how strong attacks are on simulated targets"
    elif len(known) == 1:
        why = "the only one that all runs have"
    else:
        why = f"of {len(known)} attacks that all runs have, it identifies most members of simulated targets"
        why += f" ({percent(known[best][0])} at {rate(fpr)})"
    return Choice(fpr, allowed, best, f"The compared attack is {best}: {why}.", attacks)


def _by_run(summaries: Mapping[str, Summary], says: Callable[[Summary], str]) -> str:
    return "; ".join(f"{name}: {says(summary)}" for name, summary in summaries.items())


def _check_wanted(attack: str, attacks: tuple[str, ...], summaries: Mapping[str, Summary]) -> None:
    if attack in attacks:
        return
    if any(one.name == attack and one.knows_truth for summary in summaries.values() for one in summary.attacks):
        raise InputError(f'attack: "{attack}" is given the members of the target, as a limit; compare another attack.')
    lost = [name for name, summary in summaries.items() if attack not in {one.name for one in summary.attacks}]
    where = f"is not in {lost[0]}" if lost else "was not measured in all runs"
    raise InputError(f'attack: "{attack}" {where}. All runs have: {", ".join(attacks) or "none"}.')


def _kind(attack: AttackFigures) -> str:
    return attack.description.partition("(")[0]


def _strength(name: str, summaries: Mapping[str, Summary], fpr: float) -> tuple[float, float] | None:
    """Mean over runs of the TPR at the rate and of the AUC on simulated targets; None if a run has none."""
    found = []
    for summary in summaries.values():
        simulated = summary.attack(name).simulated
        if simulated is None:
            return None
        found.append((simulated.strengths[summary.fprs.index(fpr)], simulated.auc))
    strength, area = np.mean(found, axis=0).tolist()
    return strength, area


@dataclass(frozen=True)
class ComparedRun:
    """One run in a comparison."""

    number: int  # its mark in the picture
    name: str  # that it was given
    summary: Summary  # its own figures
    attack: AttackFigures  # the figures of the compared attack
    rate: RateFigure  # the TPR of that attack at the compared rate
    tpr_difference: Difference | None  # that TPR minus the first run's; None for the first run
    auc_difference: Difference | None  # AUC minus the first run's; None for the first run

    @property
    def accuracy_interval(self) -> Interval | None:
        """Of the target's accuracy on non-members; None if that is not known."""
        accuracy, members = self.summary.context.test_accuracy, self.summary.members
        if accuracy is None or members is None:
            return None
        others = self.summary.records - members
        return clopper_pearson(min(others, round(accuracy * others)), others)

    @property
    def rating(self) -> Rating:
        """By the usual policy."""
        return rating_of(self.summary)

    @property
    def exposure(self) -> Exposure | None:
        """The rate in counts; None if the figures say nothing about the model."""
        measured = self.attack.metrics
        if self.summary.conclusion.measured is None or measured is None:
            return None
        known: dict[str, Any] = {"unit": self.summary.unit, "leak": bool(self.summary.conclusion.leak)}
        known |= {"members": measured.curve.members, "others": measured.curve.non_members}
        return exposure_at(self.rate, confidence=measured.confidence, **known)


@dataclass(frozen=True)
class Comparison:
    """Two or more runs of one attack at one false-positive rate."""

    runs: tuple[ComparedRun, ...]  # in the order in which they were given; the others are compared with the first
    choice: Choice  # which rate and attack, and why
    verdict: str  # what was found, in words
    notes: tuple[str, ...]  # what else a reader has to know

    def __repr__(self) -> str:
        return f"Comparison({', '.join(run.name for run in self.runs)}, by {self.choice.attack})"

    def _repr_html_(self) -> str:
        """As a notebook shows it: the verdict, and a row for each run."""
        gaps = [run.tpr_difference for run in self.runs]
        rows = Table(
            {
                "run": [run.name for run in self.runs],
                f"TPR at {rate(self.choice.fpr)} FPR": [percent(run.rate.tpr) for run in self.runs],
                "difference, in points": ["–" if gap is None else points(gap.value) for gap in gaps],
                "p": ["–" if gap is None else f"{gap.p_value:.2g}" for gap in gaps],
                "rating": [run.rating.word for run in self.runs],
            }
        )
        return f"<p>{html.escape(self.verdict)}</p>{rows._repr_html_()}"


RESAMPLED = {"paired": "paired", "unpaired": "unpaired", "opposed": "unpaired and opposite members"}


def compare_verdict(runs: Sequence[ComparedRun], choice: Choice) -> str:
    """The most private of the other runs beside the first, and whether the difference is more than chance."""
    first, others = runs[0], [(run, gap) for run in runs if (gap := run.tpr_difference) is not None]
    best, found = min(others, key=lambda pair: pair[0].rate.strength)
    text = (
        f"At {rate(choice.fpr)} false positives {choice.attack} identifies {_share(first)} of the members of "
        f"{first.name} and {_share(best)} of those of {best.name}: {points(found.value)} points, "
        f"{rate(found.confidence)} interval {points(found.interval.low)} to {points(found.interval.high)} "
        f"({how_tested(found)}), {'more than chance' if found.shown else 'which may be chance'}."
    )
    if len(others) > 1:
        sure = [run.name for run, gap in others if gap.shown]
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
    """The p-value, and how it was found."""
    value = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.2g}"
    many = f", corrected for {found.comparisons} comparisons" if found.comparisons > 1 else ""
    return f"{value}, {RESAMPLED[found.resampling]}{many}"


def compare_notes(runs: Sequence[ComparedRun], choice: Choice) -> tuple[str, ...]:
    """Which attack and why, how few non-members the rate rests on, and what makes the runs hard to compare."""
    contexts = [run.summary.context for run in runs]
    found = [choice.reason]
    if choice.allowed < ENOUGH:
        found.append(
            f"A rate of {rate(choice.fpr)} allows only {choice.allowed} false positive"
            f"{'' if choice.allowed == 1 else 's'}, so the figures rest on very few non-members: only large "
            f"differences can be shown. Audit more non-members, or measure a larger rate."
        )
    found += [
        f"In {run.name} scores are tied, and no threshold of {run.attack.name} flags fewer than "
        f"{percent(run.rate.fpr)} of the non-members; that rate is shown. The difference is that of the TPR at "
        f"{rate(choice.fpr)} when ties are ordered at random."
        for run in runs
        if not run.rate.reached
    ]
    if len({_kind(run.attack) for run in runs}) > 1:
        each = ", ".join(f"{_kind(run.attack)} in {run.name}" for run in runs)
        found.append(f"{choice.attack} is not the same attack in all runs: {each}.")
    if len({context.fingerprint for context in contexts}) > 1:
        found.append("The runs use different data, so differences between them are not due to a defence alone.")
    if len({(context.shadows, context.mode) for context in contexts}) > 1:
        found.append("The attackers had different shadow models, which may cause a difference.")
    if len({frozenset(attack.name for attack in run.summary.attacks) for run in runs}) > 1:
        found.append("Not every attack was run in every audit.")
    if lost := [run.name for run in runs if run.accuracy_interval is None and run.summary.context.test_rmse is None]:
        found.append(f"Not in the picture, since the test accuracy is not known: {', '.join(lost)}.")
    return tuple(found)


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
        glasshouse.InputError: runs: 0 given; a comparison needs two or more.
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
    found: list[ComparedRun] = []
    for name, summary in summaries.items():
        tpr, auc = None, None
        if found:
            pair = [(table["score"], table["member"]) for table in (baseline, tables[name])]
            shared: Any = {"resampling": _resampling(baseline, tables[name]), "comparisons": len(runs) - 1}
            tpr = tpr_difference(*pair, fpr=choice.fpr, confidence=confidence, **shared)
            auc = auc_difference(*pair, confidence=confidence, **shared)
        compared = summary.attack(choice.attack)
        at_rate = None if compared.metrics is None else compared.metrics.rate_at(choice.fpr)
        if at_rate is None:
            raise InputError(f"{name}: {choice.attack} was not measured at the compared rate. Run the audit again.")
        found.append(ComparedRun(len(found) + 1, name, summary, compared, at_rate, tpr, auc))
    return Comparison(tuple(found), choice, compare_verdict(found, choice), compare_notes(found, choice))


def _resampling(first: Table, second: Table) -> Resampling:
    """Paired if both have the same records and members; opposed if many members of one are not members of the other."""
    if all(np.array_equal(first[column], second[column]) for column in ("id", "member")):
        return "paired"
    _, here, there = np.intersect1d(first["id"], second["id"], assume_unique=True, return_indices=True)
    one, other = first["member"][here].astype(np.float64), second["member"][there].astype(np.float64)
    if not len(here):
        return "unpaired"
    together = float(np.mean(one * other) - one.mean() * other.mean())
    return "opposed" if together < -_OPPOSED * float(one.std() * other.std()) else "unpaired"


def _by_id(name: str, records: Table, attack: str) -> Table:
    """Ids, members and scores of one attack, in the order of the ids: runs of the same records then agree by row."""
    for column in ("id", "member", f"{attack}_score"):
        if column not in records:
            told = f"its records have no column {column}, so it cannot be compared. Run the audit again."
            raise InputError(f"{name}: {told}")
    columns = {"id": records["id"].astype(np.str_), "member": records["member"].astype(np.bool_)}
    return Table({**columns, "score": records[f"{attack}_score"].astype(np.float64)}).sorted_by("id")
