"""A small version of the null lab, so that it keeps running and its limits keep holding."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import benchmark


@pytest.mark.parametrize(("kind", "records", "runs"), [("noise", 300, 5), ("private", 200, 3), ("never seen", 200, 3)])
def test_audits_without_a_leak_seldom_cry_wolf(kind: str, records: int, runs: int) -> None:
    """Each run is two audits and their comparison; 5 % of the audits may say "leak", more than a quarter never do."""
    null = benchmark("null")
    case = null.Case(kind, records, attacks=("base", "lira", "rmia", "loss"))
    found = [null.once(case, seed) for seed in range(runs)]
    audits = sum(one.runs for one in found)
    for flag in ("verdict", "any of these", "“not drawn at random”"):
        assert sum(one.run[flag] for one in found) <= max(1, audits // 4), flag
    assert sum(one.differ for one in found) <= max(1, runs // 4)
    for one in found:
        assert one.run["ε > 0"] <= one.run["verdict"]
        assert one.run["a group"] <= one.run["verdict"]


def test_the_page_names_every_case_and_attack() -> None:
    null = benchmark("null")
    case = null.Case("noise", 200, attacks=("base", "loss"))
    page = null.written({case: null.once(case, 0)}, "python benchmarks/statistics/null.py")
    assert "| noise | 200 | 50 % | 2 | 2 |" in page
    assert "| base |" in page
    assert "| loss |" in page
