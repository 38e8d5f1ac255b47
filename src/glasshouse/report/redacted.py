"""A saved run's summary with hashed ids, for a page that is passed on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from glasshouse.report.context import Context
from glasshouse.report.redaction import Redactor
from glasshouse.report.summarise import Summary
from glasshouse.table import Table

__all__ = ["redacted_context", "redacted_summary"]


def redacted_context(context: Context, redactor: Redactor, ids: frozenset[str]) -> Context:
    """The same context with every id in its texts replaced."""
    return dataclasses.replace(
        context,
        title=redactor.text(context.title, ids),
        about=redactor.text(context.about, ids),
        settings={name: redactor.text(str(value), ids) for name, value in context.settings.items()},
        warnings=tuple(redactor.text(one, ids) for one in context.warnings),
        notes=tuple(redactor.text(one, ids) for one in context.notes),
        redacted=True,
    )


def redacted_summary(summary: Summary, redactor: Redactor, ids: Iterable[str]) -> Summary:
    """The same summary with every id replaced: in the records, in columns that repeat them, and in all texts.

    A summary that is redacted already stays as it is.

    Args:
        summary: of a run.
        redactor: with the key.
        ids: of all audited records; a text may name one that is not among the first.
    """
    if summary.context.redacted:
        return summary
    known, rows = frozenset(ids), summary.top_records
    names = rows["id"].tolist() if "id" in rows else []
    hashed = {name: redactor.column(rows[name], names) for name in rows}
    repeats = {name for name in rows if name != "id" and hashed[name] is not rows[name]}
    return dataclasses.replace(
        summary,
        context=redacted_context(summary.context, redactor, known),
        top_records=Table(hashed),
        verdict=redactor.text(summary.verdict, known),
        notes=tuple(redactor.text(one, known) for one in summary.notes),
        left_out=redactor.texts(summary.left_out, known),
        attacks=tuple(
            dataclasses.replace(one, note=redactor.text(one.note, known), doubt=redactor.text(one.doubt, known))
            for one in summary.attacks
        ),
        groups=tuple(
            dataclasses.replace(one, group=redactor.hash(one.group)) if one.column in repeats else one
            for one in summary.groups
        ),
    )
