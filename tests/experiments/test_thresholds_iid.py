from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks import BASE
from glasshouse_experiments.cells import compared
from glasshouse_experiments.iid import thresholds_iid
from tests.experiments.iid_scenes import bench_of_losses


def test_every_cell_of_the_papers_table_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    table = compared(thresholds_iid(bench_of_losses(monkeypatch)))
    assert len(table["verdict"]) == 24
    assert "not printed" not in set(table["verdict"])


def test_a_threshold_keeps_its_rate_and_the_next_lower_score_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of_losses(monkeypatch, targets=1)
    cells = {cell[2:7]: cell.values for cell in thresholds_iid(bench)}
    evidence, truth = next(iter(bench.targets()))
    odds = BASE().log_odds(evidence)
    for metric, fpr in (("threshold_at_fpr1", 0.01), ("threshold_at_fpr0.1", 0.001)):
        (cut,) = cells[("online", "32", "", "BASE", metric)]
        assert (odds[~truth] >= cut).mean() <= fpr
        assert (odds[~truth] >= np.max(odds[odds < cut])).mean() > fpr
