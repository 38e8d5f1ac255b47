from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtr

from glasshouse import Evidence
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation.quick_estimate import FEW_MODELS, LEVEL, TABLES, quick_estimate_of, signals


def made(separation: float, records: int = 2000, seed: int = 0) -> tuple[np.ndarray, BoolArray]:
    random = np.random.default_rng(seed)
    members = np.arange(records) % 2 == 0
    return np.logaddexp(0.0, -(random.normal(size=records) + separation * members)), members


def test_the_signals_are_the_figures_of_two_normal_distributions() -> None:
    loss, members = made(1.5, records=40_000)
    separation, tail, doubt = signals(loss, members)
    assert separation == pytest.approx(1.5, abs=0.05)
    # members of N(1.5, 1): 1 % of them are below 1.5 - 2.326, and so many of the others, N(0, 1), are too
    assert ndtr(tail) == pytest.approx(ndtr(1.5 - 2.326), abs=0.02)
    assert doubt == pytest.approx(0.5, abs=0.02)


def test_a_reference_model_adds_two_signals() -> None:
    loss, members = made(1.0)
    found = signals(loss, members, np.zeros(len(loss)))
    assert found[3] == found[0]  # a reference that is the same for all records changes no order
    assert len(found) == 5


def test_more_leak_gives_a_larger_estimate_inside_its_interval() -> None:
    found = [
        quick_estimate_of(Evidence(target_loss=loss), members) for loss, members in (made(0.2), made(0.8), made(1.5))
    ]
    areas = [one.auc for one in found if one is not None]
    assert len(areas) == 3
    assert areas == sorted(areas)
    for one in found:
        assert one is not None
        assert one.auc_interval.low < one.auc < one.auc_interval.high
        assert one.tpr_interval.low < one.tpr < one.tpr_interval.high


def test_it_says_that_it_is_an_estimate_and_how_often_such_intervals_held() -> None:
    loss, members = made(0.5)
    found = quick_estimate_of(Evidence(target_loss=loss), members)
    assert found is not None
    assert found.sentence().startswith("Estimate, not a measurement")
    assert f"held {100 * TABLES[0].auc.held:.0f} %" in found.sentence()


def test_there_is_no_estimate_with_few_records_many_models_or_unheard_of_figures() -> None:
    loss, members = made(0.5)
    assert quick_estimate_of(Evidence(target_loss=loss[:150]), members[:150]) is None
    two = np.ones((2, 2000))
    assert quick_estimate_of(Evidence(target_loss=loss, shadow_loss=two, shadow_members=two), members) is None
    assert quick_estimate_of(Evidence(target_loss=loss), ~made(9.0)[1]) is not None  # no leak at all is familiar
    strange = dataclasses.replace(TABLES[0], lowest=(2.0, 2.0, 2.0))
    assert quick_estimate_of(Evidence(target_loss=loss), members, tables={0: strange}) is None


def test_the_table_is_whole() -> None:
    assert LEVEL == 0.9
    assert sorted(TABLES) == list(range(FEW_MODELS))
    for models, table in TABLES.items():
        width = len(signals(*made(0.5), np.zeros(2000) if models else None))
        assert {len(one) for one in (table.auc.slopes, table.tpr.slopes, table.lowest, table.highest)} == {width}
        assert table.targets >= 70
        assert table.sources >= 12, "fewer than nine families give no finite interval"
        for relation in (table.auc, table.tpr):
            assert relation.reach > 0
            assert 0.8 <= relation.held <= 1.0, "an interval that holds less often must not be called a 90 % interval"


@pytest.mark.parametrize("models", [0, 1])
def test_without_a_leak_no_interval_lies_below_chance(models: int) -> None:
    """The strongest attack is never worse than guessing; hard records once gave an AUC of 0.36 to 0.45."""
    random = np.random.default_rng(models)
    for _ in range(20):
        members = random.permutation(1000) < 500
        losses = np.logaddexp(0.0, -(random.normal(-1.5, 1.5, 1000) + random.normal(size=(2, 1000))))
        sides = np.array([random.permutation(1000) < 500])
        reference = Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=sides)
        found = quick_estimate_of(reference if models else Evidence(target_loss=losses[0]), members)
        if found is not None:
            assert found.auc >= 0.5
            assert found.tpr >= 0.01
            assert found.auc_interval.high > 0.5
            assert found.auc_interval.low <= 0.52  # 0.5 is within two standard errors of what is measured


@pytest.mark.parametrize("models", [0, 1])
def test_the_estimate_says_what_it_cannot_see(models: int) -> None:
    loss, members = made(0.5)
    other = made(0.0, seed=1)[0][None]
    reference = Evidence(target_loss=loss, shadow_loss=other, shadow_members=~members[None])
    found = quick_estimate_of(reference if models else Evidence(target_loss=loss), members)
    assert found is not None
    assert "a low upper end does not show that the model is safe" in found.sentence()
