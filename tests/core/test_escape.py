from __future__ import annotations

import csv
import io
import os

from hypothesis import given
from hypothesis import strategies as st

from glasshouse.core.escape import cell_text, plain_cell, visible
from glasshouse.core.table import Table

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "'=1+1", "''-x"]
FORMULAS += [" =1", "\ufeff=1+1", "\ufeff -x", "\u200b@SUM(A1)", "＝1+1", "＋cmd", "－2+3", "＠SUM(A1)", "\u00a0＝1"]
FORMULAS += ["﹦1+1", "﹢cmd", "﹣2+3", "﹫SUM(A1)", "−2+3", "\u00ad=1", "\ufe0f=1"]
CONTROLS = {
    "\t=1": r"\\t=1",
    "\r=1": r"\\r=1",
    "a\n=1": r"\a\n=1",
    "\x1b[2J": r"\\x1b[2J",
    "\\x": r"\\\x",
    "a\\b": "a\\b",
    "ann;=cmd|' /C calc'!A0;": r"\ann\x3b=cmd|' /C calc'!A0;",
    "=a; \u200b-b": "\\=a\\x3b \u200b-b",
    'a;"=b"': r'\a\x3b"=b"',
}


@given(text=st.text())
def test_a_cell_of_csv_gives_its_text_back(text: str) -> None:
    assert plain_cell(cell_text(text)) == text


def test_no_text_in_a_csv_file_is_a_formula_and_numbers_stay_numbers() -> None:
    for text in FORMULAS:
        assert cell_text(text) == f"'{text}"
    for text, cell in CONTROLS.items():
        assert cell_text(text) == cell
    for text in ("-5", "+1.5", "-1e-9", "anna", "a=b", "-", "@", "", "a;b", "a; b=c"):
        assert cell_text(text) == text


@given(ids=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=1, max_size=5))
def test_a_csv_file_has_a_row_for_each_record_whatever_the_ids_hold(ids: list[str]) -> None:
    """A bare carriage return ends a row for spreadsheets, unless the cell is in quotes."""
    text = Table({"=id": ids, "score": [0.5] * len(ids)}).to_csv()
    for read in (text, text.replace("\r", "\n")):
        rows = list(csv.reader(io.StringIO(read, newline="")))
        assert len(rows) == len(ids) + 1
        assert rows[0][0] == "'=id"
        assert all(len(row) == 2 for row in rows)
    assert [plain_cell(row[0]) for row in list(csv.reader(io.StringIO(text, newline="")))[1:]] == ids


@given(ids=st.lists(st.text(st.sampled_from("=+-@;'\"\\ ,x1\n\ufeff＝")), min_size=1, max_size=4))
def test_no_cell_is_a_formula_where_programs_split_rows_at_semicolons(ids: list[str]) -> None:
    """Spreadsheets of countries with a decimal comma do, also within a comma-separated cell in quotes."""
    rows = Table({"score": [0.5] * len(ids), "id": ids, "name": ids}).to_csv().splitlines()[1:]
    for cell in (cell.lstrip("\"' \ufeff") for row in rows for cell in row.split(";")[1:]):
        assert not cell.startswith(("=", "+", "-", "@", "＝")), rows


def test_what_a_terminal_would_obey_is_shown_and_printed_text_can_be_written() -> None:
    evil = "\x1b]0;owned\x07\r\x9b2J\u202egpj.exe\u061c\u2028" + os.fsdecode(b"\xff")
    shown = visible(evil)
    assert shown.isprintable()
    assert shown.encode("utf-8") == b"\\x1b]0;owned\\x07\\r\\x9b2J\\u202egpj.exe\\u061c\\u2028\\udcff"
    assert visible("Åse · 名前 [1]") == "Åse · 名前 [1]"
    assert str(Table({"id": ["\x1b[2J"]})).isascii()
    assert "\x1b" not in str(Table({"id": ["\x1b[2J"]}))
