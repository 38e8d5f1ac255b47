"""How much G-BASE gains from more sampled training sets."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.lineup import Lineup, gbase
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.runner import experiment

__all__ = ["vary_m"]

# the paper's sampler for each data set, and its name in the paper
SAMPLERS: dict[str, tuple[str, str]] = {
    "flickr": ("G-BASE (MI)", "independent"),
    "amazon-photo": ("G-BASE (MIA)", "mia"),
    "pubmed": ("G-BASE (Gibbs)", "gibbs"),
}


@experiment("vary-m", datasets=("cora", "pubmed", "flickr", "amazon-photo", "synthetic"))
def vary_m(bench: Bench) -> list[Cell]:
    """M = 4, 8, 16 and 32, online and offline."""
    name, sampler = SAMPLERS.get(bench.setting.data, ("G-BASE (MIA)", "mia"))
    attacks: Lineup = {}
    for samples in (4, 8, 16, 32):
        attacks |= gbase(8, {name: sampler}, samples=samples, setting=f"M={samples}")
    return collected(bench.judged(attacks), ranking, table="vary-M", dataset=bench.setting.paper_name)
