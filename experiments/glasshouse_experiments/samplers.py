"""G-BASE's samplers against the target's own training set (paper, App. on sampling strategies)."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.lineup import gbase
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.runner import Part, experiment

__all__ = ["gibbs", "metropolis", "samplers", "truth"]

NAMES: dict[str, str] = {
    "Model-independent": "independent",
    "0-hop MIA": "mia",
    "Metropolis-Hastings": "metropolis",
    "Gibbs": "gibbs",
    "Ground-truth": "truth",
}


def _part(sampler: str) -> Part:
    """A sampler that is run alone; a chain takes many times as long as the samplers without one."""
    title = next(title for title, known in NAMES.items() if known == sampler)
    return Part(name=sampler, holds=lambda row: row["attack"] == title)


@experiment("samplers")
def samplers(bench: Bench) -> list[Cell]:
    """The samplers that know neither the truth nor a chain, online and offline."""
    return _compared(bench, "independent", "mia")


@experiment("samplers", part=_part("truth"))
def truth(bench: Bench) -> list[Cell]:
    """The target's own training set, online and offline."""
    return _compared(bench, "truth")


@experiment("samplers", part=_part("metropolis"))
def metropolis(bench: Bench) -> list[Cell]:
    """Metropolis-Hastings, online and offline."""
    return _compared(bench, "metropolis")


@experiment("samplers", part=_part("gibbs"))
def gibbs(bench: Bench) -> list[Cell]:
    """Gibbs, online and offline."""
    return _compared(bench, "gibbs")


def _compared(bench: Bench, *chosen: str) -> list[Cell]:
    rounds = bench.judged(gbase(8, {title: sampler for title, sampler in NAMES.items() if sampler in chosen}))
    return collected(rounds, ranking, table="sampling-strategies", dataset=bench.setting.paper_name)
