"""A small version of benchmarks/cheap_fresh.py."""

from __future__ import annotations

import re

import numpy as np

from glasshouse.evaluation.foreseen_table import FRESH
from tests.manual import ROOT
from tests.test_benchmarks import benchmark


def test_a_fresh_table_is_tried_and_told() -> None:
    bench = benchmark("cheap_fresh")
    random = np.random.default_rng(0)
    x = random.normal(size=(600, 20))
    found = list(bench.tries("made up", x, (x[:, 0] > 0).astype(int), seed=0, records=500))
    assert {one.models for one in found} == {0, 1}
    told = "\n".join(bench.page(found))
    assert told.count("(outside)") == sum(not held for one in found for held in one.held)
    assert f"of {len(found)} and the TPR" in told


def test_what_reports_say_is_what_the_page_has() -> None:
    page = (ROOT / "benchmarks" / "cheap_fresh.md").read_text()
    said = re.search(r"the AUC of (\d+) of (\d+) and the TPR of (\d+) of (\d+)", page)
    assert said is not None
    area, tried, rate, again = map(int, said.groups())
    assert (area / tried, rate / again) == FRESH
    assert page.count("(outside)") == 2 * tried - area - rate
