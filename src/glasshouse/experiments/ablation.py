"""Past the paper: which signal buys what, by leaving one after the other out of `g-stacked`."""

from __future__ import annotations

from joblib import cpu_count

from glasshouse.experiments.bench import Bench
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.measures import collected, ranking
from glasshouse.experiments.runner import experiment
from glasshouse.graph import GStacked

__all__ = ["ablation"]

ROUNDS = (8,)  # one: later rounds start from this one's posterior, and would tell what it does not know yet
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "kin": ("kin",),
    "the query about the node alone": ("alone",),
    "the query about the whole graph": ("whole",),
    "sampled training sets": ("sampled", "gain", "g-base"),
    "neighbours": ("neighbours",),
    "degree and label": ("degree", "label"),
}


@experiment("ablation", heavy=("citeseer",))
def ablation(bench: Bench) -> list[Cell]:
    """K = 8 online, one round; every attack for itself, for each keeps all of the pool's answers while it lives."""
    cells = []
    for left_out, signals in LEFT_OUT.items():
        name = "online", "8", f"without {left_out}", "g-stacked"
        attack = GStacked(samples=ROUNDS, without=signals, jobs=cpu_count())
        found = bench.judged({name: attack}, shadows=8)
        cells += collected(found, ranking, table="ablation", dataset=bench.setting.paper_name)
    return cells
