"""A threshold from simulated targets, tested on true ones (paper, App. C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import gbase, singles
from glasshouse_experiments.measures import Measure, at_threshold, collected, cut_at, ranking

__all__ = ["estimated_threshold"]


@experiment("estimated-threshold", datasets=("cora", "citeseer", "pubmed", "synthetic"))
def estimated_threshold(bench: Bench) -> list[Cell]:
    """The mean of the simulated targets' cuts at 1 % FPR; these are separate models, as in the paper."""
    attacks = singles(8) | gbase(8, {"G-BASE": "mia"})
    simulated = list(bench.judged(attacks, purpose="simulated"))
    rounds = list(bench.judged(attacks))
    cells: list[Cell] = []
    for name in attacks:
        measure = _measure([one[name] for one in simulated])
        own = [{name: one[name]} for one in rounds]
        cells += collected(own, measure, table="est-threshold", dataset=bench.setting.paper_name)
    return cells


def _measure(simulated: Sequence[Judged]) -> Measure:
    threshold = float(np.mean([cut_at(one, 0.01) for one in simulated]))

    def measure(judged: Judged) -> dict[str, float]:
        tpr, fpr = at_threshold(judged, threshold)
        return {
            "tpr_at_fpr1_pct": ranking(judged)["tpr_at_fpr1_pct"],
            "tpr_at_estimated_threshold_pct": tpr,
            "fpr_at_estimated_threshold_pct": fpr,
        }

    return measure
