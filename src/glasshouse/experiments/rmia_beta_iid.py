"""RMIA's rule of thumb on i.i.d. data: does cutting at β = 1 - α give a false-positive rate of α?"""

from __future__ import annotations

from collections.abc import Mapping

from glasshouse.attacks import Attack
from glasshouse.evidence import Evidence
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.iid import ATTACKS
from glasshouse.experiments.iid_bench import IidBench, cells_of
from glasshouse.experiments.iid_settings import IMAGE_SETTINGS
from glasshouse.experiments.runner import experiment
from glasshouse.population import BoolArray

__all__ = ["rmia_beta_iid"]


@experiment("rmia-beta", settings=IMAGE_SETTINGS, bench=IidBench)
def rmia_beta_iid(bench: IidBench) -> list[Cell]:
    """TPR and FPR of RMIA at β = 0.99 and 0.999."""
    return cells_of(bench, {"RMIA": ATTACKS["RMIA"]}, _rates, table="rule_iid")


def _rates(attack: Attack, evidence: Evidence, truth: BoolArray) -> Mapping[str, float]:
    scores = attack.score(evidence)
    return {
        f"{rate}_at_beta{beta}_pct": 100 * float((scores[who] >= beta).mean())
        for beta in (0.99, 0.999)
        for rate, who in (("tpr", truth), ("fpr", ~truth))
    }
