from __future__ import annotations

import time

import numpy as np

from glasshouse.attacks import BASE, LiRA, QueryCount
from glasshouse.auditing.result import AuditResult
from glasshouse.evaluation import AttackOutcome, evaluate
from glasshouse.evidence import Evidence
from glasshouse.report import Context, Surroundings, render_html


def test_a_report_of_many_records_is_small_and_quick() -> None:
    """A tenth of a million; benchmarks/scale/million.py has all of them."""
    count = 100_000
    random = np.random.default_rng(0)
    members = random.random(count) < 0.5
    outcomes, labels = {}, random.integers(10, size=count)
    for name, attack in {"base": BASE(), "lira": LiRA()}.items():
        scores = 1 / (1 + np.exp(-random.normal(size=count) - members))
        found = evaluate(scores, members)
        outcomes[name] = AttackOutcome(attack, scores, (), found, 0.1, queries=QueryCount(9.0))
    edges = random.integers(count, size=(2, 2 * count))
    started = time.process_time()
    none = np.empty((0, count))
    summary = AuditResult(
        evidence=Evidence(target_loss=np.ones(count), shadow_loss=none, shadow_members=none.astype(bool)),
        outcomes=outcomes,
        members=members,
        labels=labels,
        fprs=(0.01, 0.001),
        verdict_attack=None,
        privacy=None,
        context=Context(shadows=8, mode="online"),
        surroundings=Surroundings(edges, members=members, labels=labels, nodes=np.arange(count)),
    ).summary()
    page = render_html(summary)
    seconds = time.process_time() - started
    assert len(page.encode()) < 3_000_000
    assert seconds < 20  # of the processor; about one
    assert summary.records == count
    assert summary.top_records.height == 100
