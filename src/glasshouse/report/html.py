"""Reports, comparisons and advice as pages, each one HTML file that needs no network; and what a notebook shows."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from markupsafe import Markup
from scipy.stats import rankdata

from glasshouse.core.errors import InputError
from glasshouse.core.table import Table
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.advice import Advice
from glasshouse.report.comparison import RESAMPLED, Comparison
from glasshouse.report.decision import verdict
from glasshouse.report.decision.conclusion import attackers
from glasshouse.report.decision.first_page import counted, exposure_of, shown_groups
from glasshouse.report.decision.next_steps import model_words, next_steps
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.figures import FIGURES, columns_at
from glasshouse.report.format import percent, points, rate, signed, whole
from glasshouse.report.pictures.neighbourhood import neighbourhood_picture
from glasshouse.report.pictures.people import exposure_picture, groups_picture, risk_picture
from glasshouse.report.pictures.privacy import Point, epsilon_picture, fdp_picture, tradeoff_picture
from glasshouse.report.pictures.scores import histogram_picture, precision_picture, reliability_picture, roc_picture
from glasshouse.report.policy import Policy
from glasshouse.report.run_folder import MOST_SEARCHED
from glasshouse.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _cell(value: object) -> str:
    """A value of a record as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("glasshouse", "report/templates"),
    autoescape=True,  # ids, labels and file names come from outside; none may become markup
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {one.__name__: one for one in (counted, percent, points, rate, signed, whole)} | {"cell": _cell}
_PICTURES = (exposure_picture, histogram_picture, neighbourhood_picture, precision_picture, risk_picture)
TEMPLATES.globals |= {one.__name__: one for one in (*_PICTURES, reliability_picture, epsilon_picture, columns_at)}
TEMPLATES.globals |= {"verdict": verdict, "resampled": RESAMPLED}


def render_page(template: str, *, title: str, **values: Any) -> str:
    """A page from a template that extends ``base.html.j2``, which allows its own script alone, and no downloads."""
    script = _file("sort.js")  # allowed by its hash: a second protection, after the escaping of what is from outside
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return TEMPLATES.get_template(template).render(
        title=title,
        style=Markup(picture_style() + _file("page.css")),  # noqa: S704 (our own files)
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        **values,
    )


def picture_style() -> str:
    """The style sheet of pictures, which is also included in pictures that are separate files."""
    return _file("pictures.css")


@functools.cache
def _file(name: str) -> str:
    return (importlib.resources.files("glasshouse.report") / "templates" / name).read_text(encoding="utf-8")


def render_html(summary: Summary, *, policy: Policy | None = None, searched: Table | None = None) -> str:
    """A summary as a page, first for the decision-maker, then for the expert; rated by a policy, or the usual one.

    Where it lists records, all those of the table ``searched`` are found by their ids, if they are not too many.
    """
    rating, records = rating_of(summary, policy), list(summary.top_records.rows())
    groups = () if summary.conclusion.measured is None else shown_groups(summary)
    return render_page(
        "report.html.j2",
        title=summary.context.title,
        summary=summary,
        context=summary.context,
        words=summary.worded,
        best=summary.attack(summary.strongest),
        rating=rating,
        exposure=exposure_of(summary),
        main_groups=groups,
        tried=[attack.title for attack in attackers(summary.attacks)],
        steps=next_steps(summary, rating, policy),
        model=model_words(summary.context),
        groups_drawn=_groups(groups, summary),
        all_groups_drawn=_groups(summary.groups, summary),
        roc=roc_picture(summary.curves) if summary.curves else None,
        fdp=_fdp(summary),
        columns=_columns(summary),
        records=records,
        searched=None if searched is None or not records else _searched(searched, summary.strongest),
        most_searched=MOST_SEARCHED,
        classes=sorted({str(row["label"]) for row in records if "label" in row}),
    )


def _groups(groups: Sequence[GroupLeak], summary: Summary) -> Markup | None:
    """A picture of groups: flagged members and non-members; the AUC where there is no threshold."""
    best, leak = summary.attack(summary.strongest), bool(summary.conclusion.leak)
    if any(one.tpr is not None for one in groups):
        cell = summary.worst_cell
        combined = [cell.group_leak] if cell is not None and len(cell.parts) > 1 else []
        above = []
        if (first := best.first_flags) is not None and (inside := summary.members) is not None:
            known: dict[str, Any] = {"tpr": first.tpr, "tpr_interval": first.tpr_interval, "fpr": first.fpr}
            known |= {"members": inside, "non_members": summary.records - inside}
            above.append(GroupLeak(column="", group="all records", **known))
        rows = [*above, *groups, *combined]
        return groups_picture(rows, overall=None, figure="tpr", name="flagged per 1\u00a0000", leak=leak)
    if any(one.auc is not None for one in groups) and best.metrics is not None:
        name = "share of pairs told apart (guessing: 0.5)"
        return groups_picture(groups, overall=best.metrics.auc, name=name, leak=leak)
    return None


def _fdp(summary: Summary) -> Markup | None:
    """The trade-off of the attack that guessed; None where nothing was guessed."""
    privacy = summary.privacy
    if privacy is None or privacy.guessed is None:
        return None
    measured = summary.attack(privacy.guessed.attack).metrics
    return None if measured is None else fdp_picture(privacy, privacy.guessed.attack, measured.curve)


def _searched(records: Table, best: str) -> Markup | None:
    """The heads and rows of what can be searched, as JSON for the page's script, most at risk first."""
    if records.height > MOST_SEARCHED:
        return None
    scores = records[f"{best}_score"]
    heads = {"id": "id", "label": "class", "member": "member", f"{best}_score": f"{best} score"}
    known = {name: records[name].tolist() for name in heads if name in records}
    known |= {"label": [str(value) for value in known["label"]]} if "label" in known else {}
    known["rank"] = rankdata(-scores, method="min").astype(int).tolist()
    rows = list(zip(*[[_cell(value) for value in column] for column in known.values()], strict=True))
    ordered = [rows[at] for at in np.argsort(known["rank"], kind="stable")]
    told = json.dumps({"heads": [*[heads[name] for name in known if name in heads], f"{best} rank"], "rows": ordered})
    return Markup(told.replace("&", "&amp;").replace("<", "&lt;"))  # noqa: S704 (escaped, but for quotation marks)


def _columns(summary: Summary) -> dict[str, tuple[str, bool]]:
    """Heading, and whether it is a number: of the record, the strongest attack, and its rank in every attack."""
    best = summary.strongest
    names = {
        "id": ("id", False),
        "label": ("class", False),
        "member": ("member", False),
        "degree": ("degree", True),
        "exposed_by": ("exposed by", False),
        "records": ("records", True),
        "risk": ("risk", True),
        f"{best}_score": (f"{best} score", True),
        f"{best}_decision": ("flagged", False),
        f"{best}_fdr": ("FDR", True),
        f"{best}_stability": ("stability", True),
        **{f"{attack.name}_rank": (f"{attack.name} rank", True) for attack in summary.attacks},
    }
    return {name: names[name] for name in names if name in summary.top_records}


def render_comparison(comparison: Comparison, *, title: str = "Comparison of audits") -> str:
    """Runs side by side as one HTML page.

    Example:
        >>> from glasshouse import Evaluation, Evidence, audit_evidence
        >>> from glasshouse.report import compare
        >>> losses = {"target_loss": [0.1, 2.0, 0.2, 1.5], "shadow_loss": [[0.1, 1.0, 0.3, 2.0], [1.2, 0.2, 1.5, 0.1]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0, 1, 0], [0, 1, 0, 1]])
        >>> run = audit_evidence(evidence, attacks=["loss"], members=[1, 0, 1, 0], evaluation=Evaluation(fprs=[0.5]))
        >>> "TPR at 50 % FPR" in render_comparison(compare({"plain": run, "defended": run}))
        True
    """
    points = [
        Point(run.number, accuracy, run.accuracy_interval, run.rate.tpr, run.rate.tpr_interval)
        for run in comparison.runs
        if run.accuracy_interval is not None and (accuracy := run.summary.context.test_accuracy) is not None
    ]
    measured = {f"{run.number} {run.name}": run.attack.metrics for run in comparison.runs}
    return render_page(
        "compare.html.j2",
        title=title,
        comparison=comparison,
        tpr_column=FIGURES["tpr@{}"].at(comparison.choice.fpr),
        auc_column=FIGURES["auc"],
        tradeoff=tradeoff_picture(points, fpr=comparison.choice.fpr) if points else None,
        roc=roc_picture({name: metrics.curve for name, metrics in measured.items() if metrics is not None}),
    )


def render_advice(advice: Advice, *, title: str = "Measured defences") -> str:
    """The advice, the trade-off as a picture, and every defence that was measured, as one HTML page."""
    points = [
        Point(number, one.accuracy, one.accuracy_interval, one.leak, one.interval) for number, one in advice.models
    ]
    return render_page("advice.html.j2", title=title, advice=advice, tradeoff=tradeoff_picture(points, fpr=advice.fpr))


def notebook_html(summary: Summary) -> str:
    """Rating, picture, attacks, ROC and the first records of a run; without scripts and without a network."""
    exposure, style = exposure_of(summary), picture_style().replace(":root", ".glasshouse")
    return TEMPLATES.get_template("notebook.html.j2").render(
        style=Markup(style.replace("svg ", ".glasshouse svg ")),  # noqa: S704 (ours, and inside our own part alone)
        summary=summary,
        rating=rating_of(summary),
        exposure=exposure,
        people=exposure_picture(exposure, name="notebook"),
        columns=[one for one in columns_at("terminal", summary.attacks, summary.fprs) if one.high < math.inf],
        roc=roc_picture(summary.curves) if summary.curves else None,
    )


def roc_figure(summary: Summary) -> Figure:
    """ROC curves with bands, both axes logarithmic, as a matplotlib figure."""
    try:
        from matplotlib.figure import Figure as Drawing
    except ImportError:
        raise InputError("plot: needs matplotlib, which is not installed: pip install matplotlib.") from None
    figure: Any = Drawing(figsize=(5.0, 4.6), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="false-positive rate", ylabel="true-positive rate")
    lowest = min([1.0, *(0.5 / curve.non_members for curve in summary.curves.values())])
    for name, curve in summary.curves.items():
        (line,) = axes.plot(curve.fpr, curve.tpr, drawstyle="steps-post", label=name)
        axes.fill_between(curve.fpr, curve.low, curve.high, step="post", alpha=0.12, color=line.get_color(), lw=0)
    axes.plot([lowest, 1], [lowest, 1], color="0.5", linestyle=":", label="chance")
    axes.set(xlim=(lowest, 1), ylim=(lowest, 1.05), title=summary.context.title)
    axes.legend(loc="lower right", frameon=False)
    return figure  # type: ignore[no-any-return]
