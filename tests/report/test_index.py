from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import pytest
from typer.testing import CliRunner

from glasshouse import AuditResult, InputError, audit_evidence
from glasshouse.cli import app
from glasshouse.report.index import index_runs
from tests.strategies import gaussian_evidence


def made(title: str, *, shift: float, fingerprint: str | None = "same") -> AuditResult:
    evidence, members = gaussian_evidence(records=2000, models=8, shift=shift, seed=0)
    result = audit_evidence(evidence, members=members, attacks=["base"], title=title)
    context = dataclasses.replace(result.context, fingerprint=fingerprint)
    return dataclasses.replace(result, context=context)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same data, one on other data, and one that was damaged."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        for day, (name, result) in enumerate(
            {
                "2026/before <b>": made("Before", shift=8.0),
                "2026/after": made("<i>After</i>", shift=0.0),
                "other": made("Other", shift=8.0, fingerprint=None),
            }.items(),
            start=1,
        ):
            patch.setattr("glasshouse.auditing.result.datetime", _clock(day))
            result.save(place / name)
    made("Damaged", shift=0.0).save(place / "damaged")
    (place / "damaged" / "metrics.json").write_text("{}")
    return place


def _clock(day: int) -> type[datetime]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, day, tzinfo=tz or UTC)

    return Clock


def test_runs_are_listed_the_newest_first_and_compared_with_the_one_before_on_the_same_data(folder: Path) -> None:
    found = index_runs(folder)
    assert [run.place for run in found.runs] == ["other", "2026/after", "2026/before <b>"]
    other, after, before = found.runs
    assert before.change == other.change == "", "the first of its data"
    assert after.change.startswith(f"{before.rating.word} → No leak shown; ")
    assert " % → " in after.change
    assert "overlap" not in after.change, "200 of 1 000 and 10 of 1 000 are far apart"
    assert before.link == "2026/before%20%3Cb%3E/report.html"
    assert list(found.refused) == ["damaged"]
    assert "was damaged or edited" in found.refused["damaged"]


def test_the_command_writes_a_page_that_names_every_run_and_escapes_what_comes_from_outside(folder: Path) -> None:
    done = CliRunner().invoke(app, ["index", str(folder), "--title", "Audits of <us>"])
    assert done.exit_code == 0, done.output
    assert "2026-01-02 00:00" in done.output
    page = (folder / "index.html").read_text()
    assert "&lt;i&gt;After&lt;/i&gt;" in page
    assert "<b>" not in page
    assert "Audits of &lt;us&gt;" in page
    assert "Runs that could not be read" in page
    assert CliRunner().invoke(app, ["index", str(folder)]).exit_code == 0, "its own page is replaced"
    (folder / "index.html").write_text("mine")
    assert isinstance(CliRunner().invoke(app, ["index", str(folder)]).exception, InputError)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no run below it"):
        index_runs(tmp_path)
