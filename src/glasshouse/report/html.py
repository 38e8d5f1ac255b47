"""The report of one audit as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from glasshouse.report.figures import AttackFigures
from glasshouse.report.first_page import FirstPage, first_page
from glasshouse.report.glossary import GLOSSARY
from glasshouse.report.next_questions import (
    groups_sentence,
    list_sentence,
    power_sentences,
    precision_sentence,
    whole_sentence,
)
from glasshouse.report.page import render_page
from glasshouse.report.pictures import (
    epsilon_picture,
    exposure_picture,
    fdp_picture,
    groups_picture,
    histogram_picture,
    neighbourhood_picture,
    precision_picture,
    reliability_picture,
    roc_picture,
)
from glasshouse.report.policy import Policy
from glasshouse.report.summarise import Summary

__all__ = ["render_html"]


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
    leak = summary.headline is None or summary.headline.leak is True
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
