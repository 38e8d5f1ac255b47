"""Table 1: every attack against every setting, with few shadow models and with many."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.lineup import SAMPLERS, classifiers, gbase, singles
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.runner import experiment

__all__ = ["table_1"]

MANY = 128


@experiment("table-1")
def table_1(bench: Bench) -> list[Cell]:
    """K = 8 online and 4 offline with three samplers; K = 128 and 64 with the sampler that the paper chose."""
    few = classifiers(8) | singles(8) | gbase(8, SAMPLERS)
    name = bench.setting.paper_name
    cells = collected(bench.judged(few), ranking, table="MIAGNN", dataset=name)
    if bench.preset.most_shadows >= MANY:
        large = bench.setting.data in ("flickr", "github")
        sampler = "independent" if bench.setting.data == "flickr" else "mia"
        many = singles(MANY) | gbase(MANY, {"G-BASE": sampler})
        rounds = bench.judged(many, shadows=MANY, audited=0.2 if large else 0.5)
        cells += collected(rounds, ranking, table="MIAGNN", dataset=name)
    return cells
