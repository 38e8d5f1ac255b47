"""Pictures of a report, as SVG text."""

from __future__ import annotations

import io
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from glasshouse.evaluation import ROC

__all__ = ["roc_svg"]

# Okabe and Ito's colours, told apart by the colour-blind; line styles repeat the difference without colour
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")


def roc_svg(curves: Mapping[str, ROC]) -> str:
    """ROC curves on log-log axes, as one SVG element without scripts; the same curves give the same text.

    Example:
        >>> from glasshouse.evaluation import roc
        >>> roc_svg({"base": roc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])}).startswith("<svg")
        True
    """
    floor = min(1 / (2 * curve.non_members) for curve in curves.values())
    with mpl.rc_context({"svg.hashsalt": "glasshouse", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=(6.4, 4.8), layout="constrained")
        axes = figure.add_subplot()
        axes.plot([floor, 1], [floor, 1], color="#888888", linewidth=1, label="chance")
        for index, (name, curve) in enumerate(curves.items()):
            axes.step(
                np.maximum(curve.fpr, floor),
                np.maximum(curve.tpr, floor),
                where="post",
                label=name,
                color=_COLOURS[index % len(_COLOURS)],
                linestyle=_STYLES[index % len(_STYLES)],
            )
        smallest = 1 / max(curve.non_members for curve in curves.values())
        axes.axvline(smallest, color="#888888", linewidth=0.8, linestyle=":")
        axes.text(smallest, 1.08, "one non-member", fontsize=8, color="#666666", ha="center")
        axes.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1))
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(loc="lower right", frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
