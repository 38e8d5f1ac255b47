from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from glasshouse import Evidence, InputError
from glasshouse.attacks import ClassLoss
from glasshouse.core.numerics import loss_to_margin
from glasshouse.evaluation import auc
from tests.strategies import random_evidence


@given(random_evidence())
def test_it_is_the_margin_minus_the_median_of_the_class_record_by_record(evidence: Evidence) -> None:
    labels = np.arange(evidence.records) % 3
    scores = ClassLoss().score(Evidence(target_loss=evidence.target_loss, labels=labels))
    margins = loss_to_margin(evidence.target_loss)
    for record in range(evidence.records):
        same = [margins[other] for other in range(evidence.records) if labels[other] == labels[record]]
        assert scores[record] == margins[record] - np.median(same)


def test_a_class_that_is_harder_than_the_others_does_not_hide_its_members() -> None:
    random = np.random.default_rng(0)
    members, labels = np.arange(2000) % 2 == 0, np.arange(2000) // 1000
    loss = np.logaddexp(0.0, -(random.normal(size=2000) + members - 6.0 * labels))
    evidence = Evidence(target_loss=loss, labels=labels)
    assert auc(ClassLoss().score(evidence), members) > auc(-loss, members) + 0.1


def test_labels_are_needed() -> None:
    with pytest.raises(InputError, match="no labels"):
        ClassLoss().score(Evidence(target_loss=[0.1, 0.2]))
