"""Data flows one way: nothing earlier imports anything later. And modules stay small enough to read."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import glasshouse

SOURCE = Path(glasshouse.__file__).parent
ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
LAYERS = [
    ["arrays", "errors"],
    ["numerics", "randomness", "progress", "registry", "store", "table"],
    ["model_outputs", "resolution"],
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


def test_only_a_command_imports_the_experiments_when_it_is_called() -> None:
    """They are not in the wheel."""
    found = [path for path in SOURCE.rglob("*.py") if "import glasshouse_experiments" in path.read_text()]
    assert [path.name for path in found] == ["cli.py"]
    names = {
        name
        for node in ast.parse(found[0].read_text()).body
        for name in ([part.name for part in node.names] if isinstance(node, ast.Import) else [])
    }
    assert "glasshouse_experiments" not in names
    assert not (SOURCE / "experiments").exists()


def test_the_experiments_are_of_the_version_that_they_ask_for() -> None:
    here, there = (
        tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"] for place in ("", "experiments")
    )
    assert here["version"] == there["version"]
    assert there["dependencies"] == [f"glasshouse[graph]=={here['version']}"]


def test_no_module_is_over_400_lines() -> None:
    modules = [*SOURCE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")]
    assert [path.name for path in modules if len(path.read_text().splitlines()) > 400] == []


def test_nothing_is_unpickled() -> None:
    text = "\n".join(path.read_text() for path in [*SOURCE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")])
    for name in ("import pickle", "torch.load(", "joblib.load", "allow_pickle=True", "yaml.load("):
        assert name not in text
