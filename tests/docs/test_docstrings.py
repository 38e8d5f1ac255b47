from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import griffe

import glasshouse

SOURCE = Path(__file__).parents[2] / "src"
docstrings = importlib.import_module("docs.scripts.docstrings")
FORMULAS = sorted(
    {found for path in SOURCE.rglob("*.py") for found in re.findall(r":math:`([^`]*)`", path.read_text())}
)


def test_every_formula_of_a_docstring_can_be_written_out() -> None:
    assert len(FORMULAS) > 20
    for latex in FORMULAS:
        shown = docstrings.formula(latex)
        assert not re.search(r"[\\{}^_]", shown), shown
        assert shown.count("<sub>") == shown.count("</sub>")
        assert re.sub(r"\W", "", re.sub(r"</?su[bp]>", "", shown)), "nothing is left"


def test_formulas_are_read_as_a_person_writes_them() -> None:
    assert docstrings.formula(r"\sigma(-\ell - \alpha \log \frac1K \sum_k e^{-\ell_k})").replace(" ", "") == (
        "σ(−ℓ−αlog1/KΣ<sub>k</sub>e<sup>−ℓ<sub>k</sub></sup>)"
    )
    assert docstrings.formula(r"\tilde s \sqrt{1 + 1/n}") == "s\u0303 √(1 + 1/n)"
    assert docstrings.formula(r"p(z) \,\|\, p(z|\theta)") == "p(z) ‖ p(z|θ)"


def test_only_the_heading_of_a_section_is_renamed() -> None:
    text = "Example: this.\n\nExample:\n    >>> 1\n"
    assert docstrings.as_examples(text) == "Example: this.\n\nExamples:\n    >>> 1\n"


def test_the_manual_says_what_every_option_of_a_call_means() -> None:
    """Griffe reads files, and the text of options is added to a call when it is imported."""
    extensions = griffe.load_extensions(docstrings.Docstrings)
    shown = griffe.load("glasshouse.auditing.call", search_paths=[SOURCE], extensions=extensions)["audit"].docstring
    for name in inspect.signature(glasshouse.audit).parameters:
        assert f"\n    {name}: " in shown.value, name
