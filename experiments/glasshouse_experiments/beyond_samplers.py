"""Beyond the paper: G-BASE with training sets drawn from the posterior of `g-stacked`, beside the paper's samplers."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import gbase
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.samplers import NAMES

__all__ = ["beyond_samplers"]


@experiment("beyond-samplers", heavy=("citeseer",))
def beyond_samplers(bench: Bench) -> list[Cell]:
    """The paper's five and ours, online and offline; scores with the paper's samplers are those of its own table."""
    rounds = bench.judged(gbase(8, NAMES | {"Stacked": "stacked"}))
    return collected(rounds, ranking, table="sampling-strategies", dataset=bench.setting.paper_name)
