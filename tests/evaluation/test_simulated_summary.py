"""Simulated targets in a few numbers, against the functions that each look at all scores again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation import auc, roc, tpr_at_fpr
from glasshouse.evaluation.pool_size import FewerReferences, compare_references, strength
from glasshouse.evaluation.privacy.bounds import shares_right
from glasshouse.evaluation.thresholds import (
    conformal_p_values,
    simulated_figures,
    simulated_summaries,
    threshold_from,
    thresholds_from,
)
from tests.strategies import gaussian_evidence, scores_and_members


@settings(deadline=None)
@given(scores_and_members(), st.floats(0.01, 0.9))
def test_a_tried_target_has_the_figures_of_its_scores(pair: tuple[FloatArray, BoolArray], fpr: float) -> None:
    (found,) = simulated_summaries([pair], [fpr])
    assert found.auc == auc(*pair) == roc(*pair).area
    assert found.shares_right == shares_right(*pair)
    if found.reached[0]:
        assert found.rates[0] == tpr_at_fpr(*pair, fpr)
        assert ((pair[0] >= found.cuts[0]) & ~pair[1]).sum() <= fpr * (~pair[1]).sum() * (1 + 1e-12)
    else:
        assert tpr_at_fpr(*pair, fpr) == 0.0
        assert not (pair[0] >= found.cuts[0]).any()


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, _ = gaussian_evidence(records=400, models=8, shift=1.0, seed=1)
    scored = list(BASE().simulated_scores(evidence))
    scores = BASE().score(evidence)

    def everything() -> list[object]:
        levels = conformal_p_values(scores, scored).tolist()
        return [
            simulated_figures(simulated_summaries(scored, [0.05])),
            thresholds_from(scored, [0.05]),
            threshold_from(scored, 0.05),
            levels,
        ]

    one = everything()
    monkeypatch.setattr("glasshouse.core.threads._MANY", 1)
    assert everything() == one
    assert side_by_side(lambda value: value + 1, [1, 2, 3], records=10) == [2, 3, 4]


def test_targets_that_differ_much_are_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of the others' thresholds may be far below the scores that are kept of a target."""
    monkeypatch.setattr("glasshouse.evaluation.thresholds._KEPT", 1000)
    random = np.random.default_rng(0)
    scored = [(random.normal(shift, size=6000), random.random(6000) < 0.5) for shift in (0, 0, 0, 50)]
    looks: list[int] = []

    class Again:
        def __iter__(self) -> Iterator[tuple[FloatArray, BoolArray]]:
            looks.append(1)
            return iter(scored)

    found = threshold_from(Again(), 0.01)
    own = [simulated_summaries([pair], [0.01])[0].cuts[0] for pair in scored]
    cuts = [np.mean(np.delete(own, at)) for at in range(4)]
    rates = [(scores[~members] >= cut).mean() for (scores, members), cut in zip(scored, cuts, strict=True)]
    assert found.expected_fpr == np.mean(rates)
    assert rates[-1] == 1.0
    assert len(looks) == 2
    looks.clear()
    scored[3] = scored[2]
    threshold_from(Again(), 0.01)
    assert len(looks) == 1


def test_p_values_count_the_simulated_non_members_above() -> None:
    random = np.random.default_rng(0)
    scored = [(random.integers(0, 9, 50) / 8, random.random(50) < 0.5) for _ in range(3)]
    scores = random.integers(0, 9, 50) / 8
    others = np.concatenate([one[~members] for one, members in scored])
    expected = [(1 + (others >= score).sum()) / (1 + len(others)) for score in scores]
    assert conformal_p_values(scores, scored).tolist() == expected


def test_very_many_records_are_compared_by_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, _ = gaussian_evidence(records=4000, models=8, shift=1.0, seed=2)

    def compared(attack: BASE) -> FewerReferences:
        strengths = [strength(attack, pair, [0.1]) for pair in attack.simulated_scores(evidence)]
        found = compare_references(attack, evidence, strengths, [0.1])
        assert found is not None
        return found

    whole = compared(BASE())
    monkeypatch.setattr("glasshouse.evaluation.pool_size._MOST", 2000)
    half = compared(BASE())
    assert half.strength != whole.strength
    assert half.strength == pytest.approx(whole.strength, abs=0.05)
    assert compared(BASE(prior=np.full(4000, 0.5))) == whole  # a prior per record belongs to all records: all are used
