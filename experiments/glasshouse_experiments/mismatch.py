"""An adversary who does not know architecture, optimizer and training share (paper, App. on mismatched adversaries)."""

from __future__ import annotations

from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import classifiers, gbase, singles
from glasshouse_experiments.measures import collected, ranking
from glasshouse_experiments.settings import MISMATCHED

__all__ = ["mismatch"]


@experiment("mismatch", settings=MISMATCHED)
def mismatch(bench: Bench) -> list[Cell]:
    """Targets trained by SGD on 35 % of the nodes; shadow models of another architecture by Adam on half."""
    attacks = classifiers(8) | singles(8) | gbase(8, {"G-BASE (MIA)": "mia"})
    return collected(bench.judged(attacks), ranking, table="model-distr-shift", dataset=bench.setting.paper_name)
