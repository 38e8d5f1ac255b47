"""The tables of cases in the manual and of promises in SECURITY.md: every row names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def missing(named: str, root: Path) -> str:
    """A test that is named ``file::test`` and is not there; empty if it is."""
    place, _, name = named.partition("::")
    path = root / place
    there = path.is_file() and (not name or re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE))
    return "" if there else named


def test_every_case_names_a_test_that_exists() -> None:
    rows = [line for line in (ROOT / "docs" / "no-false-verdict.md").read_text().splitlines() if line.startswith("| ")]
    cases = rows[2:] if rows[1].startswith("| ---") else rows[1:]
    assert len(cases) >= 30
    assert [row for row in cases if missing(row.split("|")[-2].strip(" `"), ROOT / "tests")] == []


def test_every_promise_of_security_names_the_attacker_and_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    attackers = set(re.findall(r"\*\*(an? [a-z ]+|another user)\*\*", text.partition("| promise |")[0]))
    table = text.partition("| promise | against | test |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert len(rows) >= 25
    for promise, against, tests in rows:
        assert set(against.split(", ")) <= attackers, promise
        named = re.findall(r"`(tests/[^`]+::[^`]+)`", tests)
        assert named, promise
        assert [one for one in named if missing(one, ROOT)] == [], promise
    assert attackers == {one for _, against, _ in rows for one in against.split(", ")}, "a promise for each attacker"
