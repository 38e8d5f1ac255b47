from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import griffe

import glasshouse

SOURCE = Path(__file__).parents[2] / "src"
offline = importlib.import_module("docs.scripts.offline")
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


def test_formulas_of_pages_are_drawn_by_browsers_alone() -> None:
    assert offline.mathml(r"\frac1K e^{-\ell}") == (
        "<math><mfrac><mn>1</mn><mi>K</mi></mfrac><msup><mi>e</mi><mrow><mo>−</mo><mi>ℓ</mi></mrow></msup></math>"
    )
    assert "<msubsup><mi>σ</mi><mrow><mi>in</mi></mrow><mn>2</mn></msubsup>" in offline.mathml(
        r"N(h; \mu, \sigma_{\mathrm{in}}^2)"
    )
    page = offline.on_page_content('<p><span class="arithmatex">\\(a &lt; b\\)</span></p>')
    assert page == "<p><math><mi>a</mi><mo>&lt;</mo><mi>b</mi></math></p>"


def test_only_the_heading_of_a_section_is_renamed() -> None:
    text = "Example: this.\n\nExample:\n    >>> 1\n"
    assert docstrings.as_examples(text) == "Example: this.\n\nExamples:\n    >>> 1\n"


def test_the_manual_says_what_every_option_of_a_call_means() -> None:
    """Griffe reads files, and the text of options is added to a call when it is imported."""
    extensions = griffe.load_extensions(docstrings.Docstrings)
    shown = griffe.load("glasshouse.auditing.call", search_paths=[SOURCE], extensions=extensions)["audit"].docstring
    for name in inspect.signature(glasshouse.audit).parameters:
        assert f"\n    {name}: " in shown.value, name
