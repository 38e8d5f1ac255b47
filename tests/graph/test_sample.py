"""An audit of a sample of the nodes, from the call, from an audit file and from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from glasshouse.auditing.result import AuditResult
from glasshouse.cli import app
from glasshouse.config import AuditFile, read_audit_file, with_options
from glasshouse.core.errors import InputError
from glasshouse.graph import GNNTrainer, audit, citation_graph, scene
from glasshouse.graph.data.audited import sample_nodes
from glasshouse.graph.rule.question import Question, Toggles
from glasshouse.graph.rule.toggling import answer_question
from glasshouse.graph.training.trainer import adam
from glasshouse.report.run_folder import read_run

DATA = citation_graph(nodes=500, classes=3, seed=0)
TRAINER = GNNTrainer(hidden=8, dropout=0.0, epochs=30, optimizer=adam(0.03), device="cpu")


@pytest.fixture(scope="module")
def sampled() -> AuditResult:
    asked = []
    answer = answer_question

    def counted(models: Any, question: Question, **options: Any) -> Toggles:
        asked.append(len(question.nodes))
        return answer(models, question, **options)

    with patch.object(scene, "answer_question", counted):
        found = audit(DATA, trainer=TRAINER, attacks=["base", "g-base"], shadows=4, nodes=120, seed=3)
    assert asked == [120] * 6, "the target, also in the place of one, and four simulated ones: sampled nodes alone"
    return found


def test_figures_are_those_of_the_sample_with_intervals_for_the_whole_graph(sampled: AuditResult) -> None:
    drawn = sample_nodes(DATA, 120, seed=3)
    assert sampled.evidence.ids.tolist() == drawn.nodes.astype(str).tolist()
    whole = sampled.outcomes["g-base-mia"].sampling_intervals
    assert whole is not None
    assert (whole.audited, whole.records) == (120, 500)
    row = sampled.table()
    assert (row["auc_whole_low"] > row["auc_low"]).all(), "a fifth of the nodes are known"
    assert (row["auc_whole_high"] < row["auc_high"]).all()
    assert whole.auc == pytest.approx(row["auc"][1])


def test_a_report_says_from_how_many_nodes_it_is_estimated(sampled: AuditResult, tmp_path: Path) -> None:
    folder = sampled.save(tmp_path / "run")
    page = (folder / "report.html").read_text()
    assert "estimated from a sample of 120 of 500 nodes" in page
    assert re.search(r"Estimated for all 500 records, from a sample of 120", page)
    kept = json.loads((folder / "metrics.json").read_text())["attacks"]["base"]["whole"]
    assert (kept["audited"], kept["records"]) == (120, 500)
    again = read_run(folder).attack("base").whole
    assert again is not None
    assert again == sampled.summary().attack("base").whole


def test_an_audit_of_all_nodes_estimates_nothing() -> None:
    found = audit(DATA, trainer=TRAINER, attacks=["base"], shadows=2, nodes=5000)
    assert found.outcomes["base"].sampling_intervals is None
    assert len(found.evidence.ids) == 500
    assert not any("sample" in note for note in found.context.notes)


def test_the_command_line_and_an_audit_file_ask_for_a_sample(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text(
        "graph: {name: synthetic, nodes: 300, network: {hidden: 4, epochs: 2}}\nattacks: [base]\nshadows: 2\n"
    )
    assert read_audit_file(file).graph.nodes == 300  # type: ignore[union-attr]
    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["audit", str(file), "--nodes", "200", "--out", str(out), "-q", "-v"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "a sample of 200 of 2000 nodes" in said
    assert "Estimated from a sample of 200 of 2 000 records: over all of them base has AUC" in said


@pytest.mark.parametrize(("text", "nodes"), [("[3, 5]", [3, 5]), ("['a', 'b']", ["a", "b"]), ("7", 7)])
def test_an_audit_file_may_name_the_nodes(tmp_path: Path, text: str, nodes: object) -> None:
    (tmp_path / "audit.yaml").write_text(f"graph: {{nodes: {text}}}\n")
    assert read_audit_file(tmp_path / "audit.yaml").graph.nodes == nodes  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["0", "[]", "[1.5]", "-3"])
def test_an_audit_file_with_senseless_nodes_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "audit.yaml").write_text(f"graph: {{nodes: {text}}}\n")
    with pytest.raises(InputError, match="nodes"):
        read_audit_file(tmp_path / "audit.yaml")


def test_a_sample_of_nodes_is_refused_for_records_and_below_one() -> None:
    with pytest.raises(InputError, match="is of records"):
        with_options(AuditFile.model_validate({"data": {"name": "digits"}}), nodes=10)
    done = CliRunner().invoke(app, ["audit", "--nodes", "0"])
    assert done.exit_code == 2
    assert "--nodes" in done.stderr
