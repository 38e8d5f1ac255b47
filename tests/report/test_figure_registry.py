from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from glasshouse import AuditResult, Evaluation, InputError, audit_evidence
from glasshouse.auditing.track import logged_metrics
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation import AttackOutcome, Interval
from glasshouse.report import latex_table, read_run, render_html
from glasshouse.report.appendix import Appendix, render_appendix_markdown
from glasshouse.report.figures import FIGURES, Estimate, Figure, register_figure
from glasshouse.report.json_io import metrics_json
from glasshouse.report.policy import Limit, Policy, judge
from glasshouse.report.run_folder import listed
from tests.strategies import gaussian_evidence


def gini(outcome: AttackOutcome, members: BoolArray) -> Estimate:
    """Twice the AUC minus one, with a made-up interval."""
    inside, outside = outcome.scores[members], outcome.scores[~members]
    value = float(np.sign(inside[:, None] - outside).mean())
    return Estimate(value, Interval(value - 0.1, value + 0.1))


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> AuditResult:
    """An audit by a version that knows one figure more; the registry is as before afterwards."""
    before = dict(FIGURES)
    register_figure(Figure(name="gini", words="Gini", form=".2f", low=-1.0, high=1.0, measure=gini))
    added = FIGURES.pop("gini")
    monkeypatch.setitem(FIGURES, "gini", added)
    assert list(before) == [name for name in FIGURES if name != "gini"]
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    return audit_evidence(evidence, members=members, attacks=["base"], evaluation=Evaluation(fprs=[0.05]))


def test_a_figure_that_is_described_once_is_shown_everywhere(result: AuditResult, tmp_path: Path) -> None:
    summary = result.summary()
    table = result.table()
    assert table["gini"][0] == pytest.approx(2 * table["auc"][0] - 1)
    assert table["gini_low"][0] == table["gini"][0] - 0.1
    saved = json.loads((result.save(tmp_path / "run") / "metrics.json").read_text())["attacks"]["base"]
    assert (saved["gini"], saved["gini_interval"]) == (table["gini"][0], [table["gini_low"][0], table["gini_high"][0]])
    shown = f"{table['gini'][0]:.2f}"
    pages = (str(result), render_html(summary), latex_table(summary), render_appendix_markdown(Appendix(summary)))
    for page in pages:
        assert "Gini" in page
        assert f" {shown} " in page.replace(">", " ")
    assert logged_metrics(metrics_json(summary))["base/gini"] == table["gini"][0]
    limit = Limit(figure="gini", most=0.01)
    (found,) = judge(summary, Policy(limits=(limit,))).findings
    assert found.status == "failed"
    assert found.line.startswith(f"FAIL  Gini of the verdict attack at most 0.01: base {shown}, interval ")
    assert found.sentence.startswith("Limit exceeded: Gini of the verdict attack")
    again = read_run(tmp_path / "run").attack("base").metrics
    assert again == summary.attack("base").metrics


def rewrite(folder: Path, **gini: object) -> None:
    """Other figures of the attack, with digests that fit them; None takes one away."""
    metrics = json.loads((folder / "metrics.json").read_text())
    figures = metrics["attacks"]["base"] | gini
    taken = {name for name, value in gini.items() if value is None}
    metrics["attacks"]["base"] = {name: value for name, value in figures.items() if name not in taken}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    run = json.loads((folder / "run.json").read_text())
    del run["run_sha256"]
    (folder / "run.json").write_text(listed(run, folder))


@pytest.mark.parametrize("value", [1.5, -1.5])
def test_a_value_out_of_its_range_is_refused_with_file_and_field(
    result: AuditResult, tmp_path: Path, value: float
) -> None:
    folder = result.save(tmp_path / "run")
    rewrite(folder, gini=-0.5)
    measured = read_run(folder).attack("base").metrics
    assert measured is not None
    assert measured.figures["gini"].value == -0.5
    rewrite(folder, gini=value)
    with pytest.raises(InputError, match=rf"metrics.json: is damaged: gini is {value}, which is not between -1 and 1"):
        read_run(folder)


def test_a_run_of_a_version_without_the_figure_stays_readable(result: AuditResult, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "run")
    rewrite(folder, gini=None, gini_interval=None)
    summary = read_run(folder)
    assert "Gini" not in render_html(summary)
    (found,) = judge(summary, Policy(limits=(Limit(figure="gini", most=0.01),))).findings
    assert found.status == "unknown"


def test_an_unknown_figure_has_no_limit() -> None:
    with pytest.raises(InputError, match='figure: "gini" has no limit; use one of auc, epsilon, tpr'):
        Limit(figure="gini", most=0.5)
