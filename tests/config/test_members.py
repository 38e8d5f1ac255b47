from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.columns import TableSection
from glasshouse.config.encoding import read_records, refuse_telling

TABLE = "who,age,label,split\nann,30,yes,train\nbob,41,no,test\ncyd,52,yes,train\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "d.csv").write_text(TABLE)
    (tmp_path / "in.txt").write_text("who\nann\n\ncyd\n")
    (tmp_path / "bare.csv").write_text("cyd\nann\n")
    (tmp_path / "in.csv").write_text("day,who\nmonday,cyd\nfriday,ann\n")
    (tmp_path / "strange.txt").write_text("ann\nzoe\nyan\n")
    return tmp_path


def members(folder: Path, name: str) -> list[bool]:
    section = TableSection(name="file", path="d.csv", id="who", leave_out=("split",), members=name)
    found = read_records(section, folder).members
    assert found is not None
    return [bool(one) for one in found]


@pytest.mark.parametrize("name", ["split", "in.txt", "in.csv", "bare.csv"])
def test_a_column_or_a_file_of_ids_says_who_was_trained_on(folder: Path, name: str) -> None:
    assert members(folder, name) == [True, False, True]


def test_files_that_do_not_fit_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"strange.txt: the id 'zoe' and 1 more: no record of the table has it"):
        members(folder, "strange.txt")
    with pytest.raises(InputError, match="data.members: 'inn' is neither a column nor a file of ids. Columns: who"):
        members(folder, "inn")
    with pytest.raises(InputError, match=r"in.csv: has no column 'age'. Columns: day, who"):
        read_records(TableSection(name="file", path="d.csv", id="age", members="in.csv"), folder)
    with pytest.raises(InputError, match=r"say which column holds them \(data.id\)"):
        read_records(TableSection(name="file", path="d.csv", members="in.csv"), folder)


def test_a_column_that_repeats_the_members_is_refused(folder: Path) -> None:
    rows = [
        f"p{number},{number % 7},{'yn'[number % 3 == 0]},{'train' if number < 20 else 'test'}" for number in range(40)
    ]
    (folder / "d.csv").write_text("\n".join(["who,age,label,split", *rows]))
    (folder / "in.txt").write_text("\n".join(f"p{number}" for number in range(20)))
    with pytest.raises(InputError, match="the feature 'split = test' says who is a member"):
        read_records(TableSection(name="file", path="d.csv", id="who", members="in.txt"), folder)
    who = np.arange(40) < 20
    refuse_telling(np.stack([np.ones(40), np.arange(40) + 2.0], axis=1), ["a", "b"], who, "d.csv")
