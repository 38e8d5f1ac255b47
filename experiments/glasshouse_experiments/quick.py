"""What every experiment costs with the preset ``quick``: all of them in less than ten minutes on two cores.

A test compares the experiments and the preset with what was measured, so neither grows without a new measurement:
``glasshouse reproduce all --preset quick --out FOLDER``; the seconds are in FOLDER/quick/NAME/DATASET.json.
"""

from __future__ import annotations

from glasshouse_experiments.settings import Preset

__all__ = ["LIMIT", "MEASURED_WITH", "SECONDS"]

LIMIT = 600.0
MEASURED_WITH = Preset(targets=2, datasets=("cora", "citeseer", "digits"), most_shadows=8, light=True)
# Wall seconds in the order of the runs, so later ones find models and scores of earlier ones. Two cores of a machine
# with an H200, which was not used, and with other programs on its other cores: the whole command took 344 s without
# dp-bound, whose library that machine lacks. dp-bound: processor seconds of its own command on another machine.
SECONDS: dict[str, float] = {
    "accuracy": 8.0,
    "table-1": 82.8,
    "thresholds": 6.9,
    "iid": 0.1,
    "estimated-threshold": 10.8,
    "rmia-beta": 0.6,
    "mismatch": 44.2,
    "samplers": 26.6,
    "vary-m": 5.0,
    "wall-clock": 3.3,
    "roc": 0.6,
    "dp-bound": 117.4,
    "beyond": 40.6,
    "beyond-mismatch": 19.3,
    "beyond-samplers": 36.0,
    "ablation": 36.4,
}
