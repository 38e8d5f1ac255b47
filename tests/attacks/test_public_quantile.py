from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence, InputError
from glasshouse.attacks import PublicQuantile
from glasshouse.attacks.quantile import _by_class, _components
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation import auc
from glasshouse.evidence import PublicRecords


def made(*, leak: float, records: int = 900, width: int = 3, seed: int = 0) -> tuple[Evidence, BoolArray]:
    """Margins that depend on features, with another slope per class, and on membership; the last third is public."""
    random = np.random.default_rng(seed)
    x, labels = random.normal(size=(records, width)), np.arange(records) % 2
    members = (np.arange(records) % 4 < 2) & (np.arange(records) < 2 * records // 3)
    margins = 3.0 * x[:, 0] * np.where(labels == 0, 1, -1) + random.normal(size=records) + leak * members
    loss, judged = np.logaddexp(0.0, -margins), np.arange(records) < 2 * records // 3
    public = PublicRecords(loss=loss[~judged], labels=labels[~judged], features=x[~judged], audited=x[judged])
    return Evidence(target_loss=loss[judged], labels=labels[judged], public=public), members[judged]


def test_what_the_features_explain_no_longer_hides_the_members() -> None:
    evidence, members = made(leak=1.0)
    best = auc(PublicQuantile().score(evidence), members)
    assert best > auc(-evidence.target_loss, members) + 0.08
    assert best < 0.80  # 0.76 is the most that unit noise allows


def test_without_a_leak_it_finds_nothing() -> None:
    """The public records are not judged, so what is learned from them by heart does not count."""
    areas = []
    for seed in range(8):
        evidence, members = made(leak=0.0, width=100, seed=seed)
        areas.append(auc(PublicQuantile().score(evidence), members))
    assert abs(np.mean(areas) - 0.5) < 0.035  # four standard errors


def test_it_does_not_look_at_more_than_its_own_record() -> None:
    """A judged record's loss changes only its own score."""
    evidence, _ = made(leak=1.0)
    loss = evidence.target_loss.copy()
    loss[0] += 5.0
    other = Evidence(target_loss=loss, labels=evidence.labels, public=evidence.public)
    before, after = (PublicQuantile().score(one) for one in (evidence, other))
    assert after[0] < before[0]
    assert (after[1:] == before[1:]).all()


def test_wide_features_become_components_and_constant_ones_are_dropped() -> None:
    features = np.random.default_rng(0).normal(size=(50, 9))
    features[:, 4] = 7.0
    assert _components(features, 8).shape == (50, 8)
    narrow = _components(features, 3)
    assert narrow.shape == (50, 3)
    np.testing.assert_allclose(narrow.std(axis=0), 1.0)


def test_every_class_has_its_own_slopes() -> None:
    made_of = _by_class(np.array([[2.0, 3.0], [5.0, 7.0]]), np.array([0, 1]), 2)
    assert made_of.tolist() == [[1, 0, 2, 3, 2, 3, 0, 0], [0, 1, 5, 7, 0, 0, 5, 7]]


def test_public_records_are_needed() -> None:
    with pytest.raises(InputError, match="pass public=mask"):
        PublicQuantile().score(Evidence(target_loss=[0.1, 0.2], labels=[0, 1]))
