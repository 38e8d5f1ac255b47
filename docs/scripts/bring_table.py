"""The table of docs/bring.md: every example with its lines and seconds.

``python docs/scripts/bring_table.py`` renews it.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[1] / "bring.md"
_ROW = re.compile(r"^\| \[(.+?)\]\((.+?)\) \| (\d+) \| ([\d.]+) \|", flags=re.MULTILINE)


class Example(NamedTuple):
    """An example: the heading above it, and its code."""

    heading: str
    code: str

    @property
    def lines(self) -> int:
        """What a user writes: no imports, no empty lines."""
        rows = [line for line in self.code.splitlines() if line.strip()]
        return sum(not row.startswith(("import ", "from ")) for row in rows)

    @property
    def anchor(self) -> str:
        """Where the manual links to."""
        return "#" + re.sub(r"[^\w\- ]", "", self.heading).lower().replace(" ", "-")

    def run(self, names: dict[str, Any]) -> None:
        """Run it in the names of the page; it leaves its audit under the name ``result``."""
        exec(compile(self.code, self.heading, "exec"), names)  # noqa: S102 (our own manual)


class Row(NamedTuple):
    """A row of the table."""

    heading: str
    anchor: str
    lines: int
    seconds: float


def examples() -> list[Example]:
    """All examples of the page; the first one makes the names that they share."""
    parts = re.split(r"^(?:## ([^\n]+)|(```python\n.*?)^```)$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    found, heading = [], ""
    for title, code in zip(parts[1::3], parts[2::3], strict=True):
        heading = title or heading
        if code:
            found.append(Example(heading, code.removeprefix("```python\n")))
    return found


def rows() -> list[Row]:
    """The rows of the table, as the page has them."""
    return [Row(name, anchor, int(lines), float(took)) for name, anchor, lines, took in _ROW.findall(PAGE.read_text())]


def main() -> None:
    """Measure every example and write its row again; a library is imported in the run before the one that counts."""
    names: dict[str, Any] = {}
    first, *others = examples()
    first.run(names)
    measured = {}
    for example in others:
        example.run(names)
        before = time.process_time()
        example.run(names)
        measured[example.anchor] = (example.lines, time.process_time() - before)

    def again(row: re.Match[str]) -> str:
        lines, seconds = measured.get(row[2], (int(row[3]), float(row[4])))
        return f"| [{row[1]}]({row[2]}) | {lines} | {max(seconds, 0.1):.1f} |"

    PAGE.write_text(_ROW.sub(again, PAGE.read_text()))


if __name__ == "__main__":
    main()
