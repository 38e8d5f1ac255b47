from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from glasshouse import InputError
from glasshouse.io.files import check_free, check_page, digest, new_folder, write_file


def fill(folder: Path, **files: str) -> None:
    """Files and a run.json that lists them, as a run has them."""
    for name, text in {"metrics.json": "{}", **files}.items():
        (folder / name).write_text(text)
    listed = {path.name: {"bytes": 1, "sha256": digest(path)} for path in folder.iterdir()}
    (folder / "run.json").write_text(json.dumps({"format": 6, "files": listed}))
    (folder / "report.html").write_text("<!doctype html>")


def test_a_failed_block_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), new_folder(tmp_path / "run") as folder:
        (folder / "half").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_failed_block_leaves_an_older_run_as_it_was(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        fill(folder, roc="old")
    with pytest.raises(RuntimeError), new_folder(run, overwrite=True) as folder:
        raise RuntimeError
    assert (run / "roc").read_text() == "old"
    assert list(tmp_path.iterdir()) == [run]


def test_overwriting_replaces_the_whole_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("old", "new"):
        with new_folder(run, overwrite=True) as folder:
            fill(folder, **{name: name})
    assert sorted(path.name for path in run.iterdir()) == ["metrics.json", "new", "report.html", "run.json"]
    assert list(tmp_path.iterdir()) == [run]


def spoil_by_a_file(run: Path) -> None:
    (run / "thesis.tex").write_text("mine")


def spoil_by_a_folder(run: Path) -> None:
    (run / "figures").mkdir()


def spoil_by_an_edit(run: Path) -> None:
    (run / "roc").write_text("my own notes")


def spoil_by_a_link(run: Path) -> None:
    (run / "roc").unlink()
    (run / "roc").symlink_to(run.parent)


def spoil_by_a_strange_list(run: Path) -> None:
    (run / "run.json").write_text('{"format": 6, "files": ["metrics.json"]}')


def spoil_by_an_old_list(run: Path) -> None:
    (run / "run.json").write_text('{"format": 1}')


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_by_a_file, "thesis.tex: is not a file of the run"),
        (spoil_by_a_folder, "figures: is not a file that a run writes"),
        (spoil_by_an_edit, "roc: was changed since the run wrote it"),
        (spoil_by_a_link, "roc: is not a file that a run writes"),
        (spoil_by_a_strange_list, "is not a run of Glasshouse"),
        (spoil_by_an_old_list, "is not a run of Glasshouse"),
        (lambda run: (run / "run.json").unlink(), "is not a run of Glasshouse"),
    ],
)
def test_a_folder_that_its_list_does_not_describe_file_by_file_is_never_overwritten(
    tmp_path: Path, spoil: Any, said: str
) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        fill(folder, roc="old")
    spoil(run)
    before = sorted(run.iterdir())
    for ask in (check_free, lambda path, overwrite: new_folder(path, overwrite=overwrite).__enter__()):
        with pytest.raises(InputError, match=f"{said}.*so the folder is not overwritten"):
            ask(run, overwrite=True)
    assert sorted(run.iterdir()) == before
    assert list(tmp_path.iterdir()) == [run]


def test_a_file_that_comes_while_a_run_is_written_stays(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        fill(folder)
    with pytest.raises(InputError, match="is not a file of the run"), new_folder(run, overwrite=True) as folder:
        fill(folder)
        (run / "mine.txt").write_text("mine")
    assert (run / "mine.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [run]


def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    for name in ("old", "new"):
        with new_folder(tmp_path / "run", overwrite=True) as folder:
            fill(folder, **{name: name})
        if name == "old":
            (tmp_path / "run").rename(tmp_path / "disk")
            (tmp_path / "run").symlink_to(tmp_path / "disk")
    assert (tmp_path / "run").is_symlink()
    assert (tmp_path / "disk" / "new").exists()


def test_a_page_replaces_a_page_of_ours_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    check_page(page)
    page.write_text("<!doctype html><title>Audit · Glasshouse</title>")
    check_page(page)
    page.write_text("<!doctype html><title>My home page</title>")
    with pytest.raises(InputError, match="is not a page of Glasshouse"):
        check_page(page)
    with pytest.raises(InputError, match="is a folder"):
        check_page(tmp_path)


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
    with pytest.raises(InputError, match="cannot be written: Not a directory"), new_folder(tmp_path / "file" / "run"):
        pass


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "run", tmp_path / "file" / "deep" / "run", Path("/proc/run")):
        with pytest.raises(InputError, match=f"{place}: cannot be written"):
            check_free(place)
    check_free(tmp_path / "some" / "new" / "run")

    def read_only(**options: Any) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkdtemp", read_only)
    with pytest.raises(InputError, match="cannot be written: Read-only file system"):
        check_free(tmp_path / "run")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
