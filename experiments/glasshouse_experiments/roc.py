"""The paper's ROC figures: mean curves over the targets, as CSV and as pictures."""

from __future__ import annotations

import numpy as np

from glasshouse.core.table import Table
from glasshouse.evaluation import roc as roc_of
from glasshouse.report.html import picture_style
from glasshouse.report.pictures.roc import Curve, roc_picture
from glasshouse_experiments.bench import Bench, Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import gbase, singles
from glasshouse_experiments.measures import collected

__all__ = ["roc"]

RATES = tuple(float(rate) for rate in np.geomspace(1e-4, 1.0, 41).round(6))
_FINEST = 10_000  # the curves start at a rate of one in this many
METRIC = "tpr_pct_at_fpr="
BEYOND_TABLE_1 = ("amazon-photo-sage", "pubmed-gcn")


def draw(table: Table) -> str:
    """The mean curves of one data set as an SVG, online and offline, each with a band of one standard deviation."""
    curves: dict[str, Curve] = {}
    rows = list(table.rows())
    for mode, attack in dict.fromkeys((row["mode"], row["attack"]) for row in rows):
        chosen = [row for row in rows if (row["mode"], row["attack"]) == (mode, attack)]
        means = np.array([row["mean"] for row in chosen]) / 100
        spread = np.nan_to_num(np.array([row["std"] for row in chosen])) / 100  # one target has no spread
        curves[f"{attack}, {mode}"] = Curve(
            fpr=tuple(float(row["metric"].removeprefix(METRIC)) for row in chosen),
            tpr=tuple(means.tolist()),
            low=tuple(np.maximum(means - spread, 0.0).tolist()),
            high=tuple(np.minimum(means + spread, 1.0).tolist()),
            members=_FINEST,
            non_members=_FINEST,
        )
    return str(roc_picture(curves, style=picture_style()))


@experiment("roc", picture=draw, further=BEYOND_TABLE_1)
def roc(bench: Bench) -> list[Cell]:
    """Mean TPR at forty false-positive rates; nothing is interpolated."""
    attacks = singles(8) | gbase(8, {"G-BASE (MIA)": "mia"})
    return collected(bench.judged(attacks), _curve, table="roc", dataset=bench.setting.paper_name)


def _curve(judged: Judged) -> dict[str, float]:
    curve = roc_of(judged.scores, judged.truth)
    return {f"{METRIC}{rate:g}": 100 * float(curve.tpr[curve.point_at(rate)]) for rate in RATES}
