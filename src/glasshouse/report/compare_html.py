"""A comparison as a page."""

from __future__ import annotations

from glasshouse.report.compare_first import compare_sentences, first_runs
from glasshouse.report.compare_words import RESAMPLED
from glasshouse.report.compared import Comparison
from glasshouse.report.glossary import GLOSSARY
from glasshouse.report.page import render_page
from glasshouse.report.pictures import exposure_picture, roc_picture, tradeoff_picture
from glasshouse.report.pictures.tradeoff import Point

__all__ = ["render_comparison"]


def render_comparison(comparison: Comparison, *, title: str = "Comparison of audits") -> str:
    """Runs side by side as one HTML page.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> from glasshouse.report import compare
        >>> losses = {"target_loss": [0.1, 2.0, 0.2, 1.5], "shadow_loss": [[0.1, 1.0, 0.3, 2.0], [1.2, 0.2, 1.5, 0.1]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0, 1, 0], [0, 1, 0, 1]])
        >>> run = audit_evidence(evidence, attacks=["loss"], members=[1, 0, 1, 0], fprs=[0.5])
        >>> "TPR at 50 % FPR" in render_comparison(compare({"plain": run, "defended": run}))
        True
    """
    points = [
        Point(run.number, accuracy, run.accuracy_interval, run.rate.tpr, run.rate.tpr_interval)
        for run in comparison.runs
        if run.accuracy_interval is not None and (accuracy := run.summary.context.test_accuracy) is not None
    ]
    curves = {
        f"{run.number} {run.name}": run.attack.metrics.curve
        for run in comparison.runs
        if run.attack.metrics is not None
    }
    return render_page(
        "compare.html.j2",
        title=title,
        comparison=comparison,
        sentences=compare_sentences(comparison),
        first=[(run, exposure_picture(run.exposure, name=f"run{run.number}")) for run in first_runs(comparison)],
        glossary=GLOSSARY,
        resampled=RESAMPLED,
        tradeoff=tradeoff_picture(points, fpr=comparison.choice.fpr) if points else None,
        roc=roc_picture(curves),
    )
