"""Table 1: every attack against every setting, with few shadow models and with many."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import Part, experiment
from glasshouse_experiments.lineup import SAMPLERS, classifiers, gbase, singles
from glasshouse_experiments.measures import collected, ranking

__all__ = ["many", "table_1"]

MANY = 128
WITH_MANY = Part(
    name="many",
    holds=lambda row: row["K"] in (str(MANY), str(MANY // 2)),
    wanted=lambda preset: preset.most_shadows >= MANY,
)


@experiment("table-1")
def table_1(bench: Bench) -> list[Cell]:
    """K = 8 online and 4 offline, with three samplers."""
    few = classifiers(8) | singles(8) | gbase(8, SAMPLERS)
    return collected(bench.judged(few), ranking, table="MIAGNN", dataset=bench.setting.paper_name)


@experiment("table-1", part=WITH_MANY)
def many(bench: Bench) -> list[Cell]:
    """K = 128 online and 64 offline, with the sampler that the paper chose."""
    large = bench.setting.data in ("flickr", "github")
    sampler = "independent" if bench.setting.data == "flickr" else "mia"
    attacks = singles(MANY) | gbase(MANY, {"G-BASE": sampler})
    rounds = bench.judged(attacks, shadows=MANY, audited=0.2 if large else 0.5)
    return collected(rounds, ranking, table="MIAGNN", dataset=bench.setting.paper_name)
