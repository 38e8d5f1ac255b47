from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import AuditResult, Evaluation, Evidence, InputError, PrivacyClaim, audit_evidence
from glasshouse.report import Surroundings, read_run, render_html
from glasshouse.report.run_folder import MOST_SEARCHED, searched_records
from tests.strategies import PAPER, gaussian_evidence


def made(**options: Any) -> AuditResult:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    usual = {"members": members, "attacks": PAPER, "evaluation": Evaluation(claim=PrivacyClaim(epsilon=1.0))}
    chosen: dict[str, Any] = usual | options
    return audit_evidence(evidence, **chosen)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made().save(tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.parametrize("options", [{}, {"members": None}, {"evaluation": Evaluation(fprs=[])}])
def test_a_saved_run_renders_to_the_same_page_again(options: dict[str, Any], tmp_path: Path) -> None:
    result = made(**options)
    timed = {name: dataclasses.replace(one, seconds=0.25) for name, one in result.outcomes.items()}  # kept to 0.1 ms
    folder = dataclasses.replace(result, outcomes=timed).save(tmp_path / "run")
    summary = read_run(folder)
    again = render_html(summary, searched=searched_records(folder, summary))
    assert again == (folder / "report.html").read_text()


def test_a_run_of_too_many_records_for_a_page_is_drawn_without_reading_them(run: Path) -> None:
    summary = read_run(run)
    found = searched_records(run, summary)
    assert found is not None
    assert found.height == 400
    assert searched_records("not read", dataclasses.replace(summary, records=MOST_SEARCHED + 1)) is None


def test_a_graphs_neighbourhoods_survive(tmp_path: Path) -> None:
    result = made(attacks=["base"])
    edges = np.stack([np.arange(399), np.arange(1, 400)])
    assert result.members is not None
    around = Surroundings(edges, members=result.members, labels=np.zeros(400), nodes=np.arange(400))
    result = dataclasses.replace(result, surroundings=around)
    assert result.records()["degree"].tolist() == [1, *[2] * 398, 1]
    read = read_run(result.save(tmp_path / "run"))
    assert read.neighbourhoods == result.summary().neighbourhoods
    assert read.neighbourhoods
    assert "neighbours: " in render_html(read)


def gone(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def cut(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-20])


def older(folder: Path) -> None:
    (folder / "run.json").write_text('{"format": 1, "title": "old"}')


def edited(folder: Path) -> None:
    """Somebody changed a figure and the list of files with it."""
    path = folder / "metrics.json"
    figures = json.loads(path.read_text())
    figures["attacks"]["base"]["auc"] = "<script>alert(1)</script>"
    path.write_text(json.dumps(figures))
    from glasshouse.report.run_folder import listed

    (folder / "run.json").write_text(listed(json.loads((folder / "run.json").read_text()), folder))


def outside(folder: Path) -> None:
    told = json.loads((folder / "run.json").read_text())
    told["files"]["../../secret"] = {"bytes": 1, "sha256": "0"}
    del told["run_sha256"]
    (folder / "run.json").write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (gone("run.json"), "run.json: is missing, so this is not a complete run"),
        (gone("metrics.json"), "metrics.json: is missing, so this is not a complete run"),
        (gone("records.csv"), "records.csv: is missing, so this is not a complete run"),
        (cut("run.json"), "run.json: is damaged"),
        (cut("roc.csv"), "roc.csv: was damaged or edited after the audit wrote it"),
        (cut("evidence.npz"), "evidence.npz: was damaged or edited after the audit wrote it"),
        (older, "run.json: has format 1, but this version reads format 6. Run the audit again"),
        (edited, "metrics.json: is damaged, or is not a run's figures"),
        (outside, "run.json: is damaged: it lists '../../secret'"),
        (
            lambda folder: (folder / "run.json").write_text("[]"),
            "run.json: is damaged: it does not hold keys",
        ),
        (lambda folder: (folder / "run.json").write_text('{"format": 6}'), "it does not list the run's files"),
    ],
)
def test_a_run_that_is_not_whole_gets_one_clear_line(
    run: Path, tmp_path: Path, harm: Callable[[Path], object], message: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(run, folder)
    harm(folder)
    with pytest.raises(InputError) as caught:
        read_run(folder)
    assert len(caught.value.faults) == 1
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder_and_a_file_in_its_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such run folder"):
        read_run(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; give the folder of a run"):
        read_run(tmp_path / "file")


def test_hostile_strings_of_a_saved_run_stay_text(tmp_path: Path) -> None:
    evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=[f"{evil}{number}" for number in range(400)],
    )
    result = audit_evidence(named, members=members, attacks=PAPER, title=evil)
    result = dataclasses.replace(result, labels=np.array([f"{evil}{number % 3}" for number in range(400)]))
    page = render_html(read_run(result.save(tmp_path / "run")))
    assert "<img" not in page
    assert page.count("<script") == 1
    assert "&lt;script&gt;alert(1)" in page
