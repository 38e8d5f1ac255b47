"""The jobs of an experiment: one data set, or a part of it, each with files of its own."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from glasshouse import InputError
from glasshouse.core.registry import Registry, did_you_mean
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.experiment import Experiment
from glasshouse_experiments.kept_results import Kept, provenance
from glasshouse_experiments.settings import PRESETS, Preset

__all__ = ["Job", "Order", "holders", "planned"]


@dataclass(frozen=True, kw_only=True)
class Order:
    """How jobs are run, and where their files are.

    Args:
        preset: name of the preset, such as ``"paper"``.
        size: the preset itself.
        out: folder for tables; presets other than ``paper`` have their own folder in it.
        pools: folder for shadow models, targets and scores, shared by all experiments.
        seed: of every random choice.
        progress: whether to show bars.
        workers: processes that attack targets of a graph side by side.

    Example:
        >>> Order.of("quick").place, Order.of("paper").place
        (PosixPath('results/quick'), PosixPath('results'))
    """

    preset: str
    size: Preset
    out: Path | str = "results"
    pools: Path | str = "runs/pools"
    seed: int = 0
    progress: bool | None = None
    workers: int = 1

    @classmethod
    def of(cls, preset: str, **options: Any) -> Self:
        """The order for a preset of this name."""
        return cls(preset=preset, size=PRESETS.find(preset), **options)

    @property
    def place(self) -> Path:
        """The folder of this preset's tables."""
        return Path(self.out) if self.preset == "paper" else Path(self.out) / self.preset


class Job(NamedTuple):
    """One part of an experiment on one data set.

    Args:
        name: of the experiment.
        part: what is run.
        dataset: on what.
    """

    name: str
    part: Experiment
    dataset: str

    def holder(self, place: Path) -> Kept | None:
        """The file that holds it: its own, or one from before the experiment had parts; None if it has to be run."""
        own = Kept(place / self.name, self.dataset, self.part.part.name)
        whole = Kept(place / self.name, self.dataset)
        if own.exists:
            return own
        return whole if whole.exists and any(self.part.part.holds(row) for row in whole.rows()) else None

    def run(self, order: Order) -> None:
        """Run it, unless its file is there already, and keep table, provenance and picture."""
        if self.holder(order.place) is not None:
            return
        started, one = time.perf_counter(), self.part
        setting = one.settings.find(self.dataset)
        bench = one.bench(
            setting=setting, preset=order.size, folder=Path(order.pools), seed=order.seed, progress=order.progress
        )
        if isinstance(bench, Bench):
            bench = dataclasses.replace(bench, workers=order.workers)
        table = one.compare(one.run(bench))
        drawn = None if one.picture is None else one.picture(table)
        made = provenance(bench.note, order.preset, order.size, order.seed, time.perf_counter() - started)
        made["workers"] = order.workers
        if isinstance(bench, Bench):
            made["training_seconds"] = round(bench.training_seconds, 1)
        Kept(order.place / self.name, self.dataset, one.part.name).write(table, made=made, picture=drawn)


def planned(name: str, parts: Sequence[Experiment], size: Preset, datasets: Sequence[str] | None) -> list[Job]:
    """The jobs of an experiment on the named data sets, or on the preset's.

    Raises:
        InputError: if it runs on none of them, or does not know one.
    """
    known: dict[str, list[Experiment]] = {}
    for part in parts:
        for dataset in part.datasets:
            known.setdefault(dataset, []).append(part)
    for dataset in datasets or ():
        if dataset not in known:
            raise InputError(f'dataset: {name} does not run on "{dataset}".{did_you_mean(dataset, list(known))}')
    asked = datasets or [dataset for dataset in size.datasets if dataset in known]
    wanted = [
        Job(name, part, dataset)
        for dataset in asked
        for part in known[dataset]
        if part.part.wanted(size) and (datasets or not (size.light and dataset in part.heavy))
    ]
    if not wanted:
        raise InputError(f"dataset: {name} runs on {', '.join(known)}; name one, because the preset has none of them.")
    return wanted


def holders(place: Path, jobs: Iterable[Job]) -> dict[Kept, Registry[Any]]:
    """The files that hold these jobs, each once, a data set's together; with the settings that name the data set."""
    jobs = list(jobs)
    order = list(dict.fromkeys(job.dataset for job in jobs))
    found = {kept: job.part.settings for job in jobs if (kept := job.holder(place)) is not None}
    return dict(sorted(found.items(), key=lambda item: order.index(item[0].dataset)))
