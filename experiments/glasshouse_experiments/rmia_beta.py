"""RMIA cut at a fixed share β of the population, which its authors use as one minus the FPR (paper, App. C)."""

from __future__ import annotations

from glasshouse.attacks import RMIA
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import Lineup, modes
from glasshouse_experiments.measures import at_shares, collected

__all__ = ["rmia_beta"]


@experiment("rmia-beta", datasets=("cora", "citeseer", "synthetic"))
def rmia_beta(bench: Bench) -> list[Cell]:
    """K = 256 online and 128 offline, or as many as the preset allows."""
    shadows = min(256, bench.preset.most_shadows)
    attacks: Lineup = {(mode, count, "", "RMIA"): RMIA(mode=mode) for mode, count in modes(shadows)}
    rounds = bench.judged(attacks, shadows=shadows)
    return collected(rounds, _rates, table="rmia_fixed_beta_graph", dataset=bench.setting.paper_name)


def _rates(judged: Judged) -> dict[str, float]:
    return at_shares(judged, (0.9, 0.99))
