from __future__ import annotations

import textwrap
from types import FunctionType
from typing import Any

import pytest

from glasshouse.pool.description import class_tree, function_tree, named


def walk(value: Any, path: str) -> Any:
    return f"{path}={value!r}"


def compiled(source: str, **names: Any) -> Any:
    """What a user's own file would define as ``thing``."""
    inside = {"__name__": "own_file", **names}
    exec(textwrap.dedent(source), inside)  # noqa: S102
    return inside["thing"]


def tree(source: str, **names: Any) -> dict[str, Any]:
    function = compiled(source, **names)
    assert isinstance(function, FunctionType)
    return function_tree(function, walk, "f")


PLAIN = "def thing(x, rate=0.1):\n    return x * rate + 2"


def test_comments_docstrings_and_lines_do_not_matter() -> None:
    commented = '''

    def thing(x, rate=0.1):
        """Says what it does."""
        # and why
        return (x * rate
                + 2)
    '''
    assert tree(PLAIN) == tree(commented)


@pytest.mark.parametrize(
    "changed", [PLAIN.replace("2", "3"), PLAIN.replace("0.1", "0.2"), PLAIN.replace("*", "/"), PLAIN.replace("x", "z")]
)
def test_constants_defaults_steps_and_names_do(changed: str) -> None:
    assert tree(changed) != tree(PLAIN)


def test_globals_that_are_read_and_what_is_enclosed_are_looked_into() -> None:
    reads = "def thing(x):\n    return [x * rate for _ in range(2)]"
    assert tree(reads, rate=1, unused=2)["globals"] == {"rate": "f.globals.rate=1"}
    encloses = "def outer(inner):\n    return lambda x: x + inner\nthing = outer(5)"
    assert tree(encloses)["closure"] == {"inner": "f.closure.inner=5"}


def test_a_name_that_is_not_bound_yet_ends_there() -> None:
    late = "def outer():\n    f = lambda: later\n    global thing\n    thing = f\n    return f\n    later = 1\nouter()"
    assert tree(late)["closure"] == {"later": "(nothing yet)"}


def test_things_of_libraries_are_known_by_name() -> None:
    assert str(named(textwrap.dedent)).startswith("textwrap.dedent (python ")
    assert named(compiled(PLAIN)) is None
    assert function_tree(textwrap.dedent, walk, "f").keys() == {"(function)"}  # type: ignore[arg-type]


def test_a_class_is_its_bases_methods_and_values_without_how_it_prints() -> None:
    kind = compiled("class thing:\n    rate = 3\n    def __repr__(self): return ''\n    def train(self): return 1")
    found = class_tree(kind, walk, "c")
    assert found["rate"] == "c.rate=3"
    assert found.keys() == {"(class)", "(bases)", "rate", "train"}


def test_an_enumeration_is_its_members() -> None:
    kind = compiled("import enum\nclass thing(enum.Enum):\n    A = 1\n    B = 'b'")
    assert {"A": "c.A=1", "B": "c.B='b'"}.items() <= class_tree(kind, walk, "c").items()
