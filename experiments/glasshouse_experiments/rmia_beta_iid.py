"""RMIA's rule of thumb on i.i.d. data: does cutting at β = 1 - α give a false-positive rate of α?"""

from __future__ import annotations

from glasshouse_experiments.bench import Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid import ATTACKS
from glasshouse_experiments.iid_bench import IidBench, cells_of
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.measures import at_shares

__all__ = ["rmia_beta_iid"]


@experiment("rmia-beta", settings=RECORD_SETTINGS, bench=IidBench)
def rmia_beta_iid(bench: IidBench) -> list[Cell]:
    """TPR and FPR of RMIA at β = 0.99 and 0.999."""
    return cells_of(bench, {"RMIA": ATTACKS["RMIA"]}, _rates, table="rule_iid")


def _rates(judged: Judged) -> dict[str, float]:
    return at_shares(judged, (0.99, 0.999))
