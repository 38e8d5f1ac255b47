"""Every example of docs/bring.md runs as it stands, and its row of the table says how long it is."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

table = importlib.import_module("docs.bring_table")
FIRST, *EXAMPLES = table.examples()
NAMES: dict[str, Any] = {}


def test_every_example_has_a_row_with_its_length_and_every_row_of_this_page_an_example() -> None:
    ours = [row for row in table.rows() if row.anchor.startswith("#")]
    assert [(row.anchor, row.lines) for row in ours] == [(one.anchor, one.lines) for one in EXAMPLES]
    assert [row.heading.lower() for row in ours] == [one.heading.lower() for one in EXAMPLES]
    assert all(row.seconds > 0 for row in table.rows())


def test_lines_are_what_a_user_writes() -> None:
    assert table.Example("", "import numpy\n\nx = 1\n\n\ndef f():\n    return x\n").lines == 3


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: re.sub(r"\W+", "-", example.heading))
def test_an_example_runs_silently_and_leaves_nothing_behind(
    example: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if not NAMES:
        FIRST.run(NAMES)
    if "TransformersTrainer" in example.code:
        pytest.importorskip("accelerate", reason="transformers.Trainer needs accelerate, which is not installed")
    monkeypatch.chdir(tmp_path)
    NAMES.pop("result", None)
    example.run(NAMES)
    assert 0.3 < NAMES["result"].table()["auc"][0] <= 1
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""
