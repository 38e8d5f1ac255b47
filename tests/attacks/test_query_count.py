from __future__ import annotations

import pytest

from glasshouse import audit_evidence
from glasshouse.attacks import BASE, RMIA, AttackR, LossThreshold, QueryCount, ShadowClassifier
from glasshouse.attacks.attack import Attack
from tests.strategies import gaussian_evidence

EVIDENCE, MEMBERS = gaussian_evidence(records=200, models=8, shift=2.0, seed=0)


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        (BASE(), QueryCount(9.0)),
        (BASE(mode="offline"), QueryCount(5.0)),  # the target and the four models without the record
        (RMIA(), QueryCount(9.0, shared=9 * 200)),
        (AttackR(), QueryCount(5.0)),
        (LossThreshold(), QueryCount(1.0)),
        (ShadowClassifier(examples=1000), QueryCount(1.0, shared=1000)),
    ],
)
def test_an_attack_knows_how_often_it_asks(attack: Attack, expected: QueryCount) -> None:
    assert attack.queries(EVIDENCE) == expected


def test_an_outcome_carries_the_queries() -> None:
    outcome = audit_evidence(EVIDENCE, members=MEMBERS, attacks=["base"]).outcomes["base"]
    assert outcome.queries is not None
    assert outcome.queries.total(200) == 1800
