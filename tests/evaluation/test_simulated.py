"""Figures of simulated targets: what a choice of attack may look at."""

from __future__ import annotations

import numpy as np

from glasshouse.evaluation.roc import auc, tpr_at_fpr
from glasshouse.evaluation.thresholds import rate_with_ties, simulated_figures, simulated_summaries


def test_figures_are_means_over_targets() -> None:
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=300), rng.random(300) < 0.5) for _ in range(5)]
    found = simulated_figures(simulated_summaries(pairs, [0.1, 0.05]))
    assert found.targets == 5
    assert found.auc == np.mean([auc(*pair) for pair in pairs])
    assert found.strengths == tuple(np.mean([tpr_at_fpr(*pair, fpr) for pair in pairs]) for fpr in (0.1, 0.05))


def test_ties_that_keep_a_rate_from_being_reached_are_broken_at_random() -> None:
    members = np.arange(40) < 20
    assert rate_with_ties(np.asarray(members * (np.arange(40) % 2), dtype=np.float64), members, 0.1) == (0.5, True)
    assert rate_with_ties(np.asarray(np.arange(40) % 2, dtype=np.float64), members, 0.1) == (0.1, False)
