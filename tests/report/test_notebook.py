from __future__ import annotations

import builtins
import re
from typing import Any

import numpy as np
import pytest

from glasshouse import AuditResult, Evidence, InputError, audit_evidence
from glasshouse.core.table import Table
from glasshouse.report import compare
from tests.strategies import gaussian_evidence


@pytest.fixture(scope="module")
def result() -> AuditResult:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=[f"<b>{i}</b>" for i in range(400)],
    )
    return audit_evidence(named, members=members, attacks=["base", "lira"], title="<i>Mine</i>")


def test_a_notebook_shows_rating_picture_curves_and_records_and_escapes_what_comes_from_outside(
    result: AuditResult,
) -> None:
    page = result._repr_html_()
    assert "High exposure." in page
    assert page.count("<svg") == 2, "people and ROC"
    assert page.count("<tr>") == 1 + 2 + 1 + 5, "attacks and records, each below a head"
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<script" not in page
    rules = re.findall(r"^([^@{}\n][^{}\n]*)\{", page, flags=re.MULTILINE)
    assert all(".glasshouse" in rule for rule in rules), "no rule reaches the rest of the notebook"


def test_a_null_shows_no_records() -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=0.0, seed=0)
    page = audit_evidence(evidence, members=members, attacks=["base"])._repr_html_()
    assert "No leak shown." in page
    assert "Records most at risk" not in page


def test_tables_and_comparisons_are_tables_too(result: AuditResult) -> None:
    shown = Table({"a<b": ["<x>", "y"], "n": [0.5, 1.0]})._repr_html_()
    assert "<th>a&lt;b</th>" in shown
    assert "<td>&lt;x&gt;</td><td>0.500</td>" in shown
    assert "100 rows, of which 60 are shown." in Table({"n": np.arange(100)})._repr_html_()
    page = compare({"before": result, "<after>": result})._repr_html_()
    assert page.count("<tr>") == 3
    assert "&lt;after&gt;" in page


def test_the_curves_as_a_figure_of_matplotlib(result: AuditResult, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    (axes,) = result.plot().axes
    assert [line.get_label() for line in axes.lines] == ["base", "lira", "chance"]
    curve = result.summary().attack("base").metrics
    assert curve is not None
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), curve.curve.fpr)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), curve.curve.tpr)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    real = builtins.__import__

    def without(name: str, *given: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="pip install matplotlib"):
        result.plot()
