from __future__ import annotations

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.stacking.fitting import ALL, cross_fit
from glasshouse.attacks.stacking.learners import Boosted, Learner, Linear

LEARNERS: dict[str, Learner] = {"linear": Linear(), "boosted": Boosted(rounds=20, fits=1)}
GROUPS = np.array([0, 0, 1, 1])


def examples(seed: int = 0, records: int = 300) -> tuple[FloatArray, BoolArray]:
    random = np.random.default_rng(seed)
    members = random.random((4, records)) < 0.5
    return random.normal(size=(4, records, 3)) + members[:, :, None], members


def test_a_record_of_a_fold_is_judged_by_other_folds_only() -> None:
    """Change all that simulated targets say of fold 1 and who trained on it: its judgement stays, bit by bit."""
    rows, members = examples()
    folds = np.arange(300) % 2
    changed, others = rows.copy(), members.copy()
    changed[:, folds == 1], others[:, folds == 1] = 99.0, ~members[:, folds == 1]
    new = np.random.default_rng(1).normal(size=(300, 3))
    first = cross_fit(rows, members, groups=GROUPS, folds=folds, learners=LEARNERS, seed=0)
    second = cross_fit(changed, others, groups=GROUPS, folds=folds, learners=LEARNERS, seed=0)
    for learner in (*LEARNERS, ALL):
        one, other = (fit.log_odds(new, learner=learner) for fit in (first, second))
        assert (one[folds == 1] == other[folds == 1]).all()
        assert (one[folds == 0] != other[folds == 0]).any()


def test_held_out_targets_are_judged_without_their_group() -> None:
    rows, members = examples()
    folds = np.zeros(300, dtype=int)
    turned = members.copy()
    turned[:2] = ~turned[:2]
    first, second = (
        cross_fit(rows, who, groups=GROUPS, folds=folds, learners={"linear": Linear()}, seed=0)
        for who in (members, turned)
    )
    assert (first.held_out[:2] == second.held_out[:2]).all()
    assert (first.held_out[2:] != second.held_out[2:]).any()


def test_threads_and_repetition_change_no_bit() -> None:
    rows, members = examples()
    fits = [
        cross_fit(rows, members, groups=GROUPS, folds=np.arange(300) % 2, learners=LEARNERS, seed=0, jobs=jobs)
        for jobs in (1, 2)
    ]
    assert (fits[0].held_out == fits[1].held_out).all()
    assert (fits[0].log_odds(rows[0]) == fits[1].log_odds(rows[0])).all()


def test_the_learner_with_the_smallest_loss_is_taken() -> None:
    rows, members = examples(records=60)  # far too few for trees
    fit = cross_fit(rows, members, groups=GROUPS, folds=np.zeros(60, dtype=int), learners=LEARNERS, seed=0)
    assert fit.learner == "linear"
    assert fit.log_loss["linear"] == min(fit.log_loss.values())


def test_boosting_is_taken_where_a_line_sees_nothing() -> None:
    rows, _ = examples(records=2000)
    members = rows[:, :, 0] * rows[:, :, 1] > 0
    fit = cross_fit(rows, members, groups=GROUPS, folds=np.zeros(2000, dtype=int), learners=LEARNERS, seed=0)
    assert fit.learner == "boosted"
