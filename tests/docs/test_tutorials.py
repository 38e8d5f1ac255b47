"""Each tutorial runs as a reader runs it: block after block in one folder, and its output is what the page shows."""

from __future__ import annotations

import contextlib
import html
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from glasshouse.cli import app
from tests.manual import ROOT, TUTORIALS

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', flags=re.MULTILINE | re.DOTALL)
DIGITS = re.compile(r"\d+(\.\d+)?")


class Part(NamedTuple):
    """A block of a tutorial."""

    language: str
    file: str  # that a reader writes it to
    text: str


class Page:
    """A tutorial while it is read: what its blocks have defined, and what each of them printed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.parts = [Part(*found) for found in FENCE.findall((ROOT / "docs" / name).read_text())]
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: list[str] = []

    def read_to(self, number: int) -> str:
        """Run all blocks up to this one that have not run yet; what the last of them printed."""
        with contextlib.chdir(self.folder):
            while len(self.printed) <= number:
                self.printed.append(self._run(self.parts[len(self.printed)]))
        return self.printed[number]

    def _run(self, part: Part) -> str:
        if part.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(part.text, "tutorial", "exec"), self.names)  # noqa: S102 (our own manual)
            return out.getvalue()
        if part.language == "yaml":
            Path(part.file).write_text(part.text)
        return "".join(command(line) for line in part.text.splitlines()) if part.language == "sh" else ""


def command(line: str) -> str:
    program, *arguments = line.split()
    assert program == "glasshouse"
    quiet = ["--quiet"] if arguments[0] in ("audit", "advise") else []
    done = CliRunner().invoke(app, [*arguments, *quiet])
    assert done.exit_code in ((0, 3, 4) if arguments[0] == "check" else (0,)), done.exception or done.output
    if arguments[0] != "audit":
        return done.output
    page = (Path(arguments[-1]) / "report.html").read_text()  # what its first page says
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)))


def words(text: str) -> str:
    return " ".join(text.replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    return {name: Page(name, tmp_path_factory.mktemp(Path(name).stem)) for name in TUTORIALS}


BLOCKS = [
    pytest.param(name, number, id=f"{name}-{number + 1}-{part.language}")
    for name in TUTORIALS
    for number, part in enumerate(Page(name, Path()).parts)
]


@pytest.mark.parametrize(("name", "number"), BLOCKS)
def test_a_block_of_a_tutorial_runs_after_those_before_it_and_prints_what_the_page_shows(
    name: str, number: int, pages: dict[str, Page]
) -> None:
    page = pages[name]
    page.read_to(number)
    part = page.parts[number]
    if part.language != "text":
        return
    before = words(page.printed[number - 1])
    # figures of trees are the same everywhere; those of networks differ in their last digits between processors
    exact = name == "tutorial-table.md"
    for line in filter(None, map(words, part.text.splitlines())):
        assert line in before if exact else DIGITS.sub("0", line) in DIGITS.sub("0", before), before


def test_tutorials_end_with_a_decision_that_follows_from_the_exit_codes(pages: dict[str, Page]) -> None:
    first, second = pages["tutorial-table.md"], pages["tutorial-gnn.md"]
    for page in (first, second):
        page.read_to(len(page.parts) - 1)
    codes = {
        run: CliRunner().invoke(app, ["check", str(page.folder / "runs" / run), *more]).exit_code
        for page, run, more in (
            (first, "first", ["--policy", str(first.folder / "policy.yaml")]),
            (first, "second", ["--policy", str(first.folder / "policy.yaml")]),
            (second, "gnn", []),
        )
    }
    assert codes == {"first": 3, "second": 0, "gnn": 3}


def test_pictures_of_tutorials_are_small() -> None:
    shown = [
        found for name in TUTORIALS for found in re.findall(r"\((images/[^)]+)\)", (ROOT / "docs" / name).read_text())
    ]
    assert len(shown) == len(TUTORIALS)
    assert all((ROOT / "docs" / one).stat().st_size < 150 * 1024 for one in shown)
