"""Each attack's threshold for a wanted false-positive rate, and how much it varies (paper, App. C)."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import gbase, modes, singles
from glasshouse_experiments.measures import collected, cuts

__all__ = ["thresholds"]


@experiment("thresholds")
def thresholds(bench: Bench) -> list[Cell]:
    """RMIA, BASE and G-BASE; the paper names its sampler only in the online rows."""
    attacks = {name: attack for name, attack in singles(8).items() if name[3] != "LiRA"}
    for (mode, count), label in zip(modes(8), ("G-BASE (MIA)", "G-BASE"), strict=True):
        attacks[mode, count, "", label] = gbase(8, {label: "mia"})[mode, count, "", label]
    return collected(bench.judged(attacks), cuts, table="thresholds", dataset=bench.setting.paper_name)
