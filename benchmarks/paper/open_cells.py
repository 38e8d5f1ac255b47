"""Cells of the paper that ours do not meet, measured again with other seeds and longer chains. Writes open_cells.md.

The ten targets of a cell share eight shadow models, ten simulated targets and one choice of hyper-parameters, so the
spread over targets leaves out what another draw of those would change. Here all of it is drawn again with other seeds.

    python benchmarks/paper/open_cells.py --seeds 10
    python benchmarks/paper/open_cells.py --cells chains --targets 2 --seeds 1 --datasets synthetic --steps 50
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse.attacks import BASE
from glasshouse.core.registry import Registry
from glasshouse.graph.sampling import samplers
from glasshouse_experiments.authors import AuthorsBASE
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell, compared
from glasshouse_experiments.estimated_threshold import estimated_threshold
from glasshouse_experiments.lineup import gbase, singles
from glasshouse_experiments.measures import collected, cuts, ranking
from glasshouse_experiments.samplers import metropolis
from glasshouse_experiments.settings import MISMATCHED, SETTINGS, Preset

HEAD = (
    "data set",
    "cell",
    "ours: mean over seeds",
    "sd between seeds",
    "lowest",
    "highest",
    "paper",
    "sd in the paper",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Question:
    """Cells that are measured again: from a bench, with the settings and the data sets that they are about."""

    run: Callable[[Bench], list[Cell]]
    settings: Registry[Any]
    datasets: tuple[str, ...]
    keep: Callable[[Cell], bool]


def mismatched(bench: Bench) -> list[Cell]:
    """The mismatched adversary's attacks without the classifiers."""
    rounds = bench.judged(singles(8) | gbase(8, {"G-BASE (MIA)": "mia"}))
    return collected(rounds, ranking, table="model-distr-shift", dataset=bench.setting.paper_name)


def cut_of_base(bench: Bench) -> list[Cell]:
    """Offline BASE's threshold with α from all simulated targets, and from one as in the authors' program."""
    found = []
    for told, attack in (("", BASE(mode="offline")), (", α from one target", AuthorsBASE())):
        cells = collected(
            bench.judged({("offline", "4", "", "BASE"): attack}),
            cuts,
            table="thresholds",
            dataset=bench.setting.paper_name,
        )
        found += [cell._replace(setting=told) for cell in cells]
    return found


QUESTIONS = {
    "cut": Question(
        run=cut_of_base, settings=SETTINGS, datasets=("cora",), keep=lambda cell: cell.metric == "threshold_at_fpr1"
    ),
    "threshold": Question(
        run=estimated_threshold,
        settings=SETTINGS,
        datasets=("cora",),
        keep=lambda cell: cell.attack == "LiRA" and "estimated" in cell.metric,
    ),
    "mismatch": Question(
        run=mismatched,
        settings=MISMATCHED,
        datasets=("cora", "citeseer"),
        keep=lambda cell: cell.attack in ("G-BASE (MIA)", "LiRA", "BASE") and cell.metric != "tpr_at_fpr0.1_pct",
    ),
    "chains": Question(
        run=metropolis, settings=SETTINGS, datasets=("cora", "citeseer"), keep=lambda cell: "0.1" not in cell.metric
    ),
}


def measured(
    question: Question, dataset: str, *, seeds: Iterable[int], targets: int, folder: Path
) -> Iterator[list[Cell]]:
    """The question's cells on a data set, seed by seed."""
    preset = Preset(targets=targets, datasets=(dataset,))
    for seed in seeds:
        setting = question.settings.find(dataset)
        bench = Bench(setting=setting, preset=preset, folder=folder / str(seed), seed=seed, progress=False)
        yield [cell for cell in question.run(bench) if question.keep(cell)]


def rows(found: list[list[Cell]], told: str = "") -> list[str]:
    """One line per cell: over seeds, the mean over targets, and the paper's."""
    lines = []
    for cells in zip(*found, strict=True):
        means = [float(np.mean(cell.values)) for cell in cells]
        printed = next(compared([cells[0]._replace(setting="")]).rows())
        name = f"{cells[0].attack}, {cells[0].mode}, {cells[0].metric}{cells[0].setting}{told}"
        digits = 4 if cells[0].metric.startswith("threshold") else 2
        spread = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
        figures = (np.mean(means), spread, min(means), max(means), printed["paper_mean"], printed["paper_std"])
        lines.append(f"| {cells[0].dataset} | {name} | {' | '.join(f'{figure:.{digits}f}' for figure in figures)} |")
    return lines


def main() -> None:
    """Measure, print, and keep the table after every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "open_cells.md")
    parser.add_argument("--cells", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0, 1, …; chains have the first only")
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--steps", type=int, nargs="+", default=[1000, 10_000], help="of Metropolis-Hastings' burn-in")
    options = parser.parse_args()
    lines = [
        "# Cells that do not meet the paper's, with other seeds",
        "",
        f"{options.targets} targets for each of {options.seeds} seeds; a seed draws shadow models, targets and",
        "simulated targets again. Chains: the first seed; so many steps before the first sample, and a tenth of them",
        "between samples.",
        "",
        f"| {' | '.join(HEAD)} |",
        "|" + " --- |" * len(HEAD),
    ]
    with tempfile.TemporaryDirectory() as place:
        for name in options.cells:
            question = QUESTIONS[name]
            for dataset in options.datasets or question.datasets:
                for steps in options.steps if name == "chains" else [0]:
                    began = time.perf_counter()
                    seeds = range(1 if name == "chains" else options.seeds)
                    folder = Path(place) / f"{name}-{steps}"
                    if steps:
                        samplers._BURN_IN, samplers._AFTER = steps, max(1, steps // 10)
                    found, told = [], []
                    for cells in measured(question, dataset, seeds=seeds, targets=options.targets, folder=folder):
                        found.append(cells)
                        told = rows(found, f", {len(found)} seeds" + (f", {steps} steps" if steps else ""))
                        options.out.write_text("\n".join([*lines, *told]) + "\n")  # a stopped run keeps its seeds
                    lines += told
                    print(f"{name} {dataset} {steps}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
