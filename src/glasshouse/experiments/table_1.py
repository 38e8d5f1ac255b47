"""Table 1: every attack against every setting, eight shadow models online and four offline."""

from __future__ import annotations

from typing import Any

from glasshouse.attacks import BASE, RMIA, LiRA, ShadowClassifier
from glasshouse.experiments.bench import Bench, attack_cells
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.runner import experiment
from glasshouse.graph import GBASE, HopClassifier

__all__ = ["table_1"]

SAMPLERS = {"MI": "independent", "MIA": "mia", "Gibbs": "gibbs"}


@experiment("table-1")
def table_1(bench: Bench) -> list[Cell]:
    """The paper's LiRA fits a variance a record; RMIA's Z set is the whole population."""
    attacks: dict[tuple[str, str, str, str], Any] = {
        ("online", "8", "", "MLP (0-hop)"): ShadowClassifier(),
        ("online", "8", "", "MLP (0+2-hop)"): HopClassifier(),
    }
    modes: tuple[tuple[Any, str], ...] = (("online", "8"), ("offline", "4"))
    for mode, count in modes:
        attacks |= {
            (mode, count, "", "LiRA"): LiRA(mode=mode, variance="record"),
            (mode, count, "", "RMIA"): RMIA(mode=mode),
            (mode, count, "", "BASE"): BASE(mode=mode),
        }
        for name, sampler in SAMPLERS.items():
            attacks[(mode, count, "", f"G-BASE ({name})")] = GBASE(mode=mode, sampler=sampler)  # type: ignore[arg-type]
    return attack_cells(bench, attacks, table="MIAGNN")
