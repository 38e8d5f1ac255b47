"""Run an experiment by name, and keep what it gave beside what the paper printed."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from glasshouse.audit import library_versions
from glasshouse.experiments.bench import Bench
from glasshouse.experiments.cells import Cell, compared, markdown
from glasshouse.experiments.settings import PRESETS, SETTINGS
from glasshouse.registry import Registry
from glasshouse.store import write_file
from glasshouse.table import Table

__all__ = ["EXPERIMENTS", "Experiment", "experiment", "reproduce"]

Experiment = Callable[[Bench], list[Cell]]
EXPERIMENTS: Registry[Experiment] = Registry("an experiment")


def experiment(name: str) -> Callable[[Experiment], Experiment]:
    """Decorator that makes an experiment known to ``glasshouse reproduce``."""

    def decorate(run: Experiment) -> Experiment:
        EXPERIMENTS.add(name, run)
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

    A data set that is done is kept and not run again, so a killed run goes on where it was.

    Args:
        name: of the experiment.
        preset: ``"quick"`` or ``"paper"``.
        datasets: names of settings; the preset's by default.
        out: folder for ``NAME-DATASET.csv`` and ``NAME.md``.
        pools: folder for shadow and target models, shared by all experiments.
        seed: of every random choice.
        progress: whether to show bars.
    """
    run, chosen = EXPERIMENTS.find(name), PRESETS.find(preset)
    place = Path(out) / preset if preset != "paper" else Path(out)
    texts, notes = [], []
    for dataset in datasets or chosen.datasets:
        setting = SETTINGS.find(dataset)
        path = place / f"{name}-{dataset}.csv"
        if not path.exists():
            started = time.perf_counter()
            bench = Bench(setting=setting, preset=chosen, folder=Path(pools) / preset, seed=seed, progress=progress)
            table = compared(run(bench))
            provenance = _provenance(setting.note, preset, chosen.targets, seed, time.perf_counter() - started)
            write_file(place / f"{name}-{dataset}.json", json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")
            write_file(path, table.to_csv())
        texts.append(path.read_text(encoding="utf-8"))
        notes += [f"{setting.paper_name}: {setting.note}"] if setting.note else []
    whole = _joined(texts)
    write_file(place / f"{name}.md", markdown(whole, f"{name}, preset {preset}", notes))
    return whole


def _joined(texts: Sequence[str]) -> Table:
    import csv

    rows = [row for text in texts for row in csv.DictReader(text.splitlines())]
    numbers = {"mean", "std", "paper_mean", "paper_std", "difference_sd"}
    return Table({name: [float(row[name]) if name in numbers else row[name] for row in rows] for name in rows[0]})


def _provenance(note: str, preset: str, targets: int, seed: int, seconds: float) -> dict[str, object]:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    return {
        "preset": preset,
        "targets": targets,
        "seed": seed,
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, {device}",
        "versions": library_versions("torch-geometric", "numba"),
        "note": note,
    }
