from __future__ import annotations

import numpy as np
import pytest

from glasshouse import Evidence
from glasshouse.evaluation.checks.members import (
    doubtful_members,
    shared_losses,
    shared_nodes,
    shared_records,
    swapped_members,
)


def test_swapped_members_are_seldom_said_without_a_cause_and_mostly_with_one() -> None:
    """Simulated: 2 000 targets that leak nothing, and 200 whose mask is inverted and that leak a little (AUC 0.6)."""
    source = np.random.default_rng(0)
    members = np.arange(600) < 300
    alarms = sum(bool(swapped_members(source.exponential(size=600), members, None, None)) for _ in range(2000))
    assert alarms <= 5  # one in two thousand is expected
    inverted = np.where(members, 1.5, 1.0)  # P(other < member) = 1.5 / 2.5
    found = sum(bool(swapped_members(source.exponential(inverted), members, 0.8, 0.9)) for _ in range(200))
    assert found > 150


def test_members_that_are_a_little_harder_are_not_called_swapped() -> None:
    source = np.random.default_rng(0)
    members = np.arange(100_000) < 50_000
    loss = source.exponential(np.where(members, 1.05, 1.0))  # AUC 0.488, surely below one half
    assert swapped_members(loss, members, 0.9, 0.9) == ()


@pytest.mark.parametrize("share", [0.0, 0.005, 0.3])
def test_equal_records_are_counted_as_by_hand(share: float) -> None:
    source = np.random.default_rng(0)
    members = np.arange(2000) < 1000
    keys = np.arange(2000)
    copied = 1000 + np.flatnonzero(source.random(1000) < share)
    keys[copied] = source.integers(1000, size=len(copied))
    found = shared_records(keys.astype(str), members)
    by_hand = sum(int(key) in set(keys[members].tolist()) for key in keys[~members])
    lines = (*found.warnings, *found.notes)
    assert [line.startswith(f"{by_hand} of 1000 non-members") for line in lines] == [True] * bool(by_hand)
    assert bool(found.warnings) == (by_hand >= 10)


def test_losses_in_coarse_steps_are_not_taken_for_equal_records() -> None:
    source = np.random.default_rng(0)
    members = np.arange(400) < 200
    coarse = source.integers(3, size=(5, 400)).astype(float)
    evidence = Evidence(target_loss=coarse[0], shadow_loss=coarse[1:], shadow_members=source.random((4, 400)) < 0.5)
    assert shared_losses(evidence, members) == ((), ())


def test_nodes_whose_features_tell_nothing_apart_are_not_compared() -> None:
    members = np.arange(100) < 50
    assert shared_nodes(np.array(["same"] * 100), members) == ()
    assert len(shared_nodes(np.array([*map(str, range(50)), *map(str, range(50))]), members)) == 1


def test_a_target_like_its_shadow_models_fits_its_members_as_they_do() -> None:
    source = np.random.default_rng(0)
    rows = source.random((9, 500)) < 0.5
    loss = source.exponential(np.where(rows, 0.2, 1.0))
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=rows[1:])
    assert doubtful_members(evidence, rows[0]) == ()
    lost = Evidence(target_loss=loss[0] + 2.0, shadow_loss=loss[1:], shadow_members=rows[1:])
    assert len(doubtful_members(lost, rows[0])) == 1


def test_targets_of_the_pools_kind_are_never_called_mixed_up_and_wrong_masks_mostly_are() -> None:
    """Simulated: 300 small audits of models that leak; then the same with the target's mask permuted, or moved."""
    source = np.random.default_rng(1)
    alarms = permuted = moved = 0
    for _ in range(300):
        rows = source.random((7, 300)) < 0.5
        loss = source.exponential(np.where(rows, 0.3, 1.0))
        evidence = Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=rows[1:])
        alarms += bool(doubtful_members(evidence, rows[0]))
        permuted += bool(doubtful_members(evidence, source.permutation(rows[0])))
        moved += ["np.roll(members, -2)" in one for one in doubtful_members(evidence, np.roll(rows[0], 2))] == [True]
    assert alarms == 0
    assert permuted > 200
    assert moved > 290


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("alike", [1, 3])
def test_neighbours_that_are_alike_do_not_make_a_right_mask_look_moved(alike: int, share: float) -> None:
    """Each record stands ``alike`` times in a row, and a copy of a member leaks as the member does."""
    source = np.random.default_rng(2)
    alarms = 0
    for _ in range(200):
        rows = source.random((5, 300)) < share
        trained = np.repeat(rows.reshape(5, -1, alike).any(axis=2), alike, axis=1)
        loss = source.exponential(np.where(trained, 0.3, 1.0)) ** 2  # far tails
        evidence = Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=rows[1:])
        alarms += bool(doubtful_members(evidence, rows[0]))
        alarms += bool(share == 0.5 and doubtful_members(Evidence(target_loss=loss[0]), rows[0]))
    assert alarms <= 2
