"""The table of cases in the manual: every row names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_case_names_a_test_that_exists() -> None:
    rows = [line for line in (ROOT / "docs" / "no-false-verdict.md").read_text().splitlines() if line.startswith("| ")]
    cases = rows[2:] if rows[1].startswith("| ---") else rows[1:]
    assert len(cases) >= 30
    for row in cases:
        place, _, name = row.split("|")[-2].strip(" `").partition("::")
        path = ROOT / "tests" / place
        assert path.is_file(), row
        assert not name or re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE), row
