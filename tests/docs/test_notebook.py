"""The notebook of ``examples/`` runs from its first cell to its last, and is kept without outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parents[2] / "examples" / "first_audit.ipynb"
CELLS: list[dict[str, Any]] = json.loads(PLACE.read_text())["cells"]


def test_it_is_a_notebook_of_format_4_5_kept_without_outputs() -> None:
    """What the schema of nbformat asks of such a file; that package is not needed for it."""
    book = json.loads(PLACE.read_text())
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)
    for cell in CELLS:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(isinstance(line, str) for line in cell["source"])
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        if code:
            assert cell["execution_count"] is None
            assert cell["outputs"] == []


def test_its_cells_run_in_order_and_write_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in CELLS:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {cell['id']}", "exec"), names)  # noqa: S102 (our own)
    said = capsys.readouterr().out
    assert "A leak is shown" in said
    assert "FAIL  AUC of the verdict attack at most 0.6" in said
    assert "patient-" in said
    assert (tmp_path / "runs" / "notebook" / "report.html").is_file()
