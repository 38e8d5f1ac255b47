"""What a notebook shows of a run, and its curves for matplotlib."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from glasshouse.core.errors import InputError
from glasshouse.report.decision.exposure import exposure_of
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.figures import columns_at
from glasshouse.report.html import picture_style, render_part
from glasshouse.report.pictures.people import exposure_picture
from glasshouse.report.pictures.roc import roc_picture
from glasshouse.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RECORDS = 5


def _style() -> Markup:
    """The style of pictures, inside our own part of the notebook alone."""
    return Markup(picture_style().replace(":root", ".glasshouse").replace("svg ", ".glasshouse svg "))  # noqa: S704 (ours)


def notebook_html(summary: Summary) -> str:
    """Rating, picture, attacks, ROC and the first records of a run; without scripts and without a network.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> "Inconclusive" in notebook_html(audit_evidence(evidence, attacks=["loss"]).summary())
        True
    """
    curves = {attack.name: attack.metrics.curve for attack in summary.attacks if attack.metrics is not None}
    top, score = summary.top_records.head(_RECORDS), f"{summary.strongest}_score"
    exposure = exposure_of(summary)
    return render_part(
        "notebook.html.j2",
        style=_style(),
        summary=summary,
        rating=rating_of(summary),
        exposure=exposure,
        people=exposure_picture(exposure, name="notebook"),
        columns=[one for one in columns_at("terminal", summary.attacks, summary.fprs) if one.figure.high < math.inf],
        roc=roc_picture(curves) if curves else None,
        names=[name for name in top if name in ("id", "label", "member", score)],
        records=list(top.rows()) if summary.conclusion.lists_records else [],
    )


def roc_figure(summary: Summary) -> Figure:
    """ROC curves with bands, both axes logarithmic, as a matplotlib figure."""
    try:
        from matplotlib.figure import Figure as Drawing
    except ImportError:
        raise InputError("plot: needs matplotlib, which is not installed: pip install matplotlib.") from None
    figure: Any = Drawing(figsize=(5.0, 4.6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="false-positive rate", ylabel="true-positive rate")
    lowest = 1.0
    for attack in summary.attacks:
        if attack.metrics is not None:
            curve = attack.metrics.curve
            lowest = min(lowest, 0.5 / curve.non_members)
            (line,) = axes.plot(curve.fpr, curve.tpr, drawstyle="steps-post", label=attack.name)
            axes.fill_between(curve.fpr, curve.low, curve.high, step="post", alpha=0.12, color=line.get_color(), lw=0)
    axes.plot([lowest, 1], [lowest, 1], color="0.5", linestyle=":", label="chance")
    axes.set(xlim=(lowest, 1), ylim=(lowest, 1.05), title=summary.context.title)
    axes.legend(loc="lower right", frameon=False)
    return figure  # type: ignore[no-any-return]
