"""What every experiment costs with the preset ``quick``: all of them in less than ten minutes on two cores.

A test compares the experiments and the preset with what was measured, so neither grows without a new measurement:
``glasshouse reproduce all --preset quick --out FOLDER``; the seconds are in FOLDER/quick/NAME/DATASET.json.
"""

from __future__ import annotations

from glasshouse_experiments.settings import Preset

__all__ = ["LIMIT", "MEASURED_WITH", "SECONDS"]

LIMIT = 600.0
MEASURED_WITH = Preset(targets=2, datasets=("cora", "citeseer", "digits"), most_shadows=8, light=True)
# Wall seconds in the order of the runs, so later ones find models and scores of earlier ones. Two cores (AMD EPYC) that
# nothing else used: the whole command took 393 s.
SECONDS: dict[str, float] = {
    "accuracy": 9.1,
    "table-1": 34.8,
    "thresholds": 7.1,
    "iid": 0.2,
    "estimated-threshold": 13.1,
    "rmia-beta": 0.5,
    "mismatch": 31.6,
    "samplers": 53.8,
    "vary-m": 4.7,
    "wall-clock": 3.7,
    "roc": 0.6,
    "dp-bound": 83.6,
    "beyond": 45.5,
    "beyond-mismatch": 22.6,
    "beyond-samplers": 33.3,
    "ablation": 36.1,
}
