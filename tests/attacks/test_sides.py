from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks.regressed import mean_margins
from glasshouse.attacks.sides import moments, simulated_means
from glasshouse.numerics import loss_to_margin
from tests.strategies import random_evidence


def test_moments_are_those_of_the_chosen_entries_of_each_column() -> None:
    random = np.random.default_rng(0)
    values, who = random.normal(size=(9, 5)), random.random((9, 5)) < 0.5
    who[0] = True
    found = moments(values, who)
    for v in range(5):
        chosen = values[who[:, v], v]
        assert found.models[v] == len(chosen)
        assert found.mean[v] == pytest.approx(chosen.mean())
        assert found.squares[v] == pytest.approx(len(chosen) * chosen.var())


@given(random_evidence(min_records=2, min_models=4))
def test_means_of_simulated_targets_are_those_of_their_own_evidence(evidence: Evidence) -> None:
    for fast, slow in zip(simulated_means(evidence, [True, False]), evidence.simulated(), strict=True):
        assert (fast.means == mean_margins(slow.view, "online")).all()
        assert (fast.margins == loss_to_margin(slow.view.target_loss)).all()
        assert (fast.members == slow.members).all()


def test_a_record_without_in_models_among_the_references_is_refused() -> None:
    members = np.array([[1, 0], [0, 1], [0, 1], [0, 0]], dtype=bool)
    evidence = Evidence(target_loss=[0.1, 0.2], shadow_loss=np.ones((4, 2)), shadow_members=members)
    with pytest.raises(InputError, match="has 0 in-models"):
        list(simulated_means(evidence, [True]))
