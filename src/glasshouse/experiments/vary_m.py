"""How G-BASE gains from more sampled training sets."""

from __future__ import annotations

from typing import Any

from glasshouse.experiments.bench import Bench, attack_cells
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.runner import experiment
from glasshouse.graph import GBASE

__all__ = ["vary_m"]

# the paper's sampler for each data set, and its name there
SAMPLERS = {"flickr": ("independent", "MI"), "amazon-photo": ("mia", "MIA"), "pubmed": ("gibbs", "Gibbs")}


@experiment("vary-m")
def vary_m(bench: Bench) -> list[Cell]:
    """M = 4, 8, 16 and 32, online and offline."""
    sampler, name = SAMPLERS.get(bench.setting.data, ("mia", "MIA"))
    attacks: dict[tuple[str, str, str, str], Any] = {
        (mode, count, f"M={samples}", f"G-BASE ({name})"): GBASE(mode=mode, sampler=sampler, samples=samples)  # type: ignore[arg-type]
        for mode, count in (("online", "8"), ("offline", "4"))
        for samples in (4, 8, 16, 32)
    }
    return attack_cells(bench, attacks, table="vary-M")
