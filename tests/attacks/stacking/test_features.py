from __future__ import annotations

import numpy as np
import pytest

from glasshouse.attacks import BASE, BaVarIA, LiRA
from glasshouse.attacks.stacking import Answers, record_features
from glasshouse.errors import InputError
from tests.strategies import gaussian_evidence


def test_the_features_are_the_single_attacks_themselves() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    answers = Answers(evidence.target_loss, evidence.shadow_loss, evidence.shadow_members)
    found = record_features(answers, mode="online")
    assert found["base"] == pytest.approx(BASE().log_odds(evidence))
    assert found["ratio"] == pytest.approx(LiRA(variance="global").score(evidence))
    assert found["own_ratio"] == pytest.approx(BaVarIA().score(evidence))


def test_offline_no_in_model_of_a_record_is_looked_at() -> None:
    evidence, _ = gaussian_evidence(records=50, models=8, shift=1.0, seed=0)
    answers = Answers(evidence.target_loss, evidence.shadow_loss, evidence.shadow_members)
    changed = answers._replace(references=np.where(answers.members, 7.0, answers.references))
    first, second = (record_features(one, mode="offline") for one in (answers, changed))
    assert all((first[name] == second[name]).all() for name in first)


def test_a_record_without_out_models_is_refused_by_name() -> None:
    answers = Answers(np.ones(1), np.ones((2, 1)), np.ones((2, 1), dtype=bool))
    with pytest.raises(InputError, match="without out-models"):
        record_features(answers, mode="online")


def test_a_single_model_a_side_has_no_spread_and_is_no_error() -> None:
    answers = Answers(np.ones(1), np.array([[0.5], [2.0]]), np.array([[True], [False]]))
    found = record_features(answers, mode="online")
    assert all(np.isfinite(value).all() for value in found.values())
