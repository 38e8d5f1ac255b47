"""What every experiment costs with the preset ``quick``: all of them in less than ten minutes on two cores.

A test compares the experiments and the preset with what was measured, so neither grows without a new measurement:
``glasshouse reproduce all --preset quick --out FOLDER``; the seconds are in FOLDER/quick/NAME/DATASET.json.
"""

from __future__ import annotations

from glasshouse_experiments.settings import Preset

__all__ = ["LIMIT", "MEASURED_WITH", "SECONDS"]

LIMIT = 600.0
MEASURED_WITH = Preset(
    targets=2, datasets=("cora", "citeseer", "digits", "cora-mismatched"), most_shadows=8, light=True
)
# Wall seconds in the order of the runs, so later ones find models and scores of earlier ones. Two cores (AMD EPYC) that
# nothing else used but, at times, small tests: the whole command took 404 s. "mismatch" and "authors" were measured
# later, beside other work.
SECONDS: dict[str, float] = {
    "accuracy": 6.7,
    "table-1": 72.5,
    "thresholds": 4.7,
    "estimated-threshold": 13.5,
    "rmia-beta": 0.6,
    "mismatch": 63.6,
    "authors": 3.6,
    "samplers": 69.1,
    "vary-m": 4.3,
    "wall-clock": 2.7,
    "iid": 0.1,
    "roc": 0.5,
    "dp-bound": 60.7,
    "beyond": 35.1,
    "beyond-mismatch": 22.0,
    "beyond-samplers": 30.3,
    "ablation": 31.8,
}
