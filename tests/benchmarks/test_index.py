"""The index of the benchmarks names every result and every script that has one."""

from __future__ import annotations

import re

from tests.benchmarks.scripts import BENCHMARKS


def test_every_result_has_a_row_with_its_script_and_every_link_leads_to_a_file() -> None:
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w/.-]+)\)", page)
    assert [link for link in links if not (BENCHMARKS / link).exists()] == []
    results = {f"{path.parent.name}/{path.name}" for path in BENCHMARKS.glob("*/*.md")}
    assert results - set(links) == set()
    for row in page.splitlines():
        if row.startswith("| ") and "](" in row:
            assert re.search(r"\]\([\w/-]+\.py\)", row), row
