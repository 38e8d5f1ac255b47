from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.store import new_folder, write_file


def test_a_failed_block_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), new_folder(tmp_path / "run") as folder:
        (folder / "half").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_failed_block_leaves_an_older_run_as_it_was(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        (folder / "metrics.json").write_text("old")
    with pytest.raises(RuntimeError), new_folder(run, overwrite=True) as folder:
        raise RuntimeError
    assert (run / "metrics.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [run]


def test_overwriting_replaces_the_whole_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("old", "new"):
        with new_folder(run, overwrite=True) as folder:
            (folder / "metrics.json").write_text(name)
            (folder / name).write_text(name)
    assert sorted(path.name for path in run.iterdir()) == ["metrics.json", "new"]


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="already holds something"), new_folder(tmp_path):
        pass
    with pytest.raises(InputError, match="is not a run of Glasshouse"), new_folder(tmp_path, overwrite=True):
        pass
    with pytest.raises(InputError, match="is a file"), new_folder(tmp_path / "precious.txt"):
        pass
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_file_is_replaced_whole_and_no_temporary_stays(tmp_path: Path) -> None:
    for text in ("first", "second"):
        write_file(tmp_path / "sub" / "a.txt", text)
    assert (tmp_path / "sub" / "a.txt").read_text() == "second"
    assert len(list((tmp_path / "sub").iterdir())) == 1


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: File name too long"):
        write_file(tmp_path / ("x" * 300), "text")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written: File exists"), new_folder(tmp_path / "file" / "run"):
        pass
