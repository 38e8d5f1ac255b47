"""Runs the notebook of ``examples/`` and keeps its outputs: ``python -m docs.scripts.notebook``."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

BOOK = Path(__file__).parents[2] / "examples" / "first_audit.ipynb"


def _shown(value: Any) -> dict[str, Any]:
    """What a notebook shows of a value: its text, its HTML, and a matplotlib figure as a small picture."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=72, metadata={"Software": None})
        data["image/png"] = base64.b64encode(picture.getvalue()).decode()
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return data


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Run a cell; what it prints, and the value of its last line if that is an expression."""
    parsed, last, printed = ast.parse(source), None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        end = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
        exec(compile(parsed, f"cell {count}", "exec"), names)  # noqa: S102 (our own notebook)
        if isinstance(end, ast.Expr):
            last = eval(compile(ast.Expression(end.value), f"cell {count}", "eval"), names)  # noqa: S307 (our own)
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if last is not None:
        result = {"data": _shown(last), "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        found.append(result)
    return found


def run(book: dict[str, Any]) -> dict[str, Any]:
    """A notebook with the outputs of its cells, run one after the other in the working folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = cell | {"execution_count": count, "outputs": _outputs("".join(cell["source"]), names, count)}
        cells.append(cell)
    return book | {"cells": cells}


def text(book: dict[str, Any]) -> str:
    """A notebook as Jupyter writes it."""
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    with contextlib.chdir(tempfile.mkdtemp()):
        finished = run(json.loads(BOOK.read_text(encoding="utf-8")))
    BOOK.write_text(text(finished), encoding="utf-8")
