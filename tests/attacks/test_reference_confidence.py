from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks.base import expected_confidence, simulated_confidence
from glasshouse.evidence import Mode
from tests.strategies import random_evidence


@pytest.mark.parametrize("mode", ["online", "offline"])
@given(random_evidence(min_records=2, min_models=4))
def test_simulated_targets_get_what_their_own_evidence_gives(mode: Mode, evidence: Evidence) -> None:
    for fast, slow in zip(simulated_confidence(evidence, mode), evidence.simulated(), strict=True):
        np.testing.assert_allclose(fast.expected, expected_confidence(slow.view, mode), rtol=1e-12, atol=1e-13)
        assert (fast.loss == slow.view.target_loss).all()
        assert (fast.members == slow.members).all()


def test_references_whose_confidence_is_far_below_that_of_others_lose_no_digits() -> None:
    members = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool)
    loss = np.array([[0.0, 0.0], [0.0, 0.0], [800.0, 1.0], [900.0, 1.0]])
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
    first = next(simulated_confidence(evidence, "online"))
    assert first.expected[0] == pytest.approx(-800.0 - np.log(2))


def test_a_record_without_out_models_among_the_references_is_refused() -> None:
    members = np.array([[1, 1], [0, 0], [1, 1], [1, 0]], dtype=bool)
    evidence = Evidence(target_loss=[0.1, 0.2], shadow_loss=np.ones((4, 2)), shadow_members=members)
    with pytest.raises(InputError, match="has 0 out-models"):
        list(simulated_confidence(evidence, "offline"))
