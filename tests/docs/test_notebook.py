"""The notebook of ``examples/`` runs from its first cell to its last, and is kept with the outputs that it has then."""

from __future__ import annotations

import html
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

notebook = importlib.import_module("docs.scripts.notebook")
KEPT: dict[str, Any] = json.loads(notebook.BOOK.read_text(encoding="utf-8"))


def test_it_is_a_small_notebook_of_format_4_5() -> None:
    """What the schema of nbformat asks of such a file; that package is not needed for it."""
    assert (KEPT["nbformat"], KEPT["nbformat_minor"]) == (4, 5)
    assert KEPT["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in KEPT["cells"]}) == len(KEPT["cells"]) <= 10
    for cell in KEPT["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert all(isinstance(line, str) for line in cell["source"])
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
    assert notebook.BOOK.stat().st_size < 100_000
    assert notebook.text(KEPT) == notebook.BOOK.read_text(encoding="utf-8")


def read(book: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What a reader reads below each cell; pictures may differ with the fonts of a machine."""
    found = []
    for cell in book["cells"]:
        for output in cell.get("outputs", []):
            for kind, lines in output.get("data", {"text/plain": output.get("text")}).items():
                if kind.startswith("text/"):
                    words = re.sub(r"<style>.*?</style>|<[^>]+>", " ", "".join(lines), flags=re.DOTALL)
                    found.append((cell["id"], kind, " ".join(html.unescape(words).split())))
    return sorted(found)  # by cell and kind


def test_its_cells_run_in_order_and_show_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="it draws curves with matplotlib")
    monkeypatch.chdir(tmp_path)
    again = notebook.run(KEPT)
    assert read(again) == read(KEPT), "run python -m docs.scripts.notebook"
    shown = {(cell, kind): words for cell, kind, words in read(KEPT)}
    assert "FAIL AUC of the verdict attack at most 0.65" in shown["policy", "text/plain"]
    assert "more than chance" in shown["second", "text/html"]
    assert "exposure" in shown["audit", "text/html"]
    assert shown["records", "text/plain"].startswith("patient-")
    kinds = {cell["id"]: [list(one.get("data", ())) for one in cell.get("outputs", ())] for cell in again["cells"]}
    assert kinds["curves"] == [["text/plain", "image/png"]]
    assert (tmp_path / "runs" / "second" / "report.html").is_file()
