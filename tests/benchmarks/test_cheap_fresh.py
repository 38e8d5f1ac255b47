"""A small version of benchmarks/records/cheap_fresh.py."""

from __future__ import annotations

import re

import numpy as np

from glasshouse.evaluation.quick_estimate import FRESH
from tests.benchmarks.scripts import benchmark
from tests.manual import ROOT


def test_a_fresh_table_is_tried_and_told() -> None:
    bench, problems = benchmark("cheap_fresh"), benchmark("cheap_problems")
    random = np.random.default_rng(0)
    members = np.arange(600) % 2 == 0
    loss = random.exponential(np.where(members, 0.3, 1.0))
    shared = {"source": "made up", "trainer": "none", "loss": loss, "members": members, "reference": loss[::-1].copy()}
    given = {**shared, "train_accuracy": 1.0, "test_accuracy": 0.8, "attack": "base"}
    found = list(bench.tries([problems.Case(**given, auc=auc, tpr=0.2) for auc in (0.8, 0.5)]))
    assert [one.models for one in found] == [0, 1, 0, 1]
    assert [one.held[0] for one in found if not one.models] == [True, False]  # the loss alone has far more than 0.5
    told = "\n".join(bench.page(found))
    assert told.count("(outside)") == sum(not held for one in found for held in one.held)
    assert f"of {len(found)} and the TPR" in told


def test_what_reports_say_is_what_the_page_has() -> None:
    page = (ROOT / "benchmarks" / "records" / "cheap_fresh.md").read_text()
    said = re.search(r"the AUC of (\d+) of (\d+) and the TPR of (\d+) of (\d+)", page)
    assert said is not None
    area, tried, rate, again = map(int, said.groups())
    assert (area / tried, rate / again) == FRESH
    assert page.count("(outside)") == 2 * tried - area - rate
