"""Run the i.i.d. experiments from one call, on one pool of models, and keep what they gave."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from glasshouse.audit import library_versions
from glasshouse.experiments.accuracy_iid import accuracy_iid
from glasshouse.experiments.cells import Cell, compared, markdown
from glasshouse.experiments.iid import iid
from glasshouse.experiments.iid_bench import IidBench
from glasshouse.experiments.iid_settings import IMAGE_PRESETS, IMAGE_SETTINGS, ImagePreset, ImageSetting
from glasshouse.experiments.rmia_beta_iid import rmia_beta_iid
from glasshouse.experiments.thresholds_iid import thresholds_iid
from glasshouse.registry import Registry
from glasshouse.store import write_file
from glasshouse.table import Table

__all__ = ["IID_EXPERIMENTS", "run_iid", "trial"]

IID_EXPERIMENTS: Registry[Callable[[IidBench], list[Cell]]] = Registry("an i.i.d. experiment")
IID_EXPERIMENTS.add("accuracy-iid", accuracy_iid)
IID_EXPERIMENTS.add("iid", iid)
IID_EXPERIMENTS.add("thresholds-iid", thresholds_iid)
IID_EXPERIMENTS.add("rmia-beta-iid", rmia_beta_iid)


def run_iid(
    setting: str | ImageSetting,
    preset: str | ImagePreset = "quick",
    *,
    experiments: Sequence[str] | None = None,
    out: Path | str = "results",
    pools: Path | str = "runs/pools",
    seed: int = 0,
    progress: bool | None = None,
) -> dict[str, Table]:
    """Run experiments on one setting and write ``EXPERIMENT-SETTING.csv``, ``.json`` and ``.md`` under ``out``.

    Models and losses under ``pools`` are found again, so a killed run goes on where it was.

    Args:
        setting: a name such as ``"cifar10-fast"``, or a setting of your own (`ImageSetting.changed`).
        preset: ``"quick"``, ``"paper"``, or numbers of your own.
        experiments: names; all by default.
        out: folder for the figures.
        pools: folder for models and losses.
        seed: of every random choice.
        progress: whether to show bars.
    """
    bench = IidBench(
        setting=IMAGE_SETTINGS.find(setting) if isinstance(setting, str) else setting,
        preset=IMAGE_PRESETS.find(preset) if isinstance(preset, str) else preset,
        folder=Path(pools),
        seed=seed,
        progress=progress,
    )
    tables = {}
    for name in experiments or IID_EXPERIMENTS.names():
        started = time.perf_counter()
        tables[name] = compared(IID_EXPERIMENTS.find(name)(bench))
        stem = f"{name}-{bench.setting.name}"
        provenance = _provenance(bench, time.perf_counter() - started)
        write_file(Path(out) / f"{stem}.csv", tables[name].to_csv())
        write_file(Path(out) / f"{stem}.json", json.dumps(provenance, indent=1, ensure_ascii=False) + "\n")
        write_file(Path(out) / f"{stem}.md", markdown(tables[name], stem, [bench.note]))
    return tables


def trial(setting: str | ImageSetting, *, pools: Path | str = "runs/pools", seed: int = 0) -> dict[str, float]:
    """Train the first target alone: its accuracy on members and others, and seconds; it is kept for the run.

    Args:
        setting: a name, or a setting of your own.
        pools: folder for models and losses.
        seed: of every random choice.
    """
    chosen = IMAGE_SETTINGS.find(setting) if isinstance(setting, str) else setting
    bench = IidBench(setting=chosen, preset=ImagePreset(targets=1), folder=Path(pools), seed=seed, progress=False)
    targets = bench.target_models
    started = time.perf_counter()
    metrics = targets.train(progress=False).manifest(0)["metrics"]
    return {"seconds": time.perf_counter() - started, **metrics}


def _provenance(bench: IidBench, seconds: float) -> dict[str, object]:
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    return {
        "targets": bench.preset.targets,
        "shadows": bench.preset.shadows,
        "epochs": bench.trainer.epochs,
        "records": len(bench.population),
        "seed": bench.seed,
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, {device}",
        "versions": library_versions(),
        "note": bench.note,
    }
