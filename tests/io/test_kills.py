"""Killed before any call to the file system, a save leaves the earlier run or the new one; the next save tidies up."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse.io.files import check_page, found_run, new_folder, write_file
from glasshouse.report.run_folder import manifest
from tests.io.kills import killed_at
from tests.io.test_folders import fill


def save(run: Path, text: str) -> None:
    with new_folder(run, overwrite=True) as folder:
        for name in ("metrics.json", "roc.csv"):
            write_file(folder / name, text)
        fill(folder, **{"roc.csv": text})


def whole(run: Path) -> str:
    """What a complete run says; fails on anything that is no complete run."""
    run = found_run(run)
    assert sorted(path.name for path in run.iterdir()) == ["metrics.json", "report.html", "roc.csv", "run.json"]
    assert set(manifest(run)) == {"metrics.json", "report.html", "roc.csv"}
    return (run / "roc.csv").read_text()


@pytest.mark.parametrize("can_exchange", [True, False], ids=["names exchanged", "in two steps"])
def test_a_save_killed_at_any_call_loses_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr("glasshouse.io.files.exchange", lambda one, other: False)
    run = tmp_path / "run"
    save(run, "old")
    found = []
    for step in range(1, 500):
        if not killed_at(step, lambda: save(run, "new")):
            break
        found.append(whole(run))
        save(run, "old")
        assert [path.name for path in tmp_path.iterdir()] == ["run"], f"something is left of a kill at call {step}"
    else:
        pytest.fail("the save never ended")
    assert len(found) > 15
    assert found == sorted(found, reverse=True), "once the new run is there, the old one never comes back"
    assert set(found) == {"old", "new"}


def test_a_first_save_killed_at_any_call_leaves_a_whole_run_or_none(tmp_path: Path) -> None:
    step, run = 0, tmp_path / "runs" / "first"
    while killed_at(step := step + 1, lambda: save(run, "new")):
        assert not run.exists() or whole(run) == "new"
        save(tmp_path / "runs" / "other", "other")
        kept = {path.name for path in (tmp_path / "runs").iterdir()}
        assert kept <= {"first", "other"}, f"something is left of a kill at call {step}"
        if run.exists():
            break
    assert step > 10


def test_a_page_killed_at_any_call_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    page, step = tmp_path / "page.html", 0
    texts = [f"<title>{which} · Glasshouse</title>" for which in ("old", "new")]
    write_file(page, texts[0])
    while killed_at(step := step + 1, lambda: write_file(page, texts[1])):
        assert page.read_text() in texts
        check_page(page)
        assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert step > 2
    assert page.read_text() == texts[1]
