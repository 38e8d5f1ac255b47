from __future__ import annotations

import os
import resource
import signal
import warnings
from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.io.files import clean_leftovers, new_folder, write_file
from tests.io.test_folders import fill


def in_a_child_that_stays(work: Path) -> tuple[int, int]:
    """A child that has begun a folder and a file in ``work``; its id, and a pipe whose end lets it go on."""
    ready, go = os.pipe()
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        try:
            os.close(go)
            with new_folder(work / "run") as folder:
                (folder / "half.csv").write_text("half")
                os.write(tell, b"!")
                os.read(ready, 1)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(ready)
    os.close(tell)
    assert os.read(told, 1) == b"!"
    os.close(told)
    return child, go


def test_what_a_living_process_is_writing_stays_and_what_a_killed_one_wrote_goes(tmp_path: Path) -> None:
    child, go = in_a_child_that_stays(tmp_path)
    clean_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1, "another process's unfinished run was removed"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(go)
    clean_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_save_to_one_place_leave_one_whole_run(tmp_path: Path) -> None:
    child, go = in_a_child_that_stays(tmp_path)
    with new_folder(tmp_path / "run") as folder:
        fill(folder, roc="mine")
    os.close(go)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, "the second save replaced a run unasked"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "roc").read_text() == "mine"


def test_files_of_the_user_are_never_taken_for_leftovers(tmp_path: Path) -> None:
    names = [
        ".thesis.unfinished-chapter",
        ".run.a1b2c3d4",
        "run.glasshouse-unfinished-a1b2c3d4",
        ".unfinished-a1b2c3d4",
    ]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("mine")
    (tmp_path / ".link.glasshouse-unfinished-a1b2c3d4").symlink_to(tmp_path / names[0])
    clean_leftovers(tmp_path)
    assert len(list(tmp_path.iterdir())) == len(names) + 1
    assert all((tmp_path / name / "mine.txt").exists() for name in names)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_full_disk_leaves_the_earlier_run_and_nothing_else_and_says_so(tmp_path: Path, earlier: bool) -> None:
    """A limit on the size of a file stands for a full disk: the system refuses to write more, in the same way."""
    run, kept = tmp_path / "run", "The earlier run there is unchanged." if earlier else "Nothing was left behind."
    if earlier:
        with new_folder(run) as folder:
            fill(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(InputError) as full, new_folder(run, overwrite=True) as folder:
            write_file(folder / "small.csv", "a")
            write_file(folder / "large.csv", "a" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(full.value) == f"{run / 'large.csv'}: cannot be written: File too large. {kept}"
    assert [path.name for path in tmp_path.iterdir()] == ["run"] * earlier


def test_a_folder_that_disappears_while_it_is_filled_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"), new_folder(tmp_path / "run") as folder:
        folder.rmdir()
        (folder / "a.csv").write_text("a")
    assert list(tmp_path.iterdir()) == []


def test_a_leftover_of_an_earlier_version_goes_with_the_next_file(tmp_path: Path) -> None:
    (tmp_path / ".model-00001.json.unfinished-a1b2c3d4").write_text("{")
    write_file(tmp_path / "model-00001.json", "{}")
    clean_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model-00001.json"]
