"""G-BASE's samplers against the target's own training set (paper, App. on sampling strategies)."""

from __future__ import annotations

from typing import Any

from glasshouse.experiments.bench import Bench, attack_cells
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.runner import experiment
from glasshouse.graph import GBASE

__all__ = ["samplers"]

NAMES = {
    "Model-independent": "independent",
    "0-hop MIA": "mia",
    "Metropolis-Hastings": "metropolis",
    "Gibbs": "gibbs",
    "Ground-truth": "truth",
}


@experiment("samplers")
def samplers(bench: Bench) -> list[Cell]:
    """Metropolis-Hastings weighs whole masks and has no offline form here."""
    attacks: dict[tuple[str, str, str, str], Any] = {}
    for name, sampler in NAMES.items():
        attacks[("online", "8", "", name)] = GBASE(sampler=sampler)  # type: ignore[arg-type]
        if sampler != "metropolis":
            attacks[("offline", "4", "", name)] = GBASE(mode="offline", sampler=sampler)  # type: ignore[arg-type]
    return attack_cells(bench, attacks, table="sampling-strategies")
