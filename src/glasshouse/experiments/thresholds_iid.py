"""Where each attack's scores have to be cut for a false-positive rate of 1 % and 0.1 %, on i.i.d. data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glasshouse.attacks import BASE, Attack
from glasshouse.evaluation import roc
from glasshouse.evidence import Evidence
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.iid import ATTACKS
from glasshouse.experiments.iid_bench import IidBench, cells_of
from glasshouse.experiments.iid_settings import IMAGE_SETTINGS
from glasshouse.experiments.runner import experiment
from glasshouse.population import BoolArray

__all__ = ["thresholds_iid"]

_RATES = {"1": 0.01, "0.1": 0.001}


@experiment("thresholds", settings=IMAGE_SETTINGS, bench=IidBench)
def thresholds_iid(bench: IidBench) -> list[Cell]:
    """The lowest threshold on the target itself that keeps the rate; BASE's are those of its log odds, as printed."""
    return cells_of(bench, ATTACKS, _cuts, table="thresholds_iid")


def _cuts(attack: Attack, evidence: Evidence, truth: BoolArray) -> Mapping[str, float]:
    scores = attack.log_odds(evidence) if isinstance(attack, BASE) else attack.score(evidence)
    curve = roc(scores, truth)
    cuts = {f"threshold_at_fpr{name}": curve.thresholds[curve.point_at(fpr)] for name, fpr in _RATES.items()}
    above_all = np.nextafter(scores.max(), np.inf)  # where not even the first record may be called a member
    return {name: float(min(cut, above_all)) for name, cut in cuts.items()}
