"""How every page is made: one HTML file that needs no network, with one small script that is optional."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
from typing import Any

import jinja2
from markupsafe import Markup

from glasshouse.report.words import percent, points, rate, signed, whole

__all__ = ["picture_style", "render_page"]

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
