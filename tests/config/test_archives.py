from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config.columns import TableSection
from glasshouse.config.data import read_archive

SECTION = TableSection(name="file", path="d.npz")


def test_an_archive_gives_records_ids_members_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    np.savez(path, x=np.zeros((3, 2)), y=[0, 1, 1], ids=["a", "b", "c"], members=[1, 0, 1], site=["u", "v", "u"])
    records = read_archive(TableSection(name="file", path="d.npz", groups=("site",)), path)
    assert records.population.ids.tolist() == ["a", "b", "c"]
    assert records.members is not None
    assert records.members.tolist() == [True, False, True]
    assert records.groups["site"].tolist() == ["u", "v", "u"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"y": [0, 1]}, "has no array 'x'"),
        ({"x": np.zeros((2, 1)), "y": [0, 0]}, "d.npz: population: all records have the label"),
        ({"x": np.zeros((2, 1)), "y": [0, 1], "members": [1, 0, 1]}, "d.npz: members: shape"),
        ({"x": np.array([{}, {}]), "y": [0, 1]}, "pickled objects"),
    ],
)
def test_an_archive_that_does_not_fit_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_archive(SECTION, tmp_path / "d.npz")


def test_files_and_keys_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    with pytest.raises(InputError, match="no such file"):
        read_archive(SECTION, path)
    np.savez(path, x=np.zeros((2, 1)), y=[0, 1])
    with pytest.raises(InputError, match="has no array 'town' for groups. Arrays: x, y"):
        read_archive(TableSection(name="file", path="d.npz", groups=("town",)), path)
    with pytest.raises(InputError, match="data.leave_out: is for tables"):
        read_archive(TableSection(name="file", path="d.npz", leave_out=("age",)), path)
    path.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(InputError, match="not a complete archive"):
        read_archive(SECTION, path)
