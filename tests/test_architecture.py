"""Data flows one way: nothing earlier imports anything later. And modules stay small enough to read."""

from __future__ import annotations

import ast
from pathlib import Path

import glasshouse

SOURCE = Path(glasshouse.__file__).parent
LAYERS = [
    ["errors", "arrays"],
    ["numerics", "digests", "randomness", "progress", "registry", "store", "table"],
    ["losses", "model_outputs", "resolution"],
    ["population"],
    ["training", "compute"],
    ["queries"],
    ["pool"],
    ["evidence"],
    ["attacks"],
    ["evaluation"],
    ["report"],
    ["result", "datasets"],
    ["audit_steps"],
    ["audit", "track"],
    ["graph"],
    ["experiments"],
    ["config"],
    ["cli"],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[1] for name in names if name.startswith("glasshouse.")}


def test_nothing_earlier_imports_anything_later() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in SOURCE.rglob("*.py")
        if room(path) != "__init__"
        for name in imports(path)
        if RANK[name] > RANK[room(path)] or (RANK[name] == RANK[room(path)] and name != room(path))
    ]
    assert wrong == []


def test_rooms_before_the_graph_know_nothing_of_graphs() -> None:
    """What they need of a graph they are given as a population (`glasshouse.population.AnyPopulation`)."""
    before = [path for path in SOURCE.rglob("*.py") if room(path) in RANK and RANK[room(path)] < RANK["graph"]]
    words = ("edge_index", "num_nodes", "import torch_geometric", "from torch_geometric")
    assert [(path.name, word) for path in before for word in words if word in path.read_text()] == []


def test_no_module_is_over_400_lines() -> None:
    assert [path.name for path in SOURCE.rglob("*.py") if len(path.read_text().splitlines()) > 400] == []


def test_nothing_is_unpickled() -> None:
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for name in ("import pickle", "torch.load(", "joblib.load", "allow_pickle=True", "yaml.load("):
        assert name not in text
