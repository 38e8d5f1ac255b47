from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse_experiments.bench import Judged
from glasshouse_experiments.measures import at_shares, at_threshold, collected, cut_at, ranking

NAME = ("online", "8", "", "BASE")


def judged(scores: list[float], truth: list[int]) -> Judged:
    return Judged(np.array(scores, dtype=float), np.array(truth, dtype=bool), 0.0)


def test_rates_at_a_threshold_are_counted() -> None:
    one = judged([0.9, 0.8, 0.3, 0.85, 0.1], [1, 1, 1, 0, 0])
    assert at_threshold(one, 0.8) == pytest.approx((200 / 3, 50.0))
    assert at_shares(one, [0.9]) == {"tpr_at_beta0.9_pct": pytest.approx(100 / 3), "fpr_at_beta0.9_pct": 0.0}


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=4), st.sampled_from([0.0, 0.1, 0.5]))
def test_a_cut_keeps_the_rate_and_no_lower_score_would(rows: list[tuple[int, bool]], fpr: float) -> None:
    scores, truth = np.array([score for score, _ in rows], dtype=float), np.array([member for _, member in rows])
    if truth.all() or not truth.any():
        return
    cut = cut_at(Judged(scores, truth, 0.0), fpr)
    allowed = [score for score in np.unique(scores) if (scores[~truth] >= score).mean() <= fpr]
    assert cut == min(allowed, default=scores.max())


def test_a_cell_has_one_value_a_target() -> None:
    good, bad = judged([1, 0], [1, 0]), judged([0, 1], [1, 0])
    cells = collected([{NAME: good}, {NAME: bad}], ranking, table="MIAGNN", dataset="Cora")
    assert [cell.metric for cell in cells] == ["auc_pct", "tpr_at_fpr1_pct", "tpr_at_fpr0.1_pct"]
    assert cells[0].values == (100.0, 0.0)
