from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from glasshouse.io.files import new_folder, sharing, write_file


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_only_the_owner_can_read_what_is_written(tmp_path: Path) -> None:
    with new_folder(tmp_path / "runs" / "run") as folder:
        write_file(folder / "records.csv", "id\nanna\n")
    assert modes(tmp_path / "runs") == {"runs": "0o700", "run": "0o700", "records.csv": "0o600"}


def test_others_can_read_it_where_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sharing(), new_folder(tmp_path / "run") as folder:
        write_file(folder / "records.csv", "id\nanna\n")
    assert modes(tmp_path / "run") == {"run": "0o755", "records.csv": "0o644"}
    for said, mode in (("1", "0o644"), ("0", "0o600"), ("", "0o600")):
        monkeypatch.setenv("GLASSHOUSE_SHARED", said)
        write_file(tmp_path / "page" / "page.html", "")
        assert modes(tmp_path / "page")["page.html"] == mode
