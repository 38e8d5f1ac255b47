from __future__ import annotations

import os
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.io.files import check_free, check_page, new_folder
from tests.io.test_folders import fill


def test_a_link_that_leads_nowhere_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=f"link: is a link to {tmp_path / 'gone'}, which does not exist"):
        check_free(tmp_path / "link")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(InputError, match="circle: is a link to"):
        check_free(tmp_path / "circle")


def test_the_folder_that_one_stands_in_and_those_above_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (".", "..", "/"):
        with pytest.raises(InputError, match="names no folder of its own. Give the folder a name"):
            check_free(place, overwrite=True)
    for folder in (tmp_path / "here", tmp_path):
        with pytest.raises(InputError, match=f"{folder}: is the folder that you are in, or one above. Give one in it"):
            check_free(folder, overwrite=True)


def test_a_folder_where_a_disk_is_mounted_is_refused() -> None:
    with pytest.raises(InputError, match="/proc: is where a disk is mounted.*Give one in it: /proc/run"):
        check_free("/proc", overwrite=True)


def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with new_folder(tmp_path / "run") as folder:
        fill(folder)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(InputError, match="run: you may not write there"):
        check_free(tmp_path / "run", overwrite=True)


def test_a_working_folder_that_is_gone_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InputError, match="runs/audit: cannot be written: No such file or directory"):
        check_free(Path("runs/audit"))


def test_a_page_is_not_written_through_a_link_or_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "page.html").symlink_to(tmp_path / "mine.txt")
    with pytest.raises(InputError, match="page.html: is a link, which is not followed"):
        check_page(tmp_path / "page.html")
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        check_page(tmp_path / "mine.txt" / "page.html")
    check_page(tmp_path / "some" / "new" / "page.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt", "page.html"]


def test_a_device_or_a_pipe_is_not_replaced_by_a_page(tmp_path: Path) -> None:
    """`--junit /dev/null`, run as root, put a file in the place of the device for every program."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(InputError, match="is not a plain file"):
            check_page(place)
    assert not Path(os.devnull).is_file()


def test_findings_for_a_build_server_are_written_over_earlier_ones(tmp_path: Path) -> None:
    (tmp_path / "check.xml").write_text('<testsuite name="run"><testcase classname="glasshouse.policy" name="a" />')
    check_page(tmp_path / "check.xml")


def test_a_name_that_is_no_utf_8_is_a_name(tmp_path: Path) -> None:
    name = os.fsdecode(b"run-\xff")
    with new_folder(tmp_path / name) as folder:
        fill(folder)
    check_free(tmp_path / name, overwrite=True)
    with new_folder(tmp_path / name, overwrite=True) as folder:
        fill(folder, roc="new")
    assert [path.name for path in tmp_path.iterdir()] == [name]
