from __future__ import annotations

import time

import numpy as np

from glasshouse.attacks import BASE, LiRA, QueryCount
from glasshouse.core.table import Table
from glasshouse.evaluation import AttackOutcome, evaluate
from glasshouse.report import Context, Surroundings, render_html, summarise


def test_a_report_of_many_records_is_small_and_quick() -> None:
    """A tenth of a million; benchmarks/scale/million.py has all of them."""
    count = 100_000
    random = np.random.default_rng(0)
    members = random.random(count) < 0.5
    outcomes, columns = {}, {"id": np.arange(count).astype(np.str_), "label": random.integers(10, size=count)}
    columns["member"] = members
    for name, attack in {"base": BASE(), "lira": LiRA()}.items():
        scores = 1 / (1 + np.exp(-random.normal(size=count) - members))
        found = evaluate(scores, members)
        outcomes[name] = AttackOutcome(attack, scores, (), found, 0.1, queries=QueryCount(9.0))
    edges = random.integers(count, size=(2, 2 * count))
    started = time.process_time()
    for name, outcome in outcomes.items():
        columns |= {f"{name}_score": outcome.scores, f"{name}_rank": outcome.ranks}
    around = Surroundings(edges, members=members, labels=columns["label"], nodes=np.arange(count))
    columns["degree"] = around.degrees
    summary = summarise(
        outcomes,
        context=Context(shadows=8, mode="online"),
        records=Table(columns),
        fprs=(0.01, 0.001),
        surroundings=around,
    )
    page = render_html(summary)
    seconds = time.process_time() - started
    assert len(page.encode()) < 3_000_000
    assert seconds < 20  # of the processor; about one
    assert summary.records == count
    assert summary.top_records.height == 100
