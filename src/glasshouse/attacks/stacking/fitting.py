"""Learn a posterior from simulated targets; each is scored by what was learned without it and its complement."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.stacking.learners import Learner, Predictor
from glasshouse.attacks.stacking.simple import log_losses
from glasshouse.randomness import generator, seed_for

__all__ = ["ALL", "CrossFit", "count_fits", "cross_fit"]

ALL = "all"


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossFit:
    """A learned posterior, and its log-odds of the simulated targets when they are held out.

    Args:
        predictors: for each learner and each fold of records, one predictor per group of simulated targets, learned
            without that group and without that fold (if there is only one fold, from its own records). A new target
            is judged by their mean.
        folds: [N] the fold of each record.
        held_out: [T, N] log-odds of the simulated targets, learned without their group and without the record's fold.
        learner: the learner in use, with the smallest log loss on held-out targets; ``"all"`` is the mean of all.
        log_loss: log loss of every learner.
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
        return list(self.predictors)[-1] if self.learner == ALL else self.learner

    def log_odds(self, rows: FloatArray, *, learner: str | None = None) -> FloatArray:
        """Log-odds [N] of a new target's records from their features [N, F], by the best learner or a named one."""
        name = learner or self.learner
        if name == ALL:
            return np.asarray(np.mean([self.log_odds(rows, learner=one) for one in self.predictors], axis=0))
        found = np.empty(len(rows))
        for fold, together in enumerate(self.predictors[name]):
            at = self.folds == fold
            if at.any():
                chosen = rows[at]
                each = Parallel(n_jobs=self.jobs, prefer="threads")(delayed(one.log_odds)(chosen) for one in together)
                found[at] = np.mean(list(each), axis=0)
        return found


def cross_fit(
    rows: FloatArray,
    members: BoolArray,
    *,
    groups: NDArray[np.intp],
    folds: NDArray[np.intp],
    learners: Mapping[str, Learner],
    seed: int,
    jobs: int = 1,
    done: Callable[[int], None] | None = None,
) -> CrossFit:
    """Fit every learner group by group and fold by fold, and pick the one that is best on held-out targets.

    Args:
        rows: [T, N, F] features of the records of each simulated target.
        members: [T, N] its members.
        groups: [T] simulated targets that are held out together; two groups or more.
        folds: [N] the fold of each record; a single fold (online) is both learned from and judged.
        learners: candidates by name; the one that extrapolates least comes last.
        seed: seed of the learners.
        jobs: number of fits that run in parallel; -1 for one per core. The result does not depend on it.
        done: called with 1 after each of the `count_fits` fits, to show progress.

    Example:
        >>> from glasshouse.attacks.stacking.learners import Linear
        >>> rows = np.random.default_rng(0).normal(size=(4, 50, 1))
        >>> fit = cross_fit(rows, rows[:, :, 0] > 0, groups=np.array([0, 0, 1, 1]), folds=np.zeros(50, dtype=int),
        ...                 learners={"linear": Linear()}, seed=0)
        >>> fit.learner, bool(fit.log_odds(np.full((50, 1), 2.0)).min() > 1)
        ('linear', True)
    """
    each = np.unique(groups).tolist()
    count = int(folds.max()) + 1
    parts = [(name, fold, group) for name in learners for fold in range(count) for group in each]

    def fit(name: str, fold: int, group: int) -> tuple[Predictor, FloatArray]:
        records = folds != fold if count > 1 else folds == fold
        apart = seed_for(seed, group, fold)
        targets, chosen = _drawn(np.flatnonzero(groups != group), np.flatnonzero(records), learners[name], apart)
        predictor = learners[name].fit(rows[targets, chosen], members[targets, chosen], seed=apart)
        judged = rows[np.ix_(groups == group, folds == fold)]
        odds = predictor.log_odds(judged.reshape(-1, rows.shape[2])).reshape(judged.shape[:2])
        if done is not None:
            done(1)
        return predictor, odds

    # each fit stays on one core, so that its result does not depend on the number of cores; scikit-learn empties the
    # filters of warnings for a moment in every fit, and in threads warns of that itself: nothing of it reaches the user
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings(record=True):
        made = list(Parallel(n_jobs=jobs, prefer="threads")(delayed(fit)(*part) for part in parts))
    found = dict(zip(parts, made, strict=True))
    held_out = {name: np.empty(members.shape) for name in learners}
    for (name, fold, group), (_, odds) in found.items():
        held_out[name][np.ix_(groups == group, folds == fold)] = odds
    if len(learners) > 1:
        held_out[ALL] = np.mean(list(held_out.values()), axis=0)
    loss = {name: float(log_losses(odds, members).mean()) for name, odds in held_out.items()}
    best = min(loss, key=loss.__getitem__)
    return CrossFit(
        predictors={
            name: tuple(tuple(found[name, fold, group][0] for group in each) for fold in range(count))
            for name in learners
        },
        folds=folds,
        held_out=held_out[best],
        learner=best,
        log_loss=loss,
        jobs=jobs,
    )


def count_fits(groups: NDArray[np.intp], folds: NDArray[np.intp], learners: Sequence[str]) -> int:
    """How many fits a `cross_fit` does.

    Example:
        >>> count_fits(np.array([0, 0, 1, 1]), np.zeros(50, dtype=int), ["linear", "boosted"])
        4
    """
    return len(np.unique(groups)) * (int(folds.max()) + 1) * len(learners)


def _drawn(
    targets: NDArray[np.intp], records: NDArray[np.intp], learner: Learner, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a simulated target and a record to learn from, [R] each: all, or as many as the learner needs."""
    pairs = len(targets) * len(records)
    if pairs > learner.examples:
        # sorted: rows that lie together in memory are read faster
        chosen = np.sort(generator(seed, "examples").choice(pairs, learner.examples, replace=False, shuffle=False))
    else:
        chosen = np.arange(pairs)
    at, record = np.divmod(chosen, max(len(records), 1))
    return targets[at], records[record]
