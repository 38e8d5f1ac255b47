"""The paper's ROC figures: mean curves over the targets, as CSV and as pictures."""

from __future__ import annotations

import io

import numpy as np

from glasshouse.evaluation import roc as roc_of
from glasshouse.experiments.bench import Bench, Judged
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.lineup import gbase, singles
from glasshouse.experiments.measures import collected
from glasshouse.experiments.runner import experiment
from glasshouse.table import Table

__all__ = ["roc"]

RATES = tuple(float(rate) for rate in np.geomspace(1e-4, 1.0, 41).round(6))
METRIC = "tpr_pct_at_fpr="
BEYOND_TABLE_1 = ("amazon-photo-sage", "pubmed-gcn")


def draw(table: Table) -> str:
    """The curves of one data set as an SVG: online and offline side by side, both axes logarithmic."""
    # a figure of its own and no pyplot: nothing global is touched
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    rows = list(table.rows())
    for axes, mode in zip(figure.subplots(1, 2, sharey=True), ("online", "offline"), strict=True):
        for attack in dict.fromkeys(row["attack"] for row in rows if row["mode"] == mode):
            chosen = [row for row in rows if row["mode"] == mode and row["attack"] == attack]
            rates = [float(row["metric"].removeprefix(METRIC)) for row in chosen]
            axes.plot(rates, [row["mean"] / 100 for row in chosen], label=attack)
        axes.plot(RATES, RATES, color="grey", linestyle=":", label="guessing")
        axes.set(xscale="log", yscale="log", xlabel="false-positive rate", xlim=(1e-4, 1), ylim=(1e-4, 1))
        axes.set_title(f"{rows[0]['dataset']}, {mode}")
        axes.legend(fontsize="small")
    figure.axes[0].set_ylabel("true-positive rate")
    file = io.StringIO()
    with rc_context({"svg.hashsalt": "glasshouse"}):  # same figures, same bytes
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


@experiment("roc", picture=draw, further=BEYOND_TABLE_1)
def roc(bench: Bench) -> list[Cell]:
    """Mean TPR at forty false-positive rates; nothing is interpolated."""
    attacks = singles(8) | gbase(8, {"G-BASE (MIA)": "mia"})
    return collected(bench.judged(attacks), _curve, table="roc", dataset=bench.setting.paper_name)


def _curve(judged: Judged) -> dict[str, float]:
    curve = roc_of(judged.scores, judged.truth)
    return {f"{METRIC}{rate:g}": 100 * float(curve.tpr[curve.point_at(rate)]) for rate in RATES}
