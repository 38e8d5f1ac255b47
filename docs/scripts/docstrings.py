"""For the manual's build: what Griffe does not read in our docstrings is put into a form that it does.

``Example:`` would be shown as a quote, and a formula as its LaTeX; a browser needs a library from elsewhere to draw it.
Griffe reads files, so it does not see what the decorator `documented` adds.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from typing import Any

from griffe import Extension, Function, Object

__all__ = ["Docstrings", "as_examples", "formula"]

_SECTION = re.compile(r"^(\s*)Example:$", flags=re.MULTILINE)
_FORMULA = re.compile(r":math:`([^`]*)`")
_PARTS = re.compile(r"\\[A-Za-z]+|\\.|[_^{}]|\s+|[^\\_^{}\s]")
_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "pi": "π"}
_LETTERS = _GREEK | {"sigma": "σ", "tau": "τ", "theta": "θ", "Phi": "Φ", "ell": "ℓ", "log": "log ", "Pr": "Pr"}
_SIGNS = _LETTERS | {"ge": "≥", "le": "≤", "ne": "≠", "sim": "~", "mid": "|", "sum": "Σ", ",": " ", "|": "‖"}


class Docstrings(Extension):
    """Changes the text of every docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Complete the text of a call, rename the section of examples, and write formulas out."""
        if obj.docstring is not None:
            if isinstance(obj, Function) and any(str(one.value) == "documented" for one in obj.decorators):
                call = getattr(importlib.import_module(obj.module.path), obj.name)
                obj.docstring.value = inspect.getdoc(call) or ""
            text = as_examples(obj.docstring.value)
            obj.docstring.value = _FORMULA.sub(lambda found: f"<span>{formula(found[1])}</span>", text)


def as_examples(docstring: str) -> str:
    r"""A docstring whose examples are a section that Griffe knows.

    Example:
        >>> as_examples("One.\n\nExample:\n    >>> 1\n    1")
        'One.\n\nExamples:\n    >>> 1\n    1'
    """
    return _SECTION.sub(r"\1Examples:", docstring)


def formula(latex: str) -> str:
    r"""A formula in the few commands that our docstrings use, as HTML with letters, indices and exponents.

    Example:
        >>> formula(r"\log \frac1K \sum_k e^{-\ell_k}")
        'log 1/K Σ<sub>k</sub> e<sup>−ℓ<sub>k</sub></sup>'
        >>> formula(r"\log\frac{\lambda}{1-\lambda}")
        'log λ/(1−λ)'
    """
    parts = _PARTS.findall(latex)
    parts.reverse()  # so that the next one can be taken from the end
    return re.sub(r" +", " ", _row(parts)).strip()


def _row(parts: list[str]) -> str:
    shown = ""
    while parts and parts[-1] != "}":
        shown += _one(parts)
    return shown


def _one(parts: list[str]) -> str:
    part = parts.pop()
    if part == "{":
        inside = _row(parts)
        parts.pop()
        return inside
    if part in "_^":
        tag = "sub" if part == "_" else "sup"
        return f"<{tag}>{_argument(parts)}</{tag}>"
    if part == "\\frac":
        above, below = _argument(parts), _argument(parts)
        return f"{_together(above)}/{_together(below)} "
    if part == "\\sqrt":
        return f"√({_argument(parts)})"
    if part == "\\tilde":
        return _argument(parts) + "\u0303"
    if part.startswith("\\"):
        return _SIGNS[part[1:]]
    return " " if part.isspace() else html.escape(part.replace("-", "−"))


def _argument(parts: list[str]) -> str:
    while parts and parts[-1].isspace():
        parts.pop()
    return _one(parts).strip()


def _together(text: str) -> str:
    """In brackets, if it is a sum."""
    return f"({text})" if re.search(r"[+−]", text) else text
