"""Each attack's thresholds for false-positive rates of 1 % and 0.1 %, on i.i.d. data."""

from __future__ import annotations

from glasshouse import Evidence
from glasshouse.attacks import BASE, Attack
from glasshouse.core.arrays import FloatArray
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid import ATTACKS
from glasshouse_experiments.iid_bench import IidBench, cells_of
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.measures import cuts

__all__ = ["thresholds_iid"]


@experiment("thresholds", settings=RECORD_SETTINGS, bench=IidBench)
def thresholds_iid(bench: IidBench) -> list[Cell]:
    """The lowest threshold on the target itself that keeps the rate; BASE's are those of its log odds, as printed."""
    return cells_of(bench, ATTACKS, cuts, table="thresholds_iid", scoring=_as_printed)


def _as_printed(attack: Attack, evidence: Evidence) -> FloatArray:
    return attack.log_odds(evidence) if isinstance(attack, BASE) else attack.score(evidence)
