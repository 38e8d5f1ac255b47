"""Run an experiment by name, and keep its results beside those that the paper printed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glasshouse import InputError
from glasshouse.errors import MissingExtraError
from glasshouse.registry import Registry, did_you_mean
from glasshouse.store import write_file
from glasshouse.table import Table
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell, compared, markdown
from glasshouse_experiments.kept_results import Kept, provenance, stacked_tables
from glasshouse_experiments.settings import PRESETS, SETTINGS, Preset

__all__ = ["EXPERIMENTS", "Experiment", "Part", "experiment", "reproduce", "reproduce_all"]

TABLE_1 = ("cora", "citeseer", "pubmed", "flickr", "amazon-photo", "github", "synthetic")
Run = Callable[[Any], list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A share of an experiment's cells that is run, and kept in files, on its own.

    Args:
        name: ends the names of its files, as in ``pubmed-many.csv``; the first part has none.
        holds: whether a row of a table belongs to this part. A file of the first part that already holds such rows,
            from before the experiment had parts, counts for both.
        wanted: whether a preset runs it.

    Example:
        >>> Part(name="many", holds=lambda row: row["K"] == "128").wanted(PRESETS.find("quick"))
        True
    """

    name: str = ""
    holds: Callable[[dict[str, Any]], bool] = lambda _: False
    wanted: Callable[[Preset], bool] = lambda _: True


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper on one kind of data.

    Args:
        run: from a bench to cells.
        settings: its data sets by name.
        datasets: the names that it runs on.
        part: which part of the experiment, if it has several on the same data.
        bench: makes a bench from a setting, a preset and a folder.
        heavy: data sets that a light preset leaves out.
        compare: from cells to a table with verdicts; beside the paper's own cell by default.
        page: from that table, a title and notes to Markdown.
        picture: draws one data set's table as an SVG.
        overview: draws the table of all data sets.
    """

    run: Run
    settings: Registry[Any]
    datasets: tuple[str, ...]
    bench: Callable[..., Any]
    part: Part = Part()
    heavy: tuple[str, ...] = ()
    compare: Callable[[Iterable[Cell]], Table] = compared
    page: Callable[[Table, str, Sequence[str]], str] = markdown
    picture: Callable[[Table], str] | None = None
    overview: Callable[[Table], str] | None = None


# several under one name if graphs and other data share a table of the paper, or if a table has parts
EXPERIMENTS: Registry[list[Experiment]] = Registry("an experiment")


def experiment(
    name: str,
    *,
    datasets: Sequence[str] | None = None,
    further: Sequence[str] = (),
    settings: Registry[Any] = SETTINGS,
    bench: Callable[..., Any] = Bench,
    **more: Any,
) -> Callable[[Run], Run]:
    """Decorator that makes an experiment known to ``glasshouse reproduce``.

    Args:
        name: of the experiment; a second experiment with the same name is for other data, or another part.
        datasets: what it runs on; the columns of Table 1 by default, or all of other settings.
        further: more data sets.
        settings: where data sets are looked up.
        bench: makes a bench from ``setting``, ``preset``, ``folder``, ``seed`` and ``progress``.
        **more: ``part``, ``heavy``, ``compare``, ``page``, ``picture`` and ``overview`` of `Experiment`.
    """
    chosen = tuple(datasets or (TABLE_1 if settings is SETTINGS else settings.names())) + tuple(further)

    def decorate(run: Run) -> Run:
        part = Experiment(run=run, settings=settings, datasets=chosen, bench=bench, **more)
        if name not in EXPERIMENTS.names():
            EXPERIMENTS.add(name, [])
        EXPERIMENTS.find(name).append(part)
        return run

    return decorate


def reproduce(
    name: str,
    *,
    preset: str = "quick",
    datasets: Sequence[str] | None = None,
    out: Path | str = "results",
    pools: Path | str = "runs/pools",
    seed: int = 0,
    progress: bool | None = None,
    workers: int = 1,
    part: str | None = None,
) -> Table:
    """Run one experiment, data set by data set, and write its CSV, Markdown and provenance under ``out``.

    ``NAME.csv`` and ``NAME.md`` (and sometimes ``NAME.svg``) hold all data sets, ``NAME/DATASET.csv`` one, with a
    ``.json`` about the run beside it.

    A finished data set, or part of one, is not run again. Of the others every trained model and every target's scores
    are kept: a killed run continues where it stopped.

    Args:
        name: of the experiment.
        preset: ``"quick"`` or ``"paper"``.
        datasets: names of data sets; the preset's by default.
        out: folder for these files; presets other than ``paper`` have their own folder in it.
        pools: folder for shadow models, targets and scores, shared by all experiments.
        seed: of every random choice.
        progress: whether to show bars.
        workers: processes that attack targets of a graph side by side.
        part: name of the only part to run; ``"first"`` is the one whose files have no name of a part.
    """
    parts, chosen = EXPERIMENTS.find(name), PRESETS.find(preset)
    place = Path(out) / preset if preset != "paper" else Path(out)
    jobs = _jobs(name, _of_name(name, parts, part), chosen, datasets)
    for one, dataset in jobs:
        if _holder(place / name, one, dataset) is None:
            started = time.perf_counter()
            setting = one.settings.find(dataset)
            bench = one.bench(setting=setting, preset=chosen, folder=Path(pools), seed=seed, progress=progress)
            if isinstance(bench, Bench):
                bench = dataclasses.replace(bench, workers=workers)
            table = one.compare(one.run(bench))
            drawn = None if one.picture is None else one.picture(table)
            made = provenance(bench.note, preset, chosen, seed, time.perf_counter() - started) | {"workers": workers}
            Kept(place / name, dataset, one.part.name).write(table, made=made, picture=drawn)
    # the page shows all finished data sets, also those of earlier calls
    done = _holders(place / name, [(one, dataset) for one in parts for dataset in one.datasets])
    told = [(setting.find(kept.dataset).paper_name, kept.note) for kept, setting in done.items()]
    notes = list(dict.fromkeys(f"{title}: {note}" for title, note in told if note))
    whole = stacked_tables(list(done))
    write_file(place / f"{name}.csv", whole.to_csv())
    if parts[0].overview is not None:
        write_file(place / f"{name}.svg", parts[0].overview(whole))
    write_file(place / f"{name}.md", parts[0].page(whole, f"{name}, preset {preset}", notes))
    return stacked_tables(list(_holders(place / name, jobs)))


def reproduce_all(
    *, preset: str = "quick", datasets: Sequence[str] | None = None, **options: Any
) -> Iterator[tuple[str, Table]]:
    """Every experiment in the paper's order, by `reproduce`; those that fit none of the data sets are left out.

    One that needs a library that is not installed does not stop the others; it is named at the end.
    """
    missing: list[str] = []
    for name in EXPERIMENTS.names():
        known = {dataset for part in EXPERIMENTS.find(name) for dataset in part.datasets}
        asked = None if datasets is None else [dataset for dataset in datasets if dataset in known]
        if asked or (asked is None and known & set(PRESETS.find(preset).datasets)):
            try:
                table = reproduce(name, preset=preset, datasets=asked, **options)
            except MissingExtraError as error:
                missing.append(f"{name}: {error}")
            else:
                yield name, table
    if missing:
        raise InputError(*missing)


def _of_name(name: str, parts: Sequence[Experiment], wanted: str | None) -> Sequence[Experiment]:
    """The parts of an experiment with this name; all if none is named."""
    known = {one.part.name or "first": one for one in parts}
    if wanted is not None and wanted not in known:
        raise InputError(f'part: {name} has no part "{wanted}".{did_you_mean(wanted, list(known))}')
    return [one for one in parts if wanted in (None, one.part.name or "first")]


def _jobs(
    name: str, parts: Sequence[Experiment], preset: Preset, datasets: Sequence[str] | None
) -> list[tuple[Experiment, str]]:
    known: dict[str, list[Experiment]] = {}
    for part in parts:
        for dataset in part.datasets:
            known.setdefault(dataset, []).append(part)
    for dataset in datasets or ():
        if dataset not in known:
            raise InputError(f'dataset: {name} does not run on "{dataset}".{did_you_mean(dataset, list(known))}')
    asked = datasets or [dataset for dataset in preset.datasets if dataset in known]
    wanted = [
        (part, dataset)
        for dataset in asked
        for part in known[dataset]
        if part.part.wanted(preset) and (datasets or not (preset.light and dataset in part.heavy))
    ]
    if not wanted:
        raise InputError(f"dataset: {name} runs on {', '.join(known)}; name one, because the preset has none of them.")
    return wanted


def _holder(folder: Path, part: Experiment, dataset: str) -> Kept | None:
    """The file that holds a part of a data set: its own, or one from before the experiment had parts."""
    own, whole = Kept(folder, dataset, part.part.name), Kept(folder, dataset)
    if own.exists:
        return own
    return whole if whole.exists and any(part.part.holds(row) for row in whole.rows()) else None


def _holders(folder: Path, jobs: Iterable[tuple[Experiment, str]]) -> dict[Kept, Registry[Any]]:
    """The files that hold these parts, each once, a data set's together; with the settings that name the data set."""
    order = list(dict.fromkeys(dataset for _, dataset in jobs))
    found = {kept: part.settings for part, dataset in jobs if (kept := _holder(folder, part, dataset)) is not None}
    return dict(sorted(found.items(), key=lambda item: order.index(item[0].dataset)))
