"""Run experiments by name, and keep their results beside those that the paper printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from glasshouse import InputError
from glasshouse.core.errors import LeftOutError
from glasshouse.core.progress import note_work
from glasshouse.core.registry import did_you_mean
from glasshouse.core.table import Table
from glasshouse.io.files import write_file
from glasshouse_experiments.experiment import EXPERIMENTS, Experiment
from glasshouse_experiments.jobs import Job, Order, holders, planned
from glasshouse_experiments.kept_results import stacked_tables
from glasshouse_experiments.lanes import run_lanes

__all__ = ["reproduce", "reproduce_all"]

_DONE = "Other tables are finished."
Fault = tuple[Job, tuple[str, ...]]


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    datasets: Sequence[str] | None = None,
    part: str | None = None,
    **options: Any,
) -> Table:
    """Run one experiment, data set by data set, and write its CSV, Markdown and provenance under ``out``.

    ``NAME.csv`` and ``NAME.md`` (and sometimes ``NAME.svg``) hold all data sets, ``NAME/DATASET.csv`` one, with a
    ``.json`` about the run beside it.

    A finished data set, or part of one, is not run again. Of the others every trained model and every target's scores
    are kept: a killed run continues where it stopped. A data set that cannot be run, because a file of it is missing,
    does not stop the others.

    Args:
        name: of the experiment.
        preset: ``"quick"`` or ``"paper"``.
        datasets: names of data sets; the preset's by default.
        part: name of the only part to run; ``"first"`` is the one whose files have no name of a part.
        **options: ``out``, ``pools``, ``seed``, ``progress`` and ``workers`` of `Order`.

    Raises:
        LeftOutError: names, when all others are finished, what could not be run and why.
    """
    order, parts = Order.of(preset, **options), EXPERIMENTS.find(name)
    jobs = planned(name, _of_name(name, parts, part), order.size, datasets)
    faults = _all_run(jobs, order)
    _write_pages(name, parts, order)
    _raise_left_out(faults)
    return stacked_tables(list(holders(order.place, jobs)))


def reproduce_all(
    *, preset: str = "quick", datasets: Sequence[str] | None = None, lanes: int = 1, **options: Any
) -> Iterator[tuple[str, Table]]:
    """Every experiment in the paper's order, by `reproduce`; those that fit none of the data sets are left out.

    One that needs a library that is not installed, or a file that is missing, does not stop the others; all such are
    named at the end.

    Args:
        preset: ``"quick"`` or ``"paper"``.
        datasets: names of data sets; the preset's by default.
        lanes: data sets that run side by side, each in a process of its own. What measures seconds runs after them,
            with nothing beside it.
        **options: as in `reproduce`.
    """
    order = Order.of(preset, **options)
    jobs: dict[str, list[Job]] = {}
    for name in EXPERIMENTS.names():
        parts = EXPERIMENTS.find(name)
        known = {dataset for one in parts for dataset in one.datasets}
        asked = None if datasets is None else [dataset for dataset in datasets if dataset in known]
        if asked or (asked is None and known & set(order.size.datasets)):
            jobs[name] = planned(name, parts, order.size, asked)
    if lanes > 1:
        run_lanes([job for of_name in jobs.values() for job in of_name], order, lanes=lanes)
    faults: list[Fault] = []
    for name, of_name in jobs.items():
        faults += _all_run(of_name, order)
        _write_pages(name, EXPERIMENTS.find(name), order)
        finished = list(holders(order.place, of_name))
        if finished:
            yield name, stacked_tables(finished)
    _raise_left_out(faults)


def _all_run(jobs: Sequence[Job], order: Order) -> list[Fault]:
    """Run what is not finished; return what could not be run, and why."""
    faults: list[Fault] = []
    if any(job.holder(order.place) is not None for job in jobs):
        note_work(_DONE)
    for job in jobs:
        try:
            job.run(order)
            note_work(_DONE)
        except InputError as error:
            faults.append((job, error.faults))
    return faults


def _raise_left_out(faults: Sequence[Fault]) -> None:
    """Name the faults of each data set once, with all experiments that they stopped; return if there is none."""
    stopped: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for job, why in faults:
        stopped.setdefault((job.dataset, why), {})[job.name] = None
    lines = []
    for (dataset, (first, *more)), names in stopped.items():
        lines += [f"{dataset} ({', '.join(names)}): {first}", *more]
    if lines:
        raise LeftOutError(*lines)


def _write_pages(name: str, parts: Sequence[Experiment], order: Order) -> None:
    """The table, page and picture of all finished data sets, also of those of earlier calls."""
    done = holders(order.place, [Job(name, one, dataset) for one in parts for dataset in one.datasets])
    if not done:
        return
    told = [(setting.find(kept.dataset).paper_name, kept.note) for kept, setting in done.items()]
    notes = list(dict.fromkeys(f"{title}: {note}" for title, note in told if note))
    whole = stacked_tables(list(done))
    write_file(order.place / f"{name}.csv", whole.to_csv())
    if parts[0].overview is not None:
        write_file(order.place / f"{name}.svg", parts[0].overview(whole))
    write_file(order.place / f"{name}.md", parts[0].page(whole, f"{name}, preset {order.preset}", notes))


def _of_name(name: str, parts: Sequence[Experiment], wanted: str | None) -> Sequence[Experiment]:
    """The parts of an experiment with this name; all if none is named."""
    known = {one.part.name or "first": one for one in parts}
    if wanted is not None and wanted not in known:
        raise InputError(f'part: {name} has no part "{wanted}".{did_you_mean(wanted, list(known))}')
    return [one for one in parts if wanted in (None, one.part.name or "first")]
