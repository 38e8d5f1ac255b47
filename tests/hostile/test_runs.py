"""Run folders from strangers: their list of files fits, and what is in the files does not."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glasshouse import InputError
from glasshouse.cli import main
from glasshouse.report import read_run
from tests.hostile.files import listed_again, saved_run

Figures = dict[str, Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


def at(*path: str | int, value: Any) -> Callable[[Figures], None]:
    def change(figures: Figures) -> None:
        place: Any = figures
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return change


BASE = ("attacks", "base")
NO_LISTS: Figures = {"fpr": [], "tpr": [], "low": [], "high": []}
FAULTS: dict[str, tuple[Callable[[Figures], None], str]] = {
    "a short curve": (at(*BASE, "curve", "tpr", value=[0.5]), "the lists of Curve do not fit"),
    "no curve": (at(*BASE, "curve", value={"members": 20, "non_members": 20} | NO_LISTS), "the lists of Curve do not"),
    "a short histogram": (at(*BASE, "histogram", "members", value=[1]), "the lists of Histogram do not fit"),
    "no edges": (at(*BASE, "histogram", "edges", value=[]), "the lists of Histogram do not fit"),
    "an AUC of 7": (at(*BASE, "auc", value=7.0), "auc is 7.0, which is not between 0 and 1"),
    "an AUC that is missing": (at(*BASE, "auc", value=None), "metrics.json: is damaged"),
    "an interval upside down": (at(*BASE, "auc_interval", value=[0.9, 0.1]), "auc_interval is from 0.9 to 0.1"),
    "a negative count": (at("records", value=-40), "which is not a count"),
    "a huge count": (at("records", value=10**300), "which is not a count"),
    "more members than records": (at("members", value=41), "of 40 records 41 are members"),
    "an unknown strongest attack": (at("strongest", value="none"), "it does not name a strongest attack"),
    "an unknown headline": (at("headline", "attack", value="none"), "it has no attack 'none'"),
    "records that are not rows": (at("top_records", value=[1, 2]), "metrics.json: is damaged"),
    "a list in a cell": (at("top_records", value=[{"id": [1, [2]]}]), "metrics.json: is damaged"),
    "a group of nobody": (
        at("worst_cell", value={"parts": [["a", "b"]], "members": -1, "non_members": 0, "identified": 2}),
        "metrics.json: is damaged",
    ),
    "attacks as a list": (at("attacks", value=[]), "metrics.json: is damaged"),
    "no attacks": (at("attacks", value={}), "metrics.json: is damaged"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_figures_that_no_audit_gives_are_one_line(name: str, copy: Path) -> None:
    change, message = FAULTS[name]
    figures = json.loads((copy / "metrics.json").read_text())
    change(figures)
    (copy / "metrics.json").write_text(json.dumps(figures))
    with pytest.raises(InputError, match=message) as caught:
        read_run(listed_again(copy))
    assert all(fault.startswith(str(copy)) for fault in caught.value.faults)


TEXTS = {
    "NaN": ('"auc": NaN', "NaN is not a number"),
    "infinite": ('"auc": 1e999', "'1e999' is too large"),
    "twice": ('"auc": 0.5, "auc": 0.6', "'auc' is there twice"),
    "5000 digits": ('"auc": ' + "1" * 5000, "a number has 5000 digits"),
    "5000 levels": ('"auc": ' + "[" * 5000 + "]" * 5000, "nested too deeply"),
    "300 levels": ('"auc": ' + "[" * 300 + "]" * 300, "nested too deeply"),
    "not UTF-8": ('"auc": "\udcff"', "metrics.json: is damaged"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_json_that_is_no_plain_data_is_one_line(name: str, copy: Path) -> None:
    text, message = TEXTS[name]
    figures = (copy / "metrics.json").read_text()
    start = figures.index('"auc":')
    hostile = figures[:start] + text + figures[figures.index(",", start) :]
    (copy / "metrics.json").write_bytes(hostile.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=message):
        read_run(listed_again(copy))


def test_folders_and_overlong_names_where_files_should_be_are_one_line(copy: Path) -> None:
    told = json.loads((copy / "run.json").read_text())
    told.pop("run_sha256", None)
    (copy / "run.json").write_text(json.dumps(told | {"files": told["files"] | {"x" * 5000: {"sha256": "0"}}}))
    with pytest.raises(InputError, match="it lists 'xxx.*5000 characters"):
        read_run(copy)
    (copy / "run.json").write_text(json.dumps(told | {"files": told["files"] | {"𝄞" * 100: {"sha256": "0"}}}))
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        read_run(copy)
    (copy / "run.json").unlink()
    (copy / "run.json").mkdir()
    with pytest.raises(InputError, match="run.json: is a folder"):
        read_run(copy)
    with pytest.raises(InputError, match="File name too long"):
        read_run(copy / ("x" * 5000))


RECORDS = {
    "nothing": "",
    "no rows": "id\n",
    "a short row": "a,b\n1\n",
    "NaN scores": "id,member,base_score\n" + "r,True,nan\n" * 40,
    "a column twice": "id,id\n" + "r,r\n" * 40,
    "a zero": "\0",
    "not UTF-8": "\udcff",
}


@pytest.mark.parametrize("text", RECORDS.values(), ids=RECORDS)
def test_records_that_do_not_fit_are_one_line(text: str, copy: Path) -> None:
    from glasshouse.report import read_run_with_records

    (copy / "records.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"records\.csv"):
        read_run_with_records(listed_again(copy))


def test_a_long_id_in_the_records_is_one_line(copy: Path) -> None:
    from glasshouse.report import read_run_with_records

    lines = (copy / "records.csv").read_text().splitlines()
    lines[1] = "x" * 100_000 + lines[1]
    (copy / "records.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match="the id of record 0 has 10000. characters"):
        read_run_with_records(listed_again(copy))


DATES = ("never", "9999-12-31T23:59:59-23:59", 7, "0001-01-01T00:00:00+23:00")


@pytest.mark.parametrize("written", DATES)
def test_a_date_that_cannot_be_is_one_line(written: Any, copy: Path) -> None:
    told = json.loads((copy / "run.json").read_text())
    told.pop("run_sha256", None)
    (copy / "run.json").write_text(json.dumps(told | {"written": written}))
    with pytest.raises(InputError, match="written: is damaged, or is not a date"):
        read_run(copy)


def test_the_limit_on_memory_is_raised_by_an_option(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("glasshouse.core.progress._BEGUN", {})

    def called(*arguments: str) -> tuple[Any, str]:
        monkeypatch.setattr(sys, "argv", ["glasshouse", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, capsys.readouterr().err

    code, told = called("report", str(copy), "--memory", "1KiB")
    assert code == 2
    assert "and the limit is 1.0 KiB. If that is right, raise the limit: --memory" in told
    assert called("report", str(copy), "--memory", "a lot") == (
        2,
        "--memory: 'a lot' is not a size; write it like 8GiB or 500MiB.\n1 problem, nothing was run.\n",
    )
    assert called("report", str(copy), "--memory", "2GiB")[0] == 0
    assert called("report", str(copy))[0] == 0  # a limit ends with its command
