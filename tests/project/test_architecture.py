"""Data flows one way: nothing earlier imports anything later. And modules stay small enough to read."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import glasshouse

SOURCE = Path(glasshouse.__file__).parent
ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"
ROOMS = [
    ["core"],
    ["io"],
    ["data"],
    ["compute"],
    ["training"],
    ["query"],
    ["pool"],
    ["evidence"],
    ["attacks"],
    ["evaluation"],
    ["report"],
    ["auditing"],
    ["graph"],
    ["config"],
    ["cli"],
]
ROOMS_OF_GRAPH = [
    ["layers"],
    ["programs"],
    ["models"],
    ["data"],
    ["training"],
    ["rule"],
    ["scene"],
    ["edge_scene"],
    ["sampling"],
    ["attacks"],
    ["budget"],
    ["audit", "edge_audit"],
]


house = importlib.import_module("docs.scripts.house")  # what is checked here is what the picture shows


@pytest.fixture(scope="module")
def modules() -> dict[str, set[str]]:
    """Every module with those that it imports; not at import of this file, which every worker of pytest does."""
    found: dict[str, set[str]] = house.module_imports(SOURCE)
    return found


@pytest.mark.parametrize(
    ("package", "order"), [("glasshouse", ROOMS), ("glasshouse.graph", ROOMS_OF_GRAPH)], ids=["all", "graph"]
)
def test_nothing_earlier_imports_anything_later(
    package: str, order: list[list[str]], modules: dict[str, set[str]]
) -> None:
    """Imports inside functions and those for types count too."""
    rank = {name: number for number, names in enumerate(order) for name in names}
    rooms = house.room_imports(modules, package)
    assert rooms.keys() <= rank.keys(), "a new room: say where in the order it stands"
    wrong = [f"{room} imports {name}" for room in rooms for name in sorted(rooms[room]) if rank[name] >= rank[room]]
    assert wrong == []


def test_only_a_command_imports_the_experiments_when_it_is_called() -> None:
    """They are not in the wheel."""
    found = [path for path in SOURCE.rglob("*.py") if "import glasshouse_experiments" in path.read_text()]
    assert [path.name for path in found] == ["research.py"]
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


def test_no_modules_import_each_other(modules: dict[str, set[str]]) -> None:
    assert house.cycles(modules) == []


def test_a_cycle_is_found_and_a_way_that_follows_from_others_is_left_out() -> None:
    assert house.cycles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    assert house.reduced({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_the_picture_of_the_house_is_what_the_imports_say() -> None:
    message = "run python docs/scripts/house.py"
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture(), message


def test_every_arrow_of_the_picture_points_down(modules: dict[str, set[str]]) -> None:
    rooms = house.reduced(house.room_imports(modules))
    plan = house.laid_out(rooms, dict.fromkeys(rooms, (100.0, 30.0)))
    for arrow in plan.arrows:
        assert [box.y for box in arrow] == sorted({box.y for box in arrow})


def test_rooms_before_the_graph_know_nothing_of_graphs() -> None:
    """What they need of a graph they are given as a population (`glasshouse.data.AnyPopulation`)."""
    order = [name for names in ROOMS for name in names]
    rooms = order[: order.index("graph")]
    before = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0].removesuffix(".py") in rooms]
    words = ("edge_index", "num_nodes", "import torch_geometric", "from torch_geometric")
    assert [(path.name, word) for path in before for word in words if word in path.read_text()] == []


def test_a_module_is_one_page() -> None:
    """Usually 120 to 350 lines; up to 700 where one algorithm is one page."""
    modules = [*SOURCE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")]
    assert [path.name for path in modules if len(path.read_text().splitlines()) > 700] == []


def test_a_few_lines_with_one_caller_live_in_their_caller(modules: dict[str, set[str]]) -> None:
    callers = {name: sum(name in imported for imported in modules.values()) for name in modules}
    small = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__init__.py"
        and len(path.read_text().splitlines()) < 60
        and callers[".".join(["glasshouse", *path.relative_to(SOURCE).with_suffix("").parts])] == 1
    ]
    assert small == []


def named_files(page: str) -> set[str]:
    """Files and folders of ours that a page names in backticks; those of a table's row are in the row's room."""
    found = set()
    for line in page.splitlines():
        room = re.match(r"\| `(\w+)/` \|", line)
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", line):
            found.add(f"{room[1]}/{name}" if room and not name.startswith(room[1] + "/") else name)
    return found


def test_the_map_names_files_that_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    before, _, after = page.partition("Beside `src/` is")
    first, _, graph = before.partition("| room of `graph/` |")
    missing = [name for name in named_files(first) if not any((place / name).exists() for place in (SOURCE, ROOT))]
    missing += [name for name in named_files(graph) if not (SOURCE / "graph" / name).exists()]
    decisions = after.partition("## Decisions, and why")[2]
    places = (SOURCE, SOURCE / "graph", SOURCE.parent, ROOT)
    missing += [name for name in named_files(decisions) if not any((place / name).exists() for place in places)]
    assert missing == []


WALL_CLOCKS = {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns"}


def reads_of_the_wall_clock(source: str) -> list[int]:
    """Lines that read it, by ``time.…()`` or by a name that was imported from ``time``."""
    if not re.search(r"^\s*(import|from) time", source, flags=re.MULTILINE):
        return []
    tree = ast.parse(source)
    named = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "timeit")
        for alias in node.names
        if alias.name in {*WALL_CLOCKS, "timeit", "default_timer"}
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                if called.value.id == "timeit" or (called.value.id == "time" and called.attr in WALL_CLOCKS):
                    found.append(node.lineno)
            elif isinstance(called, ast.Name) and called.id in named:
                found.append(node.lineno)
    return found


def test_no_test_reads_the_wall_clock() -> None:
    """A busy machine must not fail a test: count work, or take `time.process_time` with a wide margin."""
    allowed = {"tests/compute/work.py"}  # when tasks on a cluster ran, in which order; not how long
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if str(path.relative_to(ROOT)) not in allowed
        for line in reads_of_the_wall_clock(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\nbegan = time.perf_counter()", [2]),
        ("from time import monotonic as now\nassert now() < 3", [2]),
        ("def inside():\n    import timeit\n    timeit.timeit()", [3]),
        ("import time\nbegan = time.process_time()\ntime.sleep(0.1)", []),
    ],
)
def test_every_way_to_read_the_wall_clock_is_seen(source: str, lines: list[int]) -> None:
    assert reads_of_the_wall_clock(source) == lines


def test_nothing_is_unpickled() -> None:
    text = "\n".join(path.read_text() for path in [*SOURCE.rglob("*.py"), *EXPERIMENTS.rglob("*.py")])
    for name in ("import pickle", "torch.load(", "joblib.load", "allow_pickle=True", "yaml.load("):
        assert name not in text
