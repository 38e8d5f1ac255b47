"""The report of one audit, and a comparison, as a page: one HTML file that needs no network.

Its one small script is optional. A glossary explains the words and abbreviations.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from collections.abc import Sequence
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from glasshouse.report.comparison import RESAMPLED, Comparison, compare_sentences, first_runs
from glasshouse.report.decision.first_page import FirstPage, first_page
from glasshouse.report.decision.verdict import (
    groups_sentence,
    list_sentence,
    power_sentences,
    precision_sentence,
    whole_sentence,
)
from glasshouse.report.figures import AttackFigures
from glasshouse.report.format import percent, points, rate, signed, whole
from glasshouse.report.pictures.neighbourhood import neighbourhood_picture
from glasshouse.report.pictures.people import exposure_picture, groups_picture
from glasshouse.report.pictures.privacy import Point, epsilon_picture, fdp_picture, tradeoff_picture
from glasshouse.report.pictures.roc import roc_picture
from glasshouse.report.pictures.scores import histogram_picture, precision_picture, reliability_picture
from glasshouse.report.policy import Policy
from glasshouse.report.summary import Summary

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("glasshouse", "report/templates"),
    autoescape=True,  # ids, labels and file names come from outside; none may become markup
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {"percent": percent, "points": points, "rate": rate, "signed": signed, "whole": whole}


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


def picture_style() -> str:
    """The style sheet of pictures, which is also included in pictures that are separate files."""
    return _file("pictures.css")


@functools.cache
def _file(name: str) -> str:
    return (importlib.resources.files("glasshouse.report") / "templates" / name).read_text(encoding="utf-8")


GLOSSARY: tuple[tuple[str, str], ...] = (
    ("Member", "A record that the model was trained on. All others are outsiders, or non-members."),
    (
        "Membership attack",
        "A way to guess, from the model's answers about a record, whether the model was trained on it.",
    ),
    (
        "Shadow model",
        "A model that the attacker trains like the audited one, on data of the same kind, to learn how answers about "
        "members differ from answers about outsiders.",
    ),
    (
        "Simulated target",
        "A shadow model in the part of the audited model. Attacks are chosen and set up on these, never on the "
        "audited model, so that the figures are not lucky.",
    ),
    (
        "Online, offline",
        "Online: some shadow models were trained on the record in question and some were not. Offline: none was, so "
        "the attacker need not know the record beforehand.",
    ),
    ("TPR, true-positive rate", "The share of members that the attack finds."),
    ("FPR, false-positive rate", "The share of outsiders that it wrongly takes for members."),
    (
        "TPR at 1 % FPR",
        "How many members are found if only one outsider in a hundred may be accused. Chance finds about as many "
        "members as it accuses outsiders.",
    ),
    (
        "ROC, AUC",
        "The ROC curve shows the TPR for every FPR. The AUC is the area under it: how often the attack gives the "
        "higher score to the member, if it is shown one member and one outsider. A coin has 0.5.",
    ),
    (
        "Interval",
        "Where the true value lies with the stated confidence, mostly 95 %, if other records had been audited.",
    ),
    (
        "p",
        "How often figures at least as high would appear by luck alone. At 0.05 or below we say that a leak is shown.",
    ),
    ("Threshold, flagged", "The score from which on a record is called a member."),
    ("FDR, false-discovery rate", "Of those on a list of called members, the share that are not members."),
    (
        "Differential privacy, ε, δ",
        "A guarantee of the training: nobody's presence changes what anybody can find out by more than a factor that "
        "grows with ε (epsilon), except with a probability of δ (delta). Smaller is safer. An audit can only show that "
        "ε is at least some value. If it shows no such value, that is not a guarantee.",
    ),
    ("DP-SGD", "Training with differential privacy: each record's influence is limited, and noise is added."),
    ("μ, Gaussian privacy", "Another measure of the same kind as ε, for training that adds Gaussian noise."),
    (
        "Posterior, calibration, ECE",
        "A posterior is a score that is meant as a probability of membership. It is calibrated if, of the records with "
        "70 %, about 70 % are members. ECE, the expected calibration error, is the mean distance from that.",
    ),
    ("Balanced accuracy", "The mean of the shares of members and of outsiders that are recognised. A coin has 50 %."),
    ("Advantage", "TPR minus FPR."),
    ("Steady", "The share of smaller sets of shadow models with which the record is still flagged."),
)


class _Column(NamedTuple):
    name: str
    title: str
    number: bool


class _Cell(NamedTuple):
    text: str
    number: float | None


class _Row(NamedTuple):
    label: str | None
    cells: list[_Cell]
    drawing: Markup | None


def render_html(summary: Summary, *, policy: Policy | None = None) -> str:
    """A summary as an HTML page: the first part for the one who decides, the rest for the expert.

    Args:
        summary: the numbers.
        policy: of the owner, which gives the rating; Glasshouse's usual one by default.

    Example:
        >>> from glasshouse import Evidence, audit_evidence
        >>> losses = {"target_loss": [0.1, 2.0], "shadow_loss": [[0.1, 1.0], [1.2, 0.2]]}
        >>> evidence = Evidence(**losses, shadow_members=[[1, 0], [0, 1]])
        >>> page = render_html(audit_evidence(evidence, attacks=["loss"], members=[1, 0]).summary())
        >>> "<title>Membership audit from saved evidence" in page
        True
    """
    best = summary.attack(summary.strongest)
    leak = summary.verdict_attack is None or summary.verdict_attack.leak is True
    curves = {attack.name: attack.metrics.curve for attack in summary.attacks if attack.metrics is not None}
    columns = _columns(summary)
    rows = _rows(summary, columns)
    first = first_page(summary, policy)
    return render_page(
        "report.html.j2",
        title=summary.context.title,
        summary=summary,
        first=first,
        glossary=GLOSSARY,
        crowd_in=exposure_picture(first.exposure, name="in"),
        crowd_out=exposure_picture(first.exposure, name="out", outsiders=True),
        **_first_groups(first, best),
        context=summary.context,
        best=best,
        thresholds=[(attack, threshold) for attack in summary.attacks for threshold in attack.thresholds],
        roc=roc_picture(curves) if curves else None,
        histograms=[
            histogram_picture(
                attack.name,
                attack.histogram,
                threshold=attack.thresholds[0].value if attack.thresholds else None,
            )
            for attack in summary.attacks
        ],
        doubts=[attack for attack in summary.attacks if attack.doubt],
        reliability=[
            (attack, reliability_picture(attack.name, attack.metrics.calibration))
            for attack in summary.attacks
            if attack.metrics is not None and attack.metrics.calibration is not None
        ],
        accused=[(attack, one) for attack in summary.attacks for one in attack.accusations],
        groups=(
            groups_picture(summary.groups, overall=best.metrics.auc)
            if best.metrics is not None and any(one.auc is not None for one in summary.groups)
            else None
        ),
        groups_text=groups_sentence(summary.groups),
        precision=next(
            (precision_picture(best.name, one) for one in best.accusations[:1] if one.precisions[-1].value is not None),
            None,
        ),
        precision_text=precision_sentence(best),
        list_text=list_sentence(best, leak=leak),
        whole_text=whole_sentence(best),
        power_text=power_sentences(summary.power) if summary.power is not None else (),
        epsilon=epsilon_picture(summary.privacy) if summary.privacy and not summary.privacy.withheld else None,
        fdp=_fdp(summary),
        columns=columns,
        rows=rows,
        classes=sorted({row.label for row in rows if row.label is not None}),
    )


def _first_groups(first: FirstPage, best: AttackFigures) -> dict[str, Markup | str | None]:
    """The groups of the first page: the share that is singled out, or who is right about pairs without a threshold."""
    if any(one.tpr is not None for one in first.groups):
        overall = best.accusations[0].tpr if best.accusations else None
        drawn = groups_picture(first.groups, overall=overall, figure="tpr", name="of 1 000 members, singled out")
        caption = (
            f"Of 1 000 members of each group, so many are singled out at the own threshold of {best.title}; how many "
            f"outsiders it accuses there is in the expert's part."
        )
        return {"crowd_groups": drawn, "groups_caption": caption}
    if any(one.auc is not None for one in first.groups) and best.metrics is not None:
        drawn = groups_picture(first.groups, overall=best.metrics.auc, name="right about pairs (0.5 is a coin)")
        caption = (
            "How often the attacker is right about a pair of a member and an outsider of the group; a coin has 0.5."
        )
        return {"crowd_groups": drawn, "groups_caption": caption}
    return {"crowd_groups": None, "groups_caption": ""}


def _fdp(summary: Summary) -> Markup | None:
    """The trade-off of the attack that guessed; None where nothing was guessed."""
    privacy = summary.privacy
    if privacy is None or privacy.guessed is None:
        return None
    measured = summary.attack(privacy.guessed.attack).metrics
    return None if measured is None else fdp_picture(privacy, privacy.guessed.attack, measured.curve)


def _columns(summary: Summary) -> list[_Column]:
    """Columns for the record itself, for the strongest attack's score of it, and for its rank in every attack."""
    names = {
        "id": ("id", False),
        "label": ("class", False),
        "member": ("member", False),
        "degree": ("degree", True),
        f"{summary.strongest}_score": (f"{summary.strongest} score", True),
        f"{summary.strongest}_decision": ("flagged", False),
        f"{summary.strongest}_fdr": ("FDR", True),
        f"{summary.strongest}_steady": ("steady", True),
        **{f"{attack.name}_rank": (f"{attack.name} rank", True) for attack in summary.attacks},
    }
    return [_Column(name, *how) for name, how in names.items() if name in summary.top_records]


def _rows(summary: Summary, columns: Sequence[_Column]) -> list[_Row]:
    drawings = [neighbourhood_picture(around) for around in summary.neighbourhoods]
    return [
        _Row(
            label=str(row["label"]) if "label" in row else None,
            cells=[_cell(row[column.name], column) for column in columns],
            drawing=drawings[place] if place < len(drawings) else None,
        )
        for place, row in enumerate(summary.top_records.rows())
    ]


def _cell(value: Any, column: _Column) -> _Cell:
    if isinstance(value, bool):
        return _Cell("yes" if value else "no", None)
    if column.number and isinstance(value, int | float):
        return _Cell(f"{value:.4g}" if isinstance(value, float) else str(value), value)
    return _Cell(str(value), None)


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
