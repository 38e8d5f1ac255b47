from __future__ import annotations

import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks import AttackR
from tests.strategies import random_evidence


@given(random_evidence())
def test_the_rank_among_out_models_is_counted(evidence: Evidence) -> None:
    found = AttackR().score(evidence)
    for v in range(evidence.records):
        outside = evidence.shadow_loss[~evidence.shadow_members[:, v], v]
        mine = evidence.target_loss[v]
        share = sum((loss > mine) + (loss == mine) / 2 for loss in outside) / len(outside)
        assert share < found[v] < share + 1 / (4 * len(outside))  # half of the step to the next share


def test_records_of_one_rank_are_ordered_by_their_loss() -> None:
    loss = [0.1, 1e-30, 0.3, 2e-30]
    evidence = Evidence(target_loss=loss, shadow_loss=[[1.0] * 4] * 4, shadow_members=[[0] * 4] * 4)
    assert AttackR().score(evidence).argsort().tolist() == [2, 0, 3, 1]


def test_a_record_that_every_model_knows_is_refused() -> None:
    evidence = Evidence(target_loss=[1.0], shadow_loss=[[1.0], [2.0]], shadow_members=[[1], [1]], ids=["ann"])
    with pytest.raises(InputError, match="record 'ann' has 0 out-models"):
        AttackR().score(evidence)
