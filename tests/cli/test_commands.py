from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from glasshouse import InputError, write_evidence
from glasshouse.cli import app, main
from glasshouse.config import AuditFile, data_names
from glasshouse.graph.data.load import graph_names, load_graph
from tests.strategies import gaussian_evidence

SMALL = """
data: {name: digits}
trainer: {kind: mlp, hidden: [64], epochs: 5}
attacks: [base, lira, classifier]
shadows: 4
"""
FOREST = """
data: {name: digits}
trainer: {kind: sklearn, estimator: RandomForestClassifier, parameters: {n_estimators: 5}}
attacks: [base, lira, classifier]
shadows: 4
"""


def glasshouse(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command in this process, which has imported everything already."""
    out, err, given = io.StringIO(), io.StringIO(), sys.argv
    sys.argv, code = ["glasshouse", *map(str, arguments)], 0
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.dict("glasshouse.core.progress._BEGUN", clear=True),  # what earlier tests began
        ):
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = given
    return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), err.getvalue())


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    made, members = gaussian_evidence(records=1000, models=8, shift=2.0, seed=0)
    return write_evidence(tmp_path / "evidence.npz", made, members=members)


def test_an_audit_file_gives_a_table_and_a_report_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(SMALL)
    done = glasshouse("audit", "audit.yaml", "--out", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "labels were made wrong on purpose" in done.stdout
    assert " exposure. " in done.stdout, "the verdict comes first"
    assert str(tmp_path / "run" / "report.html") in done.stdout
    assert (tmp_path / "run" / "report.html").exists()
    again = glasshouse("audit", "audit.yaml", "--out", "run", folder=tmp_path)
    assert again.returncode == 2
    assert "already holds something" in again.stderr


def test_a_pool_is_kept_found_again_and_refused_for_other_data(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(FOREST)
    for run, workers in (("first", "2"), ("second", "1")):
        done = glasshouse(
            "audit", "audit.yaml", "--out", run, "--pool", "pool", "--workers", workers, "--json", folder=tmp_path
        )
        assert done.returncode == 0, done.stderr
    metrics = [(tmp_path / run / "metrics.json").read_bytes() for run in ("first", "second")]
    assert metrics[0] == metrics[1]
    other = glasshouse("audit", "audit.yaml", "--out", "third", "--pool", "pool", "--seed", "1", folder=tmp_path)
    assert other.returncode == 2
    assert "seed: the pool was made with 0, not 1" in other.stderr


def test_scoring_saved_evidence_prints_json_for_machines(evidence: Path) -> None:
    done = glasshouse("score", evidence, "--json", "--fpr", "0.01", "--epsilon", "0.1", folder=evidence.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["attacks"]["base"]["auc"] > 0.7
    assert found["privacy"]["contradicted"] is True
    assert done.stderr == ""


def test_scoring_can_keep_a_run_and_choose_attacks(evidence: Path) -> None:
    done = glasshouse(
        "score", evidence, "-a", "base", "-a", "attack-r", "--mode", "offline", "--out", "run", folder=evidence.parent
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads((evidence.parent / "run" / "metrics.json").read_text())
    assert list(metrics["attacks"]) == ["base", "attack-r"]
    assert metrics["mode"] == "offline"


def test_the_best_attack_is_picked_and_said(evidence: Path) -> None:
    done = glasshouse("score", evidence, "-a", "best", "--json", folder=evidence.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["attacks"]) == ["best"]
    assert found["notes"][-1].startswith("best picked ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "none.yaml"], "none.yaml: there is no such file"),
        (["audit", "bad.yaml"], "bad.yaml: shadows: 7 is odd"),
        (
            ["audit", "rates.yaml"],
            "rates.yaml: fprs: with 899 non-members a false-positive rate of 0.001 is not measurable",
        ),
        (["score", "none.npz"], "none.npz: there is no such file"),
        (["score", "evil.pkl"], "evil.pkl: looks like a pickle"),
        (["score", "nan.npz"], "nan.npz: target_loss: NaN or infinite for 1 of "),
        (["score", "evidence.npz", "--mode", "sideways"], '"sideways" is not a mode'),
        (["score", "evidence.npz", "-a", "classifier"], "the evidence holds only losses"),
        (["score", "evidence.npz", "--fpr", "0.0001"], "is not measurable"),
        (["score", "evidence.npz", "-a", "rmai"], 'Did you mean "rmia"?'),
    ],
)
def test_bad_input_is_a_clear_line_and_exit_code_two(evidence: Path, arguments: list[str], message: str) -> None:
    folder = evidence.parent
    (folder / "bad.yaml").write_text("shadows: 7\nmod: online\n")
    (folder / "rates.yaml").write_text("data: {name: digits}\nfprs: [0.001]\n")
    (folder / "evil.pkl").write_bytes(b"\x80\x04N.")
    loss = np.ones(8)
    loss[3] = np.nan
    np.savez(folder / "nan.npz", target_loss=loss, shadow_loss=np.ones((2, 8)), shadow_members=np.eye(2, 8))
    before = sorted(folder.iterdir())
    done = glasshouse(*arguments, "--out", "run", folder=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "nothing was run" in done.stderr
    assert sorted(folder.iterdir()) == before


def test_names_are_listed(tmp_path: Path) -> None:
    listed = glasshouse("attacks", folder=tmp_path).stdout
    names = [line for line in listed.splitlines() if line and not line.startswith(" ")]
    assert {"rmia", "regressed", "best"} <= set(names)
    on_edges = {"g-edge", "edge-posteriors", "edge-features", "edge-influence"}
    assert {"g-base", "g-base-tempered", "g-stacked", "g-regressed", "g-classifier", *on_edges} == set(names[-9:])
    assert "loss\n    The negative loss of the target; it asks no shadow model.\n    Needs no shadow model." in listed
    assert glasshouse("--help", folder=tmp_path).returncode == 0


def test_the_listed_data_sets_are_those_that_files_accept(tmp_path: Path) -> None:
    """Item 14 of issue 15: CIFAR was listed and refused, and no graph was listed."""
    records, _, graphs = CliRunner().invoke(app, ["datasets"]).output.partition("graph: {name: …}")
    listed = [line.split()[0] for line in records.splitlines() if line.startswith("  ")]
    assert listed == list(data_names())
    needs = {"file": {"path": "people.csv"}, "python": {"factory": "mine:people"}}
    for name in listed:
        AuditFile.model_validate({"data": {"name": name, **needs.get(name, {})}})
    with pytest.raises(ValidationError):
        AuditFile.model_validate({"data": {"name": "cora"}})
    assert [line.strip() for line in graphs.splitlines()[1:-1]] == graph_names()
    for name in [*graph_names()[1:], "torch_geometric:WikiCS"]:  # known, so that only its files are missing
        with pytest.raises(InputError, match="there is no such file"):
            load_graph(name, root=tmp_path)


@pytest.mark.parametrize("command", ["attacks", "datasets"])
def test_without_the_graph_extra_the_listings_say_what_is_missing(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.cli.doctor.find_spec", lambda _: None)
    done = CliRunner().invoke(app, [command])
    assert done.exit_code == 0
    assert "pip install 'glasshouse[graph]'" in done.output


def test_reproduce_finds_the_experiments_of_a_source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = [place for place in sys.path if not (Path(place) / "glasshouse_experiments").is_dir()]
    monkeypatch.setattr(sys, "path", elsewhere)
    with pytest.raises(InputError, match='"table-2" is not an experiment. Did you mean "table-1"'):
        CliRunner().invoke(app, ["reproduce", "table-2"], catch_exceptions=False)
    assert sys.path[0] == str(Path(__file__).parents[2] / "experiments")


def test_reproduce_without_the_experiments_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "glasshouse.cli.research.__file__", str(tmp_path / "lib" / "glasshouse" / "cli" / "research.py")
    )
    monkeypatch.setattr("glasshouse.cli.research.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"not part of the installed package.*pip install \./experiments"):
        CliRunner().invoke(app, ["reproduce", "table-1"], catch_exceptions=False)


def test_an_audit_takes_attacks_in_place_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(SMALL)
    done = glasshouse(
        "audit", "audit.yaml", "-a", "loss", "--attack", "base", "--out", "run", "--json", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["attacks"]) == ["loss", "base"]


def test_an_attack_that_does_not_fit_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "audit.yaml").write_text(SMALL)
    done = glasshouse("audit", "audit.yaml", "-a", "rmai", "-a", "g-stacked", folder=tmp_path)
    assert done.returncode == 2
    assert '--attack: "rmai" is not an attack. Did you mean "rmia"?' in done.stderr
    assert '--attack: "g-stacked" needs a graph, and this audit is of records.' in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_saved_run_is_reported_again_where_asked(evidence: Path) -> None:
    folder = evidence.parent
    assert glasshouse("score", evidence, "--out", "run", folder=folder).returncode == 0
    done = glasshouse("report", "run", "--out", "again.html", folder=folder)
    assert done.returncode == 0, done.stderr
    assert str(folder / "again.html") in done.stdout
    assert "the strongest of 4 attacks on simulated targets" in (folder / "again.html").read_text()
    (folder / "run" / "metrics.json").write_text("{")
    broken = glasshouse("report", "run", "--out", "never.html", folder=folder)
    assert broken.returncode == 2
    assert broken.stderr.splitlines()[0].startswith("run/metrics.json: was damaged or edited after the audit wrote it")
    assert not (folder / "never.html").exists()


def test_runs_are_compared_by_the_names_of_their_folders(evidence: Path) -> None:
    folder = evidence.parent
    for name, attack in (("before", "lira"), ("after", "loss")):
        done = glasshouse("score", evidence, "-a", attack, "-a", "base", "--out", f"runs/{name}", folder=folder)
        assert done.returncode == 0, done.stderr
    done = glasshouse("compare", "runs/before", "runs/after", "--out", "compare.html", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "The compared attack is base: the only one that all runs have." in done.stdout
    assert "of the members of before and" in done.stdout
    assert "Comparison of audits" in (folder / "compare.html").read_text()
    twice = glasshouse("compare", "runs/before", "runs/before", folder=folder)
    assert twice.returncode == 2
    assert "given twice" in twice.stderr
    lost = glasshouse("compare", "runs/before", "runs/none", folder=folder)
    assert "runs/none: there is no such run folder" in lost.stderr
