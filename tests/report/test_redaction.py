from __future__ import annotations

import dataclasses
import os
import re
import stat
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from typer.testing import CliRunner

from glasshouse import AuditResult, Evaluation, Evidence, InputError, audit_evidence, read_evidence
from glasshouse.cli import app
from glasshouse.evidence import write_evidence
from glasshouse.io.files import sharing
from glasshouse.report import Surroundings, compare, read_run, read_run_with_records
from glasshouse.report.redaction import Redactor, key_beside, read_or_make_key
from tests.strategies import gaussian_evidence

COUNT = 400
NAMES = [f"patient-{number:04d}" for number in range(COUNT)]
KEY = Redactor(b"a key")


@pytest.fixture(scope="module")
def plain() -> AuditResult:
    """An audit whose ids are also in a note, in a column of groups, in the title and in a reason."""
    evidence, members = gaussian_evidence(records=COUNT, models=8, shift=2.0, seed=0)
    named = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        ids=NAMES,
    )
    groups = {"who": np.array(NAMES), "sex": np.where(np.arange(COUNT) % 2 == 0, "a", "b")}
    result = audit_evidence(
        named, members=members, attacks=["base", "lira"], evaluation=Evaluation(fprs=[0.05], groups=groups)
    )
    edges = np.random.default_rng(0).integers(COUNT, size=(2, 900))
    around = Surroundings(edges, members=members, labels=np.zeros(COUNT), nodes=np.arange(COUNT))
    context = dataclasses.replace(
        result.context, title=f"Audit without {NAMES[3]}", notes=(f"record '{NAMES[7]}' is odd; {NAMES[8]}, too.",)
    )
    left_out = {"rmia": f"record '{NAMES[5]}' has 0 in-models."}
    return dataclasses.replace(result, context=context, surroundings=around, left_out=left_out)


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".parquet")


def test_no_file_of_a_redacted_run_holds_an_id(plain: AuditResult, tmp_path: Path) -> None:
    open_run, closed = plain.save(tmp_path / "open"), plain.redacted(KEY).save(tmp_path / "closed")
    assert b"patient-" in everything(open_run)
    assert b"patient-" not in everything(closed)
    evidence = read_evidence(closed / "evidence.npz").evidence  # compressed text is not found by a search of bytes
    assert not [name for name in evidence.ids if "patient" in name]
    assert set(evidence.ids.tolist()) == {KEY.hash(name) for name in NAMES}
    page = (closed / "report.html").read_text()
    assert "keyed hashes" in page
    assert "Confidential" not in page
    assert "Confidential" in (open_run / "report.html").read_text()
    parquet = closed / "records.parquet"
    assert not parquet.exists() or b"patient-" not in parquet.read_bytes()


def test_a_redacted_run_has_the_same_figures_record_by_record(plain: AuditResult, tmp_path: Path) -> None:
    closed = plain.redacted(KEY)
    before = {row["id"]: row for row in plain.records().rows()}
    after = list(closed.records().rows())
    behind = {KEY.hash(name): name for name in NAMES}
    for row in after:
        expected = before[behind[row["id"]]]
        assert {name: row[name] for name in row if name not in ("id", "who")} == {
            name: expected[name] for name in expected if name not in ("id", "who")
        }
    assert [row["id"] for row in after] == sorted(row["id"] for row in after)  # the old order would tell who is who
    old, new = plain.summary(), closed.summary()
    assert (new.verdict, new.verdict_attack, new.privacy) == (old.verdict, old.verdict_attack, old.privacy)
    assert new.neighbourhoods == old.neighbourhoods
    assert [one.auc for one in new.groups if one.column == "sex"] == pytest.approx(
        [one.auc for one in old.groups if one.column == "sex"]
    )
    again = read_run(closed.save(tmp_path / "run"))
    assert again.context.redacted
    assert closed.redacted(Redactor(b"another")) is closed


def test_runs_that_share_a_key_are_compared_record_by_record(plain: AuditResult, tmp_path: Path) -> None:
    folders = {name: plain.redacted(KEY).save(tmp_path / name) for name in ("one", "two")}
    comparison = compare({name: read_run_with_records(folder) for name, folder in folders.items()})
    assert comparison.runs[1].tpr_difference is not None
    assert comparison.runs[1].tpr_difference.resampling == "paired"


def test_the_page_of_a_plain_run_can_be_redacted(plain: AuditResult, tmp_path: Path) -> None:
    run = plain.save(tmp_path / "run")
    page = tmp_path / "page.html"
    told = CliRunner().invoke(app, ["report", str(run), "--out", str(page), "--redact"])
    assert told.exit_code == 0, told.output
    assert "the other files of the run still contain the ids" in told.output
    assert "patient-" not in page.read_text()
    assert 'id="searched"' not in page.read_text()
    assert 'id="searched"' in (run / "report.html").read_text(), "the plain page holds all ids"
    key = key_beside(run)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().strip() not in page.read_text()
    first = plain.summary().top_records["id"].tolist()[0]
    found = CliRunner().invoke(app, ["lookup", str(key), first])
    assert found.output.split()[0] in page.read_text()
    (tmp_path / "ids.txt").write_text("\n".join(NAMES))
    back = CliRunner().invoke(app, ["lookup", str(key), found.output.split()[0], "--ids", str(tmp_path / "ids.txt")])
    assert back.output.split()[1] == first


def test_score_redacts_all_that_it_writes_and_prints(plain: AuditResult, tmp_path: Path) -> None:
    path = write_evidence(tmp_path / "losses.npz", plain.evidence, members=plain.members)
    arguments = ["score", str(path), "-a", "base", "--out", str(tmp_path / "run"), "--redact", "--author", "Ada"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert "patient-" not in told.output
    assert b"patient-" not in everything(tmp_path / "run")
    assert read_run(tmp_path / "run").context.author == "Ada"
    assert re.fullmatch(r"[0-9a-f]{64}\n", (tmp_path / "run.key").read_text())


def test_hashes_need_the_key_and_do_not_repeat() -> None:
    assert KEY.hash("a") != Redactor(b"other").hash("a")
    assert len(set(KEY.ids(range(5000)).tolist())) == 5000
    assert "a key" not in repr(KEY)


def test_a_text_keeps_its_small_numbers() -> None:
    ids = frozenset({"8", "120", "123456", "John Smith", "x-1"})
    told = "8 shadow models, record '120' and record 123456; John Smith and x-1."
    expected = (
        f"8 shadow models, record '{KEY.hash('120')}' and record {KEY.hash('123456')}; "
        f"{KEY.hash('John Smith')} and {KEY.hash('x-1')}."
    )
    assert KEY.text(told, ids) == expected


def test_a_key_is_the_owners_alone_and_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sharing():
        made = read_or_make_key(tmp_path / "keys" / "run.key")
    path = tmp_path / "keys" / "run.key"
    assert path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(Path, "exists", lambda self: False)  # as if another process makes it in this moment
    with pytest.raises(InputError, match="run.key: cannot be written: File exists"):
        read_or_make_key(path)
    monkeypatch.undo()
    assert read_or_make_key(path) == made
    assert [one.name for one in path.parent.iterdir()] == ["run.key"]
    monkeypatch.setattr(os, "link", Mock(side_effect=PermissionError(1, "no hard links")))
    read_or_make_key(tmp_path / "other.key")
    assert (tmp_path / "other.key").stat().st_mode & 0o777 == 0o600


def test_wrong_keys_are_refused(plain: AuditResult, tmp_path: Path) -> None:
    (tmp_path / "bad.key").write_text("no key")
    with pytest.raises(InputError, match="is not a key of Glasshouse"):
        read_or_make_key(tmp_path / "bad.key")
    run = plain.save(tmp_path / "run")
    for options, reason in (
        (["--redact", "--key", str(tmp_path / "bad.key")], "is not a key"),
        (["--key", str(tmp_path / "new.key")], "--key: is only used with --redact"),
    ):
        told = CliRunner().invoke(app, ["report", str(run), *options])
        assert isinstance(told.exception, InputError)
        assert reason in str(told.exception)
    assert not (tmp_path / "new.key").exists()
    lost = CliRunner().invoke(app, ["lookup", str(tmp_path / "new.key"), "a"])
    assert isinstance(lost.exception, InputError)
