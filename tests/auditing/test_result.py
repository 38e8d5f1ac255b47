from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from glasshouse import AuditResult, Evaluation, InputError, audit_evidence, read_evidence
from glasshouse.auditing.track import membership_figures
from glasshouse.evaluation import tpr_at_fpr
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.policy import Limit, Policy, judge
from tests.strategies import PAPER, gaussian_evidence


@pytest.fixture(scope="module")
def result() -> AuditResult:
    evidence, members = gaussian_evidence(records=1000, models=8, shift=2.0, seed=0)
    return audit_evidence(evidence, attacks=PAPER, members=members, evaluation=Evaluation(fprs=[0.01, 0.05]))


def test_the_table_has_a_row_for_each_attack_with_intervals(result: AuditResult) -> None:
    table = result.table()
    assert table["attack"].tolist() == ["base", "lira", "rmia"]
    assert ((table["tpr@0.01_low"] <= table["tpr@0.01"]) & (table["tpr@0.01"] <= table["tpr@0.01_high"])).all()
    assert (table["auc_low"] < table["auc"]).all()
    assert "threshold@0.05" in table
    assert str(table).startswith("attack")


def test_what_a_result_holds_is_shown_in_a_few_lines(result: AuditResult) -> None:
    assert len(repr(result.verdict_attack)) < 1500, "without the whole ROC"
    assert all(len(repr(outcome)) < 200 for outcome in result.outcomes.values()), "without scores"


def test_records_have_a_row_each_with_score_decision_and_rank(result: AuditResult) -> None:
    records = result.records()
    assert records.height == 1000
    assert list(records)[:2] == ["id", "member"]
    best = records.sorted_by("lira_rank").head(1)
    assert best["lira_score"][0] == records["lira_score"].max()
    cut = result.outcomes["base"].thresholds[0].value
    assert (records["base_decision"] == (records["base_flag_score"] >= cut)).all()
    assert (records["base_flag_score"] != records["base_score"]).any()


def test_saving_writes_every_file_and_what_they_say_agrees(result: AuditResult, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "run")
    names = ["evidence.npz", "metrics.json", "records.csv", "records.parquet", "report.html", "roc.csv", "roc.svg"]
    names += ["run.json", "table.tex"]
    assert sorted(path.name for path in folder.iterdir()) == names
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["attacks"]["base"]["auc"] == result.table()["auc"][0]
    with (folder / "records.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[3]["rmia_score"]) == result.outcomes["rmia"].scores[3]
    saved = read_evidence(folder / "evidence.npz")
    assert saved.members is not None
    again = audit_evidence(
        saved.evidence, attacks=PAPER, members=saved.members, evaluation=Evaluation(fprs=[0.01, 0.05])
    )
    assert (again.outcomes["lira"].scores == result.outcomes["lira"].scores).all()
    with pytest.raises(InputError, match="already holds something"):
        result.save(folder)


def test_the_roc_table_holds_every_point(result: AuditResult) -> None:
    table = result.roc()
    mine = table["attack"] == "base"
    metrics = result.outcomes["base"].metrics
    assert metrics is not None
    assert (table["fpr"][mine] == metrics.curve.fpr).all()
    assert np.isinf(table["threshold"][mine][0])


def test_a_report_is_one_file(result: AuditResult, tmp_path: Path) -> None:
    path = result.report(tmp_path / "deep" / "report.html")
    assert path.read_text().startswith("<!doctype html>")


def test_printing_a_result_shows_what_the_command_line_shows_and_no_array(result: AuditResult) -> None:
    text, short = str(result), repr(result)
    assert " ".join(rating_of(result.summary()).sentences[0].split()) in " ".join(text.split())
    assert all(name in text for name in result.outcomes)
    assert max(map(len, text.splitlines())) <= 80
    assert "array(" not in text
    assert short == f"AuditResult({len(result.evidence.ids)} records, attacks: {', '.join(result.outcomes)})"


def test_table_page_terminal_gate_and_mlflow_show_the_same_tpr(tmp_path: Path) -> None:
    """With one allowed false positive the sample's own rate is too high; nobody shows it as the figure."""
    evidence, members = gaussian_evidence(records=300, models=8, shift=0.5, seed=3)
    found = audit_evidence(evidence, attacks=["base"], members=members, evaluation=Evaluation(fprs=[0.01]))
    metrics = found.outcomes["base"].metrics
    assert metrics is not None
    rate = metrics.rates[0]
    assert rate.allowed == 1
    assert rate.estimate != rate.tpr == tpr_at_fpr(found.outcomes["base"].scores, members, 0.01)
    assert found.table()["tpr@0.01"].tolist() == [rate.estimate]
    assert membership_figures(found.outcomes["base"].scores, members, fprs=[0.01])["tpr_at_0.01"] == rate.estimate
    said = f"{100 * rate.estimate:.1f} %"
    assert f"base identifies {said} of 150 members" in found.summary().verdict
    assert said in str(found)
    assert said in found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    limit = Limit(figure="tpr", at_fpr=0.01, most=0.5)
    (finding,) = judge(found.summary(), Policy(limits=(limit,))).findings
    assert f"base {said}, interval" in finding.reason
