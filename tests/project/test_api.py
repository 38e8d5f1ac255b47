"""One API: what users write needs two modules, and both audits are called alike."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import glasshouse
import glasshouse.graph
from tests.public_api import FILE, public_api


def test_examples_need_two_modules_alone() -> None:
    """What a user copies must not break when a room is moved."""
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.py")):
        tree = ast.parse(path.read_text())
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        assert {name for name in modules if name.startswith("glasshouse")} <= {"glasshouse", "glasshouse.graph"}, path


def test_both_audits_take_the_same_names_in_the_same_order_with_the_same_defaults() -> None:
    records, graph = (inspect.signature(one).parameters for one in (glasshouse.audit, glasshouse.graph.audit))
    assert next(iter(records)) == "population"
    assert next(iter(graph)) == "data"
    shared = [name for name in records if name in graph]
    assert shared == [name for name in graph if name in records]
    assert set(records) - set(graph) == {"population"}
    assert set(graph) - set(records) == {"data", "nodes", "ids", "setting", "minutes", "unit"}
    other = {"title", "attacks"}  # a graph has more attacks, and is called one
    for name in set(shared) - other:
        assert records[name].default == graph[name].default, name


def test_public_names_and_signatures_are_those_that_are_written_down() -> None:
    written = FILE.read_text(encoding="utf-8")
    assert public_api() == written, "a change for users: run python -m tests.public_api, and say so in the changelog"
    assert " at 0x" not in written
