"""Run an experiment by name, and keep its results beside those that the paper printed."""

from __future__ import annotations

import csv
import json
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from glasshouse import InputError
from glasshouse.audit_steps import library_versions
from glasshouse.registry import Registry, did_you_mean
from glasshouse.store import write_file
from glasshouse.table import Table
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell, compared, markdown
from glasshouse_experiments.settings import PRESETS, SETTINGS, Preset
from glasshouse_experiments.source_commit import source_commit

__all__ = ["EXPERIMENTS", "Experiment", "experiment", "reproduce", "reproduce_all"]

TABLE_1 = ("cora", "citeseer", "pubmed", "flickr", "amazon-photo", "github", "synthetic")
Run = Callable[[Any], list[Cell]]
_NUMBERS = {"mean", "std", "paper_mean", "paper_std", "difference_sd", "rival_mean", "rival_std"}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper on one kind of data.

    Args:
        run: from a bench to cells.
        settings: its data sets by name.
        datasets: the names that it runs on.
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
    heavy: tuple[str, ...] = ()
    compare: Callable[[Iterable[Cell]], Table] = compared
    page: Callable[[Table, str, Sequence[str]], str] = markdown
    picture: Callable[[Table], str] | None = None
    overview: Callable[[Table], str] | None = None


# several under one name if graphs and other data share a table of the paper
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
        name: of the experiment; a second experiment with the same name is for other data.
        datasets: what it runs on; the columns of Table 1 by default, or all of other settings.
        further: more data sets.
        settings: where data sets are looked up.
        bench: makes a bench from ``setting``, ``preset``, ``folder``, ``seed`` and ``progress``.
        **more: ``heavy``, ``compare``, ``page``, ``picture`` and ``overview`` of `Experiment`.
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
) -> Table:
    """Run one experiment, data set by data set, and write its CSV, Markdown and provenance under ``out``.

    ``NAME.csv`` and ``NAME.md`` (and sometimes ``NAME.svg``) hold all data sets, ``NAME/DATASET.csv`` one, with a
    ``.json`` about the run beside it.

    A finished data set is not run again. Of the others every trained model and every target's scores are kept: a killed
    run continues where it stopped.

    Args:
        name: of the experiment.
        preset: ``"quick"`` or ``"paper"``.
        datasets: names of data sets; the preset's by default.
        out: folder for these files; presets other than ``paper`` have their own folder in it.
        pools: folder for shadow models, targets and scores, shared by all experiments.
        seed: of every random choice.
        progress: whether to show bars.
    """
    parts, chosen = EXPERIMENTS.find(name), PRESETS.find(preset)
    place = Path(out) / preset if preset != "paper" else Path(out)
    jobs = _jobs(name, parts, chosen, datasets)
    for part, dataset in jobs:
        setting = part.settings.find(dataset)
        path = _place(place, name, dataset)
        if not path.exists():
            started = time.perf_counter()
            bench = part.bench(setting=setting, preset=chosen, folder=Path(pools), seed=seed, progress=progress)
            table = part.compare(part.run(bench))
            if part.picture is not None:
                write_file(path.with_suffix(".svg"), part.picture(table))
            provenance = _provenance(bench.note, preset, chosen, seed, time.perf_counter() - started)
            write_file(path.with_suffix(".json"), json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")
            write_file(path, table.to_csv())  # last: it shows that the others are complete
    # the page shows all finished data sets, also those of earlier calls
    done = [(part, dataset) for part in parts for dataset in part.datasets if _place(place, name, dataset).exists()]
    told = [(part.settings.find(dataset).paper_name, _told(place, name, dataset)) for part, dataset in done]
    notes = list(dict.fromkeys(f"{title}: {note}" for title, note in told if note))
    whole = _read(place, name, [dataset for _, dataset in done])
    write_file(place / f"{name}.csv", whole.to_csv())
    if parts[0].overview is not None:
        write_file(place / f"{name}.svg", parts[0].overview(whole))
    write_file(place / f"{name}.md", parts[0].page(whole, f"{name}, preset {preset}", notes))
    return _read(place, name, [dataset for _, dataset in jobs])


def reproduce_all(
    *, preset: str = "quick", datasets: Sequence[str] | None = None, **options: Any
) -> Iterator[tuple[str, Table]]:
    """Every experiment in the paper's order, by `reproduce`; those that fit none of the data sets are left out."""
    for name in EXPERIMENTS.names():
        known = {dataset for part in EXPERIMENTS.find(name) for dataset in part.datasets}
        asked = None if datasets is None else [dataset for dataset in datasets if dataset in known]
        if asked or (asked is None and known & set(PRESETS.find(preset).datasets)):
            yield name, reproduce(name, preset=preset, datasets=asked, **options)


def _jobs(
    name: str, parts: Sequence[Experiment], preset: Preset, datasets: Sequence[str] | None
) -> list[tuple[Experiment, str]]:
    known = {dataset: part for part in parts for dataset in part.datasets}
    for dataset in datasets or ():
        if dataset not in known:
            raise InputError(f'dataset: {name} does not run on "{dataset}".{did_you_mean(dataset, list(known))}')
    wanted = datasets or [
        dataset
        for dataset in preset.datasets
        if dataset in known and not (preset.light and dataset in known[dataset].heavy)
    ]
    if not wanted:
        raise InputError(f"dataset: {name} runs on {', '.join(known)}; name one, because the preset has none of them.")
    return [(known[dataset], dataset) for dataset in wanted]


def _place(folder: Path, name: str, dataset: str) -> Path:
    return folder / name / f"{dataset}.csv"


def _told(folder: Path, name: str, dataset: str) -> str:
    path = _place(folder, name, dataset).with_suffix(".json")
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["note"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: is missing or damaged. Delete it and {dataset}.csv beside it to run it again."
        ) from error


def _read(folder: Path, name: str, datasets: Sequence[str]) -> Table:
    """The kept tables of some data sets, one below the other."""
    rows: list[dict[str, Any]] = []
    for path in (_place(folder, name, dataset) for dataset in datasets):
        try:
            found = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
            rows += [row | {key: float(row[key]) for key in _NUMBERS & row.keys()} for row in found]
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise InputError(f"{path}: is missing or damaged: {error}. Delete it to run it again.") from error
        if not found or found[0].keys() != rows[0].keys():
            raise InputError(f"{path}: does not hold what this experiment writes. Delete it to run it again.")
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def _provenance(note: str, preset: str, size: Preset, seed: int, seconds: float) -> dict[str, object]:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    return {
        "preset": preset,
        "targets": size.targets,
        "most_shadows": size.most_shadows,
        "seed": seed,
        "commit": source_commit(),
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, {device}",
        "versions": library_versions("torch-geometric", "numba"),
        "note": note,
    }
