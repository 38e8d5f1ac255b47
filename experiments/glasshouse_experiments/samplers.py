"""G-BASE's samplers against the target's own training set (paper, App. on sampling strategies)."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import Part, experiment
from glasshouse_experiments.lineup import gbase
from glasshouse_experiments.measures import collected, ranking

__all__ = ["gibbs", "metropolis", "metropolis_offline", "samplers", "truth"]

NAMES: dict[str, str] = {
    "Model-independent": "independent",
    "0-hop MIA": "mia",
    "Metropolis-Hastings": "metropolis",
    "Gibbs": "gibbs",
    "Ground-truth": "truth",
}


def _part(sampler: str, *modes: str, name: str = "") -> Part:
    """A sampler that is run alone; a chain takes many times as long as the samplers without one."""
    title = next(title for title, known in NAMES.items() if known == sampler)
    wanted = modes or ("online", "offline")
    return Part(name=name or sampler, holds=lambda row: row["attack"] == title and row["mode"] in wanted)


@experiment("samplers")
def samplers(bench: Bench) -> list[Cell]:
    """The samplers that know neither the truth nor a chain, online and offline."""
    return _compared(bench, "independent", "mia")


@experiment("samplers", part=_part("truth"))
def truth(bench: Bench) -> list[Cell]:
    """The target's own training set, online and offline."""
    return _compared(bench, "truth")


@experiment("samplers", part=_part("metropolis", "online"))
def metropolis(bench: Bench) -> list[Cell]:
    """Metropolis-Hastings, online."""
    return _compared(bench, "metropolis", modes=("online",))


@experiment("samplers", part=_part("metropolis", "offline", name="metropolis-offline"))
def metropolis_offline(bench: Bench) -> list[Cell]:
    """Metropolis-Hastings, offline; it was added when the others had been run."""
    return _compared(bench, "metropolis", modes=("offline",))


@experiment("samplers", part=_part("gibbs"))
def gibbs(bench: Bench) -> list[Cell]:
    """Gibbs, online and offline."""
    return _compared(bench, "gibbs")


def _compared(bench: Bench, *chosen: str, modes: tuple[str, ...] = ("online", "offline")) -> list[Cell]:
    lineup = gbase(8, {title: sampler for title, sampler in NAMES.items() if sampler in chosen})
    rounds = bench.judged({name: attack for name, attack in lineup.items() if name[0] in modes})
    return collected(rounds, ranking, table="sampling-strategies", dataset=bench.setting.paper_name)
