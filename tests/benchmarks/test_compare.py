"""A small version of benchmarks/statistics/compare.py: runs that do not differ are seldom called different."""

from __future__ import annotations

import pytest

from tests.benchmarks.scripts import benchmark

compare = benchmark("compare")


@pytest.mark.parametrize("kind", ["independent", "same records"])
@pytest.mark.parametrize(("records", "auc"), [(500, 0.5), (2000, 0.8)])
def test_runs_that_do_not_differ_are_seldom_called_different(kind: str, records: int, auc: float) -> None:
    """Of 60 comparisons 3 are expected at most; 9 or more would happen in less than 0.3 % of such tests."""
    found = compare.measure(compare.Setting(records, 0.5, auc, 0.01, 2, kind), repeats=60, draws=300)
    assert found.tpr * 60 < 9
    assert found.auc * 60 < 9


def test_runs_that_do_differ_are_found() -> None:
    setting = compare.Setting(5000, 0.5, 0.7, 0.01, 2, "same records")
    assert compare.measure(setting, repeats=10, draws=300, gap=1.0).tpr == 1.0
