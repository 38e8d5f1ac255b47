"""What README and manual tell a reader to run: every fenced block, and every command in a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIALS = ("tutorial-table.md", "tutorial-gnn.md")  # their blocks run in order, by tests/docs/test_tutorials.py


class Block(NamedTuple):
    """A fenced block: its page, its number on that page, its language and its text."""

    page: str
    number: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """Its place, for the names of tests."""
        return f"{self.page}-{self.number}-{self.language}"


def blocks() -> list[Block]:
    """All fenced blocks, page by page."""
    found = []
    for page in PAGES:
        fenced = re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        found += [Block(page.name, number, *block) for number, block in enumerate(fenced, start=1)]
    return found


def shell_lines() -> list[str]:
    """Each different line of the shell blocks, without its comment; a tutorial's need what was made before them."""
    shell = [block for block in blocks() if block.language == "sh" and block.page not in TUTORIALS]
    lines = [line for block in shell for line in block.text.splitlines()]
    return list(dict.fromkeys(line for line in (re.sub(r"\s*#.*", "", line) for line in lines) if line))


def commands_in_sentences() -> list[str]:
    """Each different command that stands in backquotes; one may go on in the next line."""
    found = []
    for page in (one for one in PAGES if one.name not in TUTORIALS):
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        found += [" ".join(code.split()) for code in re.findall(r"`(glasshouse [^`]+)`", prose)]
    return list(dict.fromkeys(found))
