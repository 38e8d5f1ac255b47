from __future__ import annotations

import _thread
import signal
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from glasshouse.attacks.cross_fit import Rows, count_fits, cross_fit
from glasshouse.attacks.learners import Boosted, Learner, Linear, Predictor
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.randomness import seed_for

LEARNERS: dict[str, Learner] = {"linear": Linear(), "boosted": Boosted(rounds=20, fits=1)}
GROUPS = np.array([0, 0, 1, 1])


def examples(seed: int = 0, records: int = 300) -> tuple[FloatArray, BoolArray]:
    random = np.random.default_rng(seed)
    members = random.random((4, records)) < 0.5
    return random.normal(size=(4, records, 3)) + members[:, :, None], members


def kept(rows: FloatArray) -> Rows:
    """Rows [T, N, F] by target and records."""
    return lambda target, records: rows[target, records]


def test_a_record_of_a_fold_is_judged_by_other_folds_only() -> None:
    """Change all that simulated targets say of fold 1 and who trained on it: its judgement stays, bit by bit."""
    rows, members = examples()
    folds = np.arange(300) % 2
    changed, others = rows.copy(), members.copy()
    changed[:, folds == 1], others[:, folds == 1] = 99.0, ~members[:, folds == 1]
    new = np.random.default_rng(1).normal(size=(300, 3))
    first = cross_fit(kept(rows), members, groups=GROUPS, folds=folds, learners=LEARNERS, seed=0)
    second = cross_fit(kept(changed), others, groups=GROUPS, folds=folds, learners=LEARNERS, seed=0)
    for learner in (*LEARNERS, " + ".join(LEARNERS)):
        one, other = (fit.log_odds(new, learner=learner) for fit in (first, second))
        assert (one[folds == 1] == other[folds == 1]).all()
        assert (one[folds == 0] != other[folds == 0]).any()


def test_held_out_targets_are_judged_without_their_group() -> None:
    rows, members = examples()
    folds = np.zeros(300, dtype=int)
    turned = members.copy()
    turned[:2] = ~turned[:2]
    first, second = (
        cross_fit(kept(rows), who, groups=GROUPS, folds=folds, learners={"linear": Linear()}, seed=0)
        for who in (members, turned)
    )
    assert (first.held_out[:2] == second.held_out[:2]).all()
    assert (first.held_out[2:] != second.held_out[2:]).any()


def test_threads_and_repetition_change_no_bit() -> None:
    rows, members = examples()
    fits = [
        cross_fit(kept(rows), members, groups=GROUPS, folds=np.arange(300) % 2, learners=LEARNERS, seed=0, jobs=jobs)
        for jobs in (1, 2)
    ]
    assert (fits[0].held_out == fits[1].held_out).all()
    assert (fits[0].log_odds(rows[0]) == fits[1].log_odds(rows[0])).all()


def test_the_learner_with_the_smallest_loss_is_taken() -> None:
    rows, members = examples(records=60)  # far too few for trees
    fit = cross_fit(kept(rows), members, groups=GROUPS, folds=np.zeros(60, dtype=int), learners=LEARNERS, seed=0)
    assert fit.learner == "linear"
    assert fit.log_loss["linear"] == min(fit.log_loss.values())


def test_boosting_is_taken_where_a_line_sees_nothing() -> None:
    rows, _ = examples(records=2000)
    members = rows[:, :, 0] * rows[:, :, 1] > 0
    fit = cross_fit(kept(rows), members, groups=GROUPS, folds=np.zeros(2000, dtype=int), learners=LEARNERS, seed=0)
    assert fit.learner == "boosted"


def test_of_many_records_a_part_picks_the_learner_and_it_judges_all_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, members = examples()
    folds, options = np.arange(300) % 2, dict[str, Any]({"groups": GROUPS, "learners": LEARNERS, "seed": 0})
    whole = cross_fit(kept(rows), members, folds=folds, **options)
    asked: list[int] = []

    def noted(target: int, records: IntArray) -> FloatArray:
        asked.append(len(records))
        return kept(rows)(target, records)

    monkeypatch.setattr("glasshouse.attacks.cross_fit._COMPARED", 400)
    part = cross_fit(noted, members, folds=folds, **options)
    assert (part.held_out == whole.held_out).all()
    assert part.learner == whole.learner
    plain = np.logaddexp(0, np.where(members, -part.held_out, part.held_out))[:, ::3].mean()
    np.testing.assert_allclose(part.log_loss[part.learner], plain)
    assert part.log_loss != whole.log_loss
    assert sorted(asked[-16:]) == [50] * 8 + [150] * 8  # by target and fold: first every third record, then all


@pytest.mark.parametrize("count", [1, 3])
def test_fits_are_those_of_a_plain_loop(count: int) -> None:
    """The twin: one fit after another, without threads and without drawing."""
    rows, members = examples()
    folds = np.arange(300) % count
    new = np.random.default_rng(1).normal(size=(300, 3))
    fit = cross_fit(kept(rows), members, groups=GROUPS, folds=folds, learners={"linear": Linear()}, seed=7, jobs=2)
    held_out, judged = np.empty((4, 300)), np.empty(300)
    for fold in range(count):
        odds = []
        for group in (0, 1):
            records = np.flatnonzero((folds != fold) | (count == 1))
            known = [(rows[t, i], members[t, i]) for t in range(4) if GROUPS[t] != group for i in records]
            learned = Linear().fit(*map(np.array, zip(*known, strict=True)), seed=seed_for(7, group, fold))
            odds.append(learned.log_odds(new[folds == fold]))
            for t in np.flatnonzero(group == GROUPS):
                held_out[t, folds == fold] = learned.log_odds(rows[t, folds == fold])
        judged[folds == fold] = (odds[0] + odds[1]) / 2
    np.testing.assert_allclose(fit.held_out, held_out, atol=1e-9)
    np.testing.assert_allclose(fit.log_odds(new), judged, atol=1e-9)


@dataclass
class Watched:
    """A learner that keeps what it was given."""

    examples: int
    dtype: type | None = None
    given: list[FloatArray] = field(default_factory=list)

    def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
        self.given.append(rows)
        return Linear().fit(rows, members, seed=seed)

    def seconds(self, rows: int, features: int) -> float:
        return 0.0


def test_at_most_so_many_examples_are_learned_from_and_none_twice() -> None:
    _, members = examples()
    rows = np.arange(4 * 300, dtype=float).reshape(4, 300, 1)  # each row is its own number
    learner = Watched(examples=100)
    cross_fit(kept(rows), members, groups=GROUPS, folds=np.arange(300) % 2, learners={"one": learner}, seed=0)
    for number, given in enumerate(learner.given):  # fold by fold, and in it group by group
        assert len(np.unique(given)) == len(given) == 100
        target, record = np.divmod(given[:, 0].astype(int), 300)
        assert set(GROUPS[target]) == {1 - number % 2}
        assert set(record % 2) == {1 - number // 2}
    assert not np.array_equal(learner.given[0], learner.given[1])


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_fit_is_reported(jobs: int) -> None:
    rows, members = examples(records=60)
    folds = np.arange(60) % 3
    reported: list[int] = []
    cross_fit(
        kept(rows), members, groups=GROUPS, folds=folds, learners=LEARNERS, seed=0, jobs=jobs, done=reported.append
    )
    assert reported == [1] * count_fits(GROUPS, folds, list(LEARNERS)) == [1] * 12


def test_a_user_who_stops_it_does_not_wait_for_the_fits() -> None:
    stopped, ended = threading.Lock(), threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # another test may have changed it

    class Endless(Watched):
        def fit(self, rows: FloatArray, members: BoolArray, *, seed: int) -> Predictor:
            if stopped.acquire(blocking=False):  # once: a second one would reach the next test
                _thread.interrupt_main()  # as Ctrl-C does
            ended.wait(60)
            return super().fit(rows, members, seed=seed)

    rows, members = examples(records=60)
    try:
        with pytest.raises(KeyboardInterrupt):
            cross_fit(
                kept(rows),
                members,
                groups=GROUPS,
                folds=np.zeros(60, dtype=int),
                learners={"one": Endless(examples=100)},
                seed=0,
                jobs=2,
            )
        assert not ended.is_set()
    finally:
        ended.set()
        signal.signal(signal.SIGINT, before)
