"""G-BASE's samplers against the target's own training set (paper, App. on sampling strategies)."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.lineup import gbase
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.runner import experiment

__all__ = ["samplers"]

NAMES: dict[str, str] = {
    "Model-independent": "independent",
    "0-hop MIA": "mia",
    "Metropolis-Hastings": "metropolis",
    "Gibbs": "gibbs",
    "Ground-truth": "truth",
}


@experiment("samplers")
def samplers(bench: Bench) -> list[Cell]:
    """All five samplers, online and offline."""
    rounds = bench.judged(gbase(8, NAMES))
    return collected(rounds, ranking, table="sampling-strategies", dataset=bench.setting.paper_name)
