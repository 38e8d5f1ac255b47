from __future__ import annotations

from hypothesis import given

from glasshouse import Evidence
from glasshouse.attacks import LossThreshold
from tests.strategies import random_evidence


@given(random_evidence())
def test_the_smaller_loss_ranks_higher(evidence: Evidence) -> None:
    assert (LossThreshold().score(evidence) == -evidence.target_loss).all()
