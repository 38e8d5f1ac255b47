"""Learn a posterior from simulated targets; each is scored by what was learned without it and its complement."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.attacks.stacking.learners import Learner, Predictor
from glasshouse.attacks.stacking.simple import log_losses
from glasshouse.compute import is_worth_spreading, spread
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import seed_for, some_of
from glasshouse.core.threads import in_threads, thread_counts

Rows = Callable[[int, NDArray[np.intp]], FloatArray]

_AND = " + "  # between the names of learners whose mean is meant
_BLOCK = 1 << 13  # records that are judged at once


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossFit:
    """A learned posterior, and its log-odds of the simulated targets when they are held out.

    Args:
        predictors: for each learner and each fold of records, one predictor per group of simulated targets, learned
            without that group and without that fold (if there is only one fold, from its own records). A new target
            is judged by their mean.
        folds: [N] the fold of each record.
        held_out: [T, N] log-odds of the simulated targets, learned without their group and without the record's fold.
        learner: the learner in use, with the smallest log loss on held-out targets; it may be the mean of several
            (`mean_of` their names).
        log_loss: log loss of every learner, and of every mean of some of them.
        jobs: number of predictors that judge a new target in parallel; -1 for one per core.
    """

    predictors: Mapping[str, tuple[tuple[Predictor, ...], ...]]
    folds: NDArray[np.intp]
    held_out: FloatArray
    learner: str
    log_loss: Mapping[str, float]
    jobs: int = 1

    @property
    def steady(self) -> str:
        """The learner for a target unlike the simulated ones: the last of several, trees, which do not extrapolate."""
        return self.learner.split(_AND)[-1]

    def log_odds(
        self,
        rows: FloatArray,
        *,
        learner: str | None = None,
        records: NDArray[np.intp] | None = None,
        group: int | None = None,
    ) -> FloatArray:
        """Log-odds [R] of a new target's records from their features [R, F], by the best learner or a named one.

        Args:
            rows: features.
            learner: the name of a learner; the best by default.
            records: [R] positions of these records; all records by default.
            group: judge as the simulated targets of this group are judged, by the predictor that was learned without
                them; by default by the mean of all predictors, which varies less.
        """
        name = learner or self.learner
        if _AND in name:
            each = [self.log_odds(rows, learner=one, records=records, group=group) for one in name.split(_AND)]
            return np.asarray(np.mean(each, axis=0))
        found, folds = np.empty(len(rows)), self.folds if records is None else self.folds[records]
        for fold, predictors in enumerate(self.predictors[name]):
            together = predictors if group is None else predictors[group : group + 1]
            at = folds == fold
            if at.any():
                chosen = rows[at]
                each = in_threads(operator.methodcaller("log_odds", chosen), together, jobs=self.jobs)
                found[at] = np.mean(each, axis=0)
        return found


def cross_fit(
    rows: Rows,
    members: BoolArray,
    *,
    groups: NDArray[np.intp],
    folds: NDArray[np.intp],
    learners: Mapping[str, Learner],
    seed: int,
    jobs: int = 1,
    done: Callable[[int], None] | None = None,
) -> CrossFit:
    """Fit every learner group by group and fold by fold; pick what is best on held-out targets.

    That is one learner, or the mean of several.

    Args:
        rows: called with the number of a simulated target and positions [R] of records, gives their features [R, F].
            It is asked only for the rows of one fit, or for a block of rows to judge, so that all need not be kept.
        members: [T, N] members of each simulated target.
        groups: [T] simulated targets that are held out together; two groups or more.
        folds: [N] the fold of each record; a single fold (online) is both learned from and judged.
        learners: candidates by name; the one that extrapolates least comes last.
        seed: seed of the learners.
        jobs: number of fits that run in parallel; -1 for one per core. The result does not depend on it.
        done: called with 1 after each of the `count_fits` fits, to show progress.

    Example:
        >>> from glasshouse.attacks.stacking.learners import Linear
        >>> known = np.random.default_rng(0).normal(size=(4, 50, 1))
        >>> fit = cross_fit(lambda target, records: known[target, records], known[:, :, 0] > 0,
        ...                 groups=np.array([0, 0, 1, 1]), folds=np.zeros(50, dtype=int),
        ...                 learners={"linear": Linear()}, seed=0)
        >>> fit.learner, bool(fit.log_odds(np.full((50, 1), 2.0)).min() > 1)
        ('linear', True)
    """
    each = np.unique(groups).tolist()
    count = int(folds.max()) + 1
    parts = [_Part(fold, group, name) for fold in range(count) for group in each for name in learners]
    work = _Fits(rows, members, groups, folds, learners, seed)

    def fit(part: _Part) -> Predictor:
        learned = _fitted(work, part)
        if done is not None:
            done(1)
        return learned

    def judge(target: int, held_out: Mapping[str, FloatArray]) -> None:
        for fold in range(count):
            for records in _in_blocks(np.flatnonzero(folds == fold)):
                asked = rows(target, records)
                for name in learners:
                    predictor = found[_Part(fold, int(groups[target]), name)]
                    held_out[name][target, records] = predictor.log_odds(asked)

    # each fit stays on one core, so that its result does not depend on the number of cores; scikit-learn empties the
    # filters of warnings for a moment in every fit, and in threads warns of that itself: nothing of it reaches the user
    with thread_counts().limit(limits=1, user_api="blas"), warnings.catch_warnings(record=True):
        seconds = sum(work.seconds(part) for part in parts) if is_worth_spreading() else 0.0
        if is_worth_spreading(seconds):
            found = {}
            held_out = _empty(learners, members)
            longest = sorted(parts, key=work.seconds, reverse=True)  # first: at the end no worker waits for a long one
            for at, (predictor, judged) in spread(_fitted_and_judged, (work,), longest, seconds=seconds):
                part = longest[at]
                found[part] = predictor
                held_out[part.name][np.ix_(work.held_out(part), np.flatnonzero(folds == part.fold))] = judged
                if done is not None:
                    done(1)
        else:
            found = dict(zip(parts, in_threads(fit, parts, jobs=jobs), strict=True))
            held_out = _empty(learners, members)  # large: not before the rows of fits are gone
            in_threads(lambda target: judge(target, held_out), range(len(groups)), jobs=jobs)
    loss = {}
    for size in range(1, len(learners) + 1):
        for some in itertools.combinations(learners, size):
            odds = map(_mean, *(held_out[name] for name in some))
            loss[mean_of(some)] = float(log_losses(odds, members).mean())
    best = min(loss, key=loss.__getitem__)
    kept, *others = (held_out[name] for name in best.split(_AND))
    if others:
        for row, rest in zip(kept, zip(*others, strict=True), strict=True):
            row[:] = _mean(row, *rest)  # in place: they are as large as the losses
    return CrossFit(
        predictors={
            name: tuple(tuple(found[_Part(fold, group, name)] for group in each) for fold in range(count))
            for name in learners
        },
        folds=folds,
        held_out=kept,
        learner=best,
        log_loss=loss,
        jobs=jobs,
    )


class _Part(NamedTuple):
    """One fit: without a fold of records (unless there is only one), without a group of targets, by one learner."""

    fold: int
    group: int
    name: str


@dataclass(frozen=True)
class _Fits:
    """What all fits of a `cross_fit` need; its arguments are explained there."""

    rows: Rows
    members: BoolArray
    groups: NDArray[np.intp]
    folds: NDArray[np.intp]
    learners: Mapping[str, Learner]
    seed: int

    def records(self, part: _Part) -> NDArray[np.intp]:
        """[R] positions of the records to learn from."""
        return np.flatnonzero(self.folds != part.fold if self.folds.max() > 0 else self.folds == part.fold)

    def held_out(self, part: _Part) -> NDArray[np.intp]:
        """[G] targets that it is not learned from, and judges."""
        return np.flatnonzero(self.groups == part.group)

    def seconds(self, part: _Part) -> float:
        """How long a fit should take on one core; only the order of magnitude is known."""
        learner, features = self.learners[part.name], self.rows(0, np.arange(1)).shape[1]
        pairs = len(self.records(part)) * int((self.groups != part.group).sum())
        return learner.seconds(min(pairs, learner.examples), features)


def _fitted(work: _Fits, part: _Part) -> Predictor:
    """What a learner makes of its part, on one core, so that its result does not depend on the number of cores."""
    learner, apart = work.learners[part.name], seed_for(work.seed, part.group, part.fold)
    targets, chosen = _drawn(np.flatnonzero(work.groups != part.group), work.records(part), learner, apart)
    given = _gathered(work.rows, targets, chosen, dtype=learner.dtype)
    with thread_counts().limit(limits=1, user_api="blas"):
        return learner.fit(given, work.members[targets, chosen], seed=apart)


def _fitted_and_judged(work: _Fits, part: _Part) -> tuple[Predictor, FloatArray]:
    """The same, and its log-odds [G, R] of the held-out targets at the records of its fold."""
    predictor, records = _fitted(work, part), np.flatnonzero(work.folds == part.fold)
    with thread_counts().limit(limits=1, user_api="blas"):
        odds = [
            np.concatenate([predictor.log_odds(work.rows(target, some)) for some in _in_blocks(records)])
            for target in work.held_out(part).tolist()
        ]
    return predictor, np.stack(odds)


def _in_blocks(records: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Positions of records that are judged at once."""
    return np.split(records, range(_BLOCK, len(records), _BLOCK))


def _empty(learners: Iterable[str], members: BoolArray) -> dict[str, FloatArray]:
    """Log-odds [T, N] of each learner, to be filled."""
    return {name: np.empty(members.shape) for name in learners}


def mean_of(learners: Iterable[str]) -> str:
    """The name of the mean of several learners.

    Example:
        >>> mean_of(["linear", "boosted"])
        'linear + boosted'
    """
    return _AND.join(learners)


def _mean(*rows: FloatArray) -> FloatArray:
    return np.asarray(np.mean(rows, axis=0))


def count_fits(groups: NDArray[np.intp], folds: NDArray[np.intp], learners: Sequence[str]) -> int:
    """How many fits a `cross_fit` does.

    Example:
        >>> count_fits(np.array([0, 0, 1, 1]), np.zeros(50, dtype=int), ["linear", "boosted"])
        4
    """
    return len(np.unique(groups)) * (int(folds.max()) + 1) * len(learners)


def _gathered(rows: Rows, targets: NDArray[np.intp], records: NDArray[np.intp], *, dtype: type | None) -> FloatArray:
    """Features [R, F] of pairs of a simulated target and a record, [R] each, sorted by target."""
    asked, starts = np.unique(targets, return_index=True)
    parts = zip(asked.tolist(), np.split(records, starts[1:]), strict=True)
    return np.concatenate([rows(target, some) for target, some in parts], dtype=dtype)


def _drawn(
    targets: NDArray[np.intp], records: NDArray[np.intp], learner: Learner, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a simulated target and a record to learn from, [R] each: all, or as many as the learner needs."""
    chosen = some_of(len(targets) * len(records), learner.examples, seed, "examples")
    at, record = np.divmod(chosen, max(len(records), 1))
    return targets[at], records[record]
