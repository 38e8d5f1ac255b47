"""The report of one audit, and a comparison, as a page: one HTML file that needs no network.

Its one small script is optional. A glossary explains the words and abbreviations.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from collections.abc import Iterator, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report.advice import Advice
from glasshouse.report.comparison import RESAMPLED, Comparison, compare_sentences
from glasshouse.report.decision.exposure import unit_of
from glasshouse.report.decision.first_page import first_page
from glasshouse.report.decision.verdict import (
    groups_sentence,
    list_sentence,
    power_sentences,
    precision_sentence,
    whole_sentence,
)
from glasshouse.report.figures import FIGURES, AttackFigures, Column, columns_at
from glasshouse.report.format import percent, points, rate, signed, whole
from glasshouse.report.pictures.neighbourhood import neighbourhood_picture
from glasshouse.report.pictures.people import exposure_picture, groups_picture, risk_picture
from glasshouse.report.pictures.privacy import Point, epsilon_picture, fdp_picture, tradeoff_picture
from glasshouse.report.pictures.roc import roc_picture
from glasshouse.report.pictures.scores import histogram_picture, precision_picture, reliability_picture
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary


def _cell(value: object) -> str:
    """A value of a record as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("glasshouse", "report/templates"),
    autoescape=True,  # ids, labels and file names come from outside; none may become markup
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {one.__name__: one for one in (percent, points, rate, signed, whole)} | {"cell": _cell}


def render_page(template: str, *, title: str, **values: Any) -> str:
    """A page from a template that extends ``base.html.j2``.

    The page's own policy allows only its own script, by its hash, and no downloads: a second protection after the
    escaping of everything that comes from outside.
    """
    script = _file("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _TEMPLATES.get_template(template).render(
        title=title,
        style=Markup(picture_style() + _file("page.css")),  # noqa: S704 (our own files)
        script=Markup(script),  # noqa: S704
        script_hash=f"sha256-{digest}",
        **values,
    )


def render_part(template: str, **values: Any) -> str:
    """A part of somebody else's page, such as the output of a notebook's cell."""
    return _TEMPLATES.get_template(template).render(**values)


def picture_style() -> str:
    """The style sheet of pictures, which is also included in pictures that are separate files."""
    return _file("pictures.css")


@functools.cache
def _file(name: str) -> str:
    return (importlib.resources.files("glasshouse.report") / "templates" / name).read_text(encoding="utf-8")


GLOSSARY: tuple[tuple[str, str], ...] = (
    ("Member, non-member", "A record that the model was trained on; a record that it was not trained on."),
    (
        "Membership attack",
        "A way to guess, from the model's answers about a record, whether the model was trained on it.",
    ),
    (
        "Shadow model",
        "A model that the attacker trains like the audited one, on data of the same kind, to learn how answers about "
        "members differ from answers about non-members.",
    ),
    (
        "Simulated target",
        "A shadow model in the role of the audited model. Attacks are chosen and tuned on these, never on the audited "
        "model, so the choice does not make the figures too high.",
    ),
    (
        "Online, offline",
        "Online: some shadow models were trained on the record in question and some were not. Offline: none was, so "
        "the attacker need not know the record in advance.",
    ),
    ("TPR, true-positive rate", "The share of members that the attack flags."),
    ("FPR, false-positive rate", "The share of non-members that it flags, wrongly."),
    (
        "TPR at 1 % FPR",
        "The share of members that are identified if only one non-member in a hundred may be flagged. Guessing flags "
        "the same share of members and of non-members.",
    ),
    (
        "ROC, AUC",
        "The ROC curve shows the TPR for every FPR. The AUC is the area under it: how often the attack gives "
        "the higher score to the member of a pair of a member and a non-member. Random guessing gives 0.5.",
    ),
    (
        "Interval",
        "Where the true value lies with the stated confidence, mostly 95 %, if other records had been audited.",
    ),
    (
        "p",
        "How often chance alone would produce figures at least as high. At 0.05 or below, a leak is shown.",
    ),
    ("Threshold, flagged", "A record is flagged as a member if its score is at least the threshold."),
    ("Identified", "A member that is flagged."),
    ("FDR, false-discovery rate", "The share of flagged records that are not members."),
    (
        "Differential privacy, ε, δ",
        "A guarantee of the training: whether one record takes part changes what anyone can learn by at most a factor "
        "that grows with ε (epsilon), except with a probability of δ (delta). Smaller is safer. An audit can only show "
        "that ε is at least some value. If it shows no such value, that is not a guarantee.",
    ),
    ("DP-SGD", "Training with differential privacy: each record's influence is limited, and noise is added."),
    ("μ, Gaussian privacy", "Another measure of the same kind as ε, for training that adds Gaussian noise."),
    (
        "Posterior, calibration, ECE",
        "A posterior is a score that is meant as a probability of membership. It is calibrated if about 70 % of the "
        "records with a score of 70 % are members. ECE, the expected calibration error, is the mean deviation.",
    ),
    (
        "Balanced accuracy",
        "The mean of the shares of members and non-members that are recognised. Guessing gives 50 %.",
    ),
    ("Advantage", "TPR minus FPR."),
    ("Stability", "The share of smaller sets of shadow models with which the record is still flagged."),
)


def render_html(summary: Summary, *, policy: Policy | None = None) -> str:
    """A summary as an HTML page, rated by a policy of the user, or else by the usual one.

    The first part is for the decision-maker, the rest for the expert.
    """
    best = summary.attack(summary.strongest)
    curves = {attack.name: attack.metrics.curve for attack in summary.attacks if attack.metrics is not None}
    records = list(summary.top_records.rows())
    first = first_page(summary, policy)
    return render_page(
        "report.html.j2",
        title=summary.context.title,
        summary=summary,
        first=first,
        glossary=GLOSSARY,
        crowd_in=exposure_picture(first.exposure, name="in"),
        crowd_out=exposure_picture(first.exposure, name="out", members=False),
        **_groups(first.groups, summary, "first"),
        **_groups(summary.groups, summary, "all"),
        context=summary.context,
        best=best,
        figures=columns_at("html", summary.attacks, summary.fprs),
        sample_figures=columns_at("sample", summary.attacks, summary.fprs),
        thresholds=[(attack, threshold) for attack in summary.attacks for threshold in attack.thresholds],
        roc=roc_picture(curves) if curves else None,
        histograms=[
            histogram_picture(one.name, one.histogram, threshold=one.thresholds[0].value if one.thresholds else None)
            for one in summary.attacks
        ],
        doubts=[attack for attack in summary.attacks if attack.doubt],
        reliability=[
            (attack, reliability_picture(attack.name, attack.metrics.calibration))
            for attack in summary.attacks
            if attack.metrics is not None and attack.metrics.calibration is not None
        ],
        flagged=[(attack, one) for attack in summary.attacks for one in attack.accusations],
        groups_text=groups_sentence(summary.groups, summary.worst_cell),
        precision=next(
            (precision_picture(best.name, one) for one in best.accusations[:1] if one.precisions[-1].value is not None),
            None,
        ),
        precision_text=precision_sentence(best),
        list_text=list_sentence(best, leak=summary.conclusion.lists_records),
        whole_text=whole_sentence(best),
        power_text=power_sentences(summary.power) if summary.power is not None else (),
        epsilon=epsilon_picture(summary.privacy) if summary.privacy and not summary.privacy.withheld else None,
        fdp=_fdp(summary),
        risk=risk_picture(summary.risk, unit=unit_of(summary).removesuffix("s")) if summary.risk else None,
        columns=_columns(summary),
        records=records,
        drawings=[neighbourhood_picture(around) for around in summary.neighbourhoods],
        classes=sorted({str(row["label"]) for row in records if "label" in row}),
    )


def _groups(groups: Sequence[GroupLeak], summary: Summary, place: str) -> dict[str, Markup | str | None]:
    """A picture of groups with its caption: flagged members and non-members; the AUC where there is no threshold."""
    drawn, caption, best, leak = None, "", summary.attack(summary.strongest), bool(summary.conclusion.leak)
    if any(one.tpr is not None for one in groups):
        cell = summary.worst_cell
        combined = [cell.group_leak] if cell is not None and len(cell.parts) > 1 else []
        rows = [*_everyone(best, summary), *groups, *combined]
        drawn = groups_picture(rows, overall=None, figure="tpr", name="flagged per 1\u00a0000", leak=leak)
        caption = f"Flagged at {best.title}'s own threshold: members (filled dots) and non-members (hollow)."
    elif any(one.auc is not None for one in groups) and best.metrics is not None:
        name = "share of pairs told apart (guessing: 0.5)"
        drawn = groups_picture(groups, overall=best.metrics.auc, name=name, leak=leak)
        caption = (
            "How often the attacker can tell which of a member and a non-member of the group is the member; guessing "
            "is right in 0.5 (dotted), and over all records in the share of the dashed line."
        )
    caption += " Bars: intervals for all groups at once."
    caption += " Another colour: differs significantly." if leak else ""
    return {f"{place}_groups": drawn, f"{place}_groups_caption": caption}


def _everyone(best: AttackFigures, summary: Summary) -> Iterator[GroupLeak]:
    """All records as a row above their groups."""
    if (first := best.first_flags) is not None and summary.members is not None:
        yield GroupLeak(
            column="",
            group="all records",
            members=summary.members,
            non_members=summary.records - summary.members,
            tpr=first.tpr,
            tpr_interval=first.tpr_interval,
            fpr=first.fpr,
        )


def _fdp(summary: Summary) -> Markup | None:
    """The trade-off of the attack that guessed; None where nothing was guessed."""
    privacy = summary.privacy
    if privacy is None or privacy.guessed is None:
        return None
    measured = summary.attack(privacy.guessed.attack).metrics
    return None if measured is None else fdp_picture(privacy, privacy.guessed.attack, measured.curve)


def _columns(summary: Summary) -> dict[str, tuple[str, bool]]:
    """Heading, and whether it is a number: of the record, the strongest attack, and its rank in every attack."""
    best = summary.strongest
    names = {
        "id": ("id", False),
        "label": ("class", False),
        "member": ("member", False),
        "degree": ("degree", True),
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
        sentences=compare_sentences(comparison),
        first=[(run, exposure_picture(run.exposure, name=f"run{run.number}")) for run in comparison.runs],
        glossary=GLOSSARY,
        tpr_column=Column(FIGURES["tpr@{}"], comparison.choice.fpr),
        auc_column=Column(FIGURES["auc"], comparison.choice.fpr),
        resampled=RESAMPLED,
        tradeoff=tradeoff_picture(points, fpr=comparison.choice.fpr) if points else None,
        roc=roc_picture({name: metrics.curve for name, metrics in measured.items() if metrics is not None}),
    )


def render_advice(advice: Advice, *, title: str = "Measured defences") -> str:
    """The advice, the trade-off as a picture, and every defence that was measured, as one HTML page."""
    points = [
        Point(number, one.accuracy, one.accuracy_interval, one.leak, one.interval) for number, one in advice.models
    ]
    return render_page("advice.html.j2", title=title, advice=advice, tradeoff=tradeoff_picture(points, fpr=advice.fpr))
