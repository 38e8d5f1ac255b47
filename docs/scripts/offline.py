r"""For the manual's build: pages ask nobody else's server, also when they are opened as files.

The plugin ``offline`` would load a library for the search from elsewhere; ``docs/assets/file-worker.js`` takes its
place.
Formulas in ``\(…\)`` become MathML, which browsers draw by themselves.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

_THEIRS = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
_OURS = Path(__file__).parents[1] / "assets" / "file-worker.js"
_FORMULA = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', flags=re.DOTALL)

_PARTS = re.compile(r"\\[A-Za-z]+|\S")
_LETTERS = {"alpha": "α", "gamma": "γ", "theta": "θ", "lambda": "λ", "mu": "μ", "sigma": "σ", "Phi": "Φ", "ell": "ℓ"}
_SIGNS = {"sum": "∑", "ge": "≥", "ne": "≠"}


def on_page_content(content: str, **known: Any) -> str:
    """A page's text with its formulas, called by mkdocs."""
    return _FORMULA.sub(lambda found: mathml(html.unescape(found[1])), content)


def on_post_page(output: str, **known: Any) -> str:
    """A page with our own script."""
    return output.replace(_THEIRS, f"<script>{_OURS.read_text(encoding='utf-8')}</script>")


def on_post_template(output: str, **known: Any) -> str:
    """The same for a page without a source, such as the one for a wrong address."""
    return on_post_page(output)


def mathml(latex: str) -> str:
    r"""A formula in the few commands that our pages use, as MathML.

    Example:
        >>> mathml(r"\frac1K e^{-\ell}")
        '<math><mfrac><mn>1</mn><mi>K</mi></mfrac><msup><mi>e</mi><mrow><mo>−</mo><mi>ℓ</mi></mrow></msup></math>'
    """
    parts = _PARTS.findall(latex)
    parts.reverse()  # so that the next one can be taken from the end
    return f"<math>{_row(parts)}</math>"


def _row(parts: list[str]) -> str:
    shown = ""
    while parts and parts[-1] != "}":
        shown += _with_indices(parts)
    return shown


def _with_indices(parts: list[str]) -> str:
    base = _one(parts)
    indices: dict[str, str] = {}
    while parts and parts[-1] in ("_", "^"):
        sign = parts.pop()
        indices[sign] = _one(parts)
    tag = {"_": "msub", "^": "msup"}.get("".join(indices), "msubsup")
    return f"<{tag}>{base}{''.join(indices[one] for one in '_^' if one in indices)}</{tag}>" if indices else base


def _one(parts: list[str]) -> str:
    part = parts.pop()
    if part == "{":
        inside = _row(parts)
        parts.pop()
        return f"<mrow>{inside}</mrow>"
    if part == "\\frac":
        return f"<mfrac>{_one(parts)}{_one(parts)}</mfrac>"
    if part == "\\mathrm":  # a word
        return f"<mi>{re.sub(r'<[^>]+>', '', _one(parts))}</mi>"
    if part == "\\log":
        return '<mi>log</mi><mspace width="0.17em"/>'
    if part.startswith("\\"):
        return f"<mi>{_LETTERS[part[1:]]}</mi>" if part[1:] in _LETTERS else f"<mo>{_SIGNS[part[1:]]}</mo>"
    tag = "mn" if part[0].isdigit() else "mi" if part.isalpha() else "mo"
    return f"<{tag}>{html.escape(part.replace('-', '−'))}</{tag}>"
