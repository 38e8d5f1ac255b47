from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.io.files import exchange, found_run, new_folder, set_aside
from tests.io.test_folders import fill


def test_two_folders_exchange_their_names_or_nothing_happens(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    done = exchange(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one" / ("other" if done else "one")).exists()
    if done:
        with pytest.raises(OSError, match="No such file"):
            exchange(tmp_path / "one", tmp_path / "none")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_file_that_comes_in_the_last_moment_brings_the_earlier_run_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        fill(folder, roc="old")

    def late(one: Path, other: Path) -> bool:
        (run / "mine.txt").write_text("mine")
        monkeypatch.setattr("glasshouse.io.files.exchange", exchange if can_exchange else lambda a, b: False)
        return can_exchange and exchange(one, other)

    monkeypatch.setattr("glasshouse.io.files.exchange", late)
    with pytest.raises(InputError, match="is not a file of the run"), new_folder(run, overwrite=True) as folder:
        fill(folder, roc="new")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (run / "mine.txt").read_text() == "mine"
    assert (run / "roc").read_text() == "old"


def test_a_run_that_was_set_aside_is_found_and_put_back_by_the_next_save(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with new_folder(run) as folder:
        fill(folder, roc="old")
    aside = set_aside(run)
    assert found_run(run) == aside
    with pytest.raises(InputError, match="run: already holds something"), new_folder(run):
        pass
    assert (run / "roc").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
