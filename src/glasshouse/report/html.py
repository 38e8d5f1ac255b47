"""The page: one HTML file, no network, no scripts."""

from __future__ import annotations

import jinja2

from glasshouse.report.plots import roc_svg
from glasshouse.report.summarise import Summary, percent

__all__ = ["render_html"]

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("glasshouse", "report/templates"),
    autoescape=True,  # ids, labels and file names come from outside; none may become markup
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["percent"] = percent


def render_html(summary: Summary) -> str:
    """A summary as an HTML page.

    Example:
        >>> callable(render_html)
        True
    """
    curves = {row.name: row.metrics.curve for row in summary.attacks if row.metrics is not None}
    return _TEMPLATES.get_template("report.html.j2").render(
        summary=summary,
        context=summary.context,
        top=list(summary.top_records.rows()),
        top_columns=list(summary.top_records),
        picture=roc_svg(curves) if curves else None,
    )
