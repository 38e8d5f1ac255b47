from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse import InputError
from glasshouse.evidence.tables import read_text_table, tidy_arrays


def columns(**changed: list[str]) -> dict[str, list[str]]:
    usual = {"model": ["target", "s"], "id": ["a", "a"], "member": ["", "1"], "loss": ["1", "2"]}
    return {name: values for name, values in (usual | changed).items() if values}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": ["s", "s2"]}, "no row is named 'target'"),
        ({"member": []}, "the column 'member' is missing"),
        ({"loss": []}, "no column named loss"),
        ({"loss": [], "logit_0": ["1", "1"], "logit_2": ["1", "1"]}, "have a gap"),
    ],
)
def test_missing_pieces_are_named(changed: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tidy_arrays(columns(**changed))


def test_a_byte_order_mark_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(b"\xef\xbb\xbfmodel,id\n\ntarget,a\n\n")
    assert read_text_table(path).columns == {"model": ["target"], "id": ["a"]}


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(InputError, match="is not a text table"):
        read_text_table(path)
