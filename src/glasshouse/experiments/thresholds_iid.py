"""Where each attack's scores have to be cut for a false-positive rate of 1 % and 0.1 %, on i.i.d. data."""

from __future__ import annotations

from glasshouse.arrays import FloatArray
from glasshouse.attacks import BASE, Attack
from glasshouse.evidence import Evidence
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.iid import ATTACKS
from glasshouse.experiments.iid_bench import IidBench, cells_of
from glasshouse.experiments.iid_settings import RECORD_SETTINGS
from glasshouse.experiments.measures import cuts
from glasshouse.experiments.runner import experiment

__all__ = ["thresholds_iid"]


@experiment("thresholds", settings=RECORD_SETTINGS, bench=IidBench)
def thresholds_iid(bench: IidBench) -> list[Cell]:
    """The lowest threshold on the target itself that keeps the rate; BASE's are those of its log odds, as printed."""
    return cells_of(bench, ATTACKS, cuts, table="thresholds_iid", scoring=_as_printed)


def _as_printed(attack: Attack, evidence: Evidence) -> FloatArray:
    return attack.log_odds(evidence) if isinstance(attack, BASE) else attack.score(evidence)
