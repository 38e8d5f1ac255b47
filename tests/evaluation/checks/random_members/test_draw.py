"""Which members look drawn at random: from what is known about the records, never from the target."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from glasshouse import Evidence
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation.checks.random_members import Known, _some, check_random_members, columns_of

DIGITS, CLASSES = load_digits(return_X_y=True)


def evidence(count: int, *, target: float = 1.0) -> Evidence:
    random = np.random.default_rng(0)
    shadows, halves = random.exponential(size=(4, count)), random.random((4, count)) < 0.5
    return Evidence(target_loss=np.full(count, target), shadow_loss=shadows, shadow_members=halves)


def random_half(count: int, seed: int = 0) -> BoolArray:
    return np.random.default_rng(seed).permutation(count) < count // 2


@pytest.mark.parametrize(
    "members",
    [np.arange(1797) < 898, DIGITS.sum(axis=1) > 320, np.isin(CLASSES, (1, 2, 3))],
    ids=["earlier rows", "brighter", "classes"],
)
def test_members_of_another_kind_are_found(members: BoolArray) -> None:
    drawn = check_random_members(Known(x=DIGITS, labels=CLASSES), evidence(1797), members, seed=0)
    assert drawn is not None
    assert drawn.found
    assert drawn.blind.auc > 0.6
    assert drawn.warning().startswith("Members can be told from non-members without the model")


def test_random_members_are_not() -> None:
    drawn = check_random_members(Known(x=DIGITS, labels=CLASSES), evidence(1797), random_half(1797), seed=0)
    assert drawn is not None
    assert (drawn.found, drawn.withheld, drawn.warning()) == (False, "", "")
    assert drawn.sentence().startswith(
        f"Without the model, members are told from non-members with AUC {drawn.blind.auc:.2f} ("
    )


def test_the_answers_of_the_target_are_never_used() -> None:
    members = random_half(300)
    one, other = (
        check_random_members(Known(x=DIGITS[:300]), evidence(300, target=t), members, seed=0) for t in (0.1, 5.0)
    )
    leak = Evidence(
        target_loss=np.where(members, 0.0, 9.0),
        shadow_loss=evidence(300).shadow_loss,
        shadow_members=evidence(300).shadow_members,
    )
    assert one == other == check_random_members(Known(x=DIGITS[:300]), leak, members, seed=0)


def test_saved_evidence_without_features_is_tested_by_labels_and_answers() -> None:
    members = random_half(400)
    shadows = np.random.default_rng(1).exponential(size=(4, 400)) + members  # members are harder for everybody
    harder = Evidence(target_loss=shadows[0], shadow_loss=shadows, shadow_members=np.zeros((4, 400)))
    drawn = check_random_members(Known(), harder, members, seed=0)
    assert drawn is not None
    assert drawn.found
    by_label = check_random_members(Known(labels=members.astype(int)), evidence(400), members, seed=0)
    assert by_label is not None
    assert by_label.found


def test_few_records_are_not_tested() -> None:
    assert check_random_members(Known(), evidence(30), np.arange(30) < 9, seed=0) is None


def test_a_choice_of_many_records_keeps_the_rarer_side() -> None:
    members = np.arange(1000) < 60
    rows = _some(members, 100, np.random.default_rng(0))
    assert len(rows) == len(set(rows.tolist())) == 100
    assert members[rows].sum() == 50
    rows = _some(members, 500, np.random.default_rng(0))
    assert (members[rows].sum(), len(rows)) == (60, 500)
    assert np.array_equal(_some(members, 5000, np.random.default_rng(0)), np.arange(1000))


def test_columns_of_nodes_are_their_neighbours_means_and_degrees() -> None:
    """A path of four and a lone node, the last three are audited; a repeated edge and a loop change nothing."""
    pairs = np.array([[0, 1, 2, 1, 3], [1, 2, 3, 0, 3]])
    known = Known(x=np.array([[1.0], [2.0], [4.0], [8.0], [9.0]]), pairs=pairs, audited=np.array([2, 3, 4]))
    flat = Evidence(target_loss=np.ones(3), shadow_loss=np.ones((2, 3)), shadow_members=np.zeros((2, 3)))
    features, answers = columns_of(known, flat, np.arange(3), np.random.default_rng(0))
    assert [np.argsort(column).tolist() for column in features.T] == [[0, 1, 2], [2, 1, 0]]  # 4 8 9; means 5 4 0
    assert np.argsort(answers[:, 0]).tolist() == [2, 1, 0]  # degrees 2 1 0
    assert known.pairs_of_audited().tolist() == [[0, 1], [1, 1]]
