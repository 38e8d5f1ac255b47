"""Names that no system knows, wherever a command takes a place: one short line, and nothing was run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from glasshouse.cli import main
from tests.hostile.files import EVIDENCE, RECORDS, npz, saved_run

COMMANDS = {
    "score --out": "score e.npz -a loss --out {}",
    "score --key": "score e.npz -a loss --redact --key {}",
    "audit --out": "audit audit.yaml --out {}",
    "audit --pool": "audit audit.yaml --out new --pool {}",
    "report": "report {}",
    "report --redact": "report {} --redact",
    "report --out": "report run --out {}",
    "compare": "compare run {}",
    "compare --out": "compare run run2 --out {}",
    "check": "check {} --policy risk.yaml",
    "check --policy": "check run --policy {}",
    "check --junit": "check run --policy risk.yaml --junit {}",
    "appendix --out": "appendix run --out {}",
    "lookup": "lookup {} ann",
    "lookup --ids": "lookup run.key --ids {}",
    "new": "new table {}",
}
NAMES = {"too long": "x" * 5000, "a zero": "a\0b", "links in a circle": "loop", "in a file": "e.npz/x"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("places")
    for name in ("run", "run2"):
        saved_run(place / name)
    npz(place / "e.npz", EVIDENCE)
    npz(place / "d.npz", RECORDS)
    (place / "loop").symlink_to("loop")
    (place / "run.key").write_text("ab" * 32)
    (place / "risk.yaml").write_text("limits:\n  - {figure: auc, most: 0.9}\n")
    (place / "audit.yaml").write_text(
        "data: {name: file, path: d.npz}\ntrainer: {kind: mlp, hidden: [2], epochs: 1}\nattacks: [loss]\nshadows: 2\n"
    )
    return place


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_name_that_no_system_knows_is_one_short_line(
    command: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("glasshouse.core.progress._BEGUN", {})
    words = [word if word != "{}" else NAMES[name] for word in COMMANDS[command].split()]
    monkeypatch.setattr(sys, "argv", ["glasshouse", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    told = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "Traceback" not in told
    assert max(map(len, told.splitlines())) < 5300  # the name itself, where it is quoted


def test_ids_to_look_up_are_read_once_and_not_for_each_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ids.txt").write_text("".join(f"person{number}\n" for number in range(30_000)))
    monkeypatch.setattr(
        sys, "argv", ["glasshouse", "lookup", str(folder / "run.key"), "--ids", str(tmp_path / "ids.txt")]
    )
    with pytest.raises(SystemExit):
        main()
    assert len(capsys.readouterr().out.splitlines()) == 30_000  # in seconds; a list of them took minutes
    (tmp_path / "ids.txt").write_bytes(b"x" * 5000)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "is too long for an id; write one id per line" in capsys.readouterr().err
