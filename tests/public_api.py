"""What users may import, with every signature, as text: ``python -m tests.public_api`` writes tests/public_api.txt.

A change of that file is a change for users: it belongs into the changelog.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGES = ("glasshouse", "glasshouse.graph")
FILE = Path(__file__).with_suffix(".txt")


def public_api() -> str:
    """One line for each name, and for each public method and property of a class."""
    lines = [line for package in PACKAGES for line in _names(importlib.import_module(package))]
    return "\n".join(lines) + "\n"


def _names(package: Any) -> Iterator[str]:
    rooms = (name for name, thing in vars(package).items() if not (name.startswith("_") or inspect.ismodule(thing)))
    for name in sorted(getattr(package, "__all__", rooms)):
        thing, place = getattr(package, name), f"{package.__name__}.{name}"
        if not inspect.isclass(thing):
            yield place + (_signature(thing) if callable(thing) and inspect.isroutine(thing) else "")
            continue
        yield f"class {place}{_signature(thing)}"
        for member, value in sorted(inspect.getmembers_static(thing)):
            owner = next((base for base in thing.__mro__ if member in vars(base)), thing)
            if (member.startswith("_") and member != "__call__") or not owner.__module__.startswith("glasshouse"):
                continue
            routine = getattr(thing, member) if isinstance(value, classmethod | staticmethod) else value
            if callable(routine) and not inspect.isclass(routine):
                yield f"    {place}.{member}{_signature(routine)}"
            elif not inspect.isclass(value):
                yield f"    {place}.{member}"


def _signature(thing: Any) -> str:
    """As Python writes it, without places in memory."""
    return re.sub(r"<(?:function|class) '?([\w.<>]+?)'?(?: at 0x[0-9a-f]+)?>", r"\1", str(inspect.signature(thing)))


if __name__ == "__main__":
    FILE.write_text(public_api(), encoding="utf-8")
