"""Fit a posterior on simulated targets, so that nothing is judged by what was learned from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.stacking.learners import Learner, Predictor
from glasshouse.attacks.stacking.simple import log_losses
from glasshouse.randomness import seed_for

__all__ = ["ALL", "CrossFit", "cross_fit"]

ALL = "all"


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossFit:
    """A learned posterior, and its log-odds of the simulated targets when they are held out.

    Args:
        predictors: for each learner, one per fold of records, learned from the other folds, or from all records if
            there is only one fold.
        folds: [N] the fold of each record.
        held_out: [T, N] log-odds of the simulated targets, learned without their group and without the record's fold.
        learner: the learner in use, with the smallest log loss on held-out targets; ``"all"`` is the mean of all.
        log_loss: log loss of every learner.
    """

    predictors: Mapping[str, tuple[Predictor, ...]]
    folds: NDArray[np.intp]
    held_out: FloatArray
    learner: str
    log_loss: Mapping[str, float]

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
        for fold, predictor in enumerate(self.predictors[name]):
            at = self.folds == fold
            if at.any():
                found[at] = predictor.log_odds(rows[at])
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
) -> CrossFit:
    """Fit every learner group by group and fold by fold, and pick the one that is best on held-out targets.

    Args:
        rows: [T, N, F] features of the records of each simulated target.
        members: [T, N] its members.
        groups: [T] simulated targets that are held out together.
        folds: [N] the fold of each record; a single fold (online) is both learned from and judged.
        learners: candidates by name; the one that extrapolates least comes last.
        seed: seed of the learners.
        jobs: number of fits that run in parallel; -1 for one per core. The result does not depend on it.

    Example:
        >>> from glasshouse.attacks.stacking.learners import Linear
        >>> rows = np.random.default_rng(0).normal(size=(4, 50, 1))
        >>> fit = cross_fit(rows, rows[:, :, 0] > 0, groups=np.array([0, 0, 1, 1]), folds=np.zeros(50, dtype=int),
        ...                 learners={"linear": Linear()}, seed=0)
        >>> fit.learner, bool(fit.log_odds(np.full((50, 1), 2.0)).min() > 1)
        ('linear', True)
    """
    parts = [(group, fold) for group in np.unique(groups).tolist() for fold in range(int(folds.max()) + 1)]
    held_out = {}
    for name, learner in learners.items():
        found = np.empty(members.shape)
        fitted = _fits(learner, rows, members, groups, folds, parts, seed, jobs)
        for (group, fold), predictor in zip(parts, fitted, strict=True):
            at = np.ix_(groups == group, folds == fold)
            found[at] = predictor.log_odds(rows[at].reshape(-1, rows.shape[2])).reshape(found[at].shape)
        held_out[name] = found
    if len(learners) > 1:
        held_out[ALL] = np.mean(list(held_out.values()), axis=0)
    loss = {name: float(log_losses(odds, members).mean()) for name, odds in held_out.items()}
    best = min(loss, key=loss.__getitem__)
    whole = [(-1, fold) for fold in range(int(folds.max()) + 1)]
    return CrossFit(
        predictors={
            name: tuple(_fits(learner, rows, members, groups, folds, whole, seed, jobs))
            for name, learner in learners.items()
        },
        folds=folds,
        held_out=held_out[best],
        learner=best,
        log_loss=loss,
    )


def _fits(
    learner: Learner,
    rows: FloatArray,
    members: BoolArray,
    groups: NDArray[np.intp],
    folds: NDArray[np.intp],
    parts: Sequence[tuple[int, int]],
    seed: int,
    jobs: int,
) -> list[Predictor]:
    """One predictor for each (group, fold) left out; group -1 leaves none out, and a single fold is never left out."""

    def fit(group: int, fold: int) -> Predictor:
        records = folds != fold if folds.max() else folds == fold
        chosen = np.ix_(groups != group, records)
        return learner.fit(
            rows[chosen].reshape(-1, rows.shape[2]), members[chosen].reshape(-1), seed=seed_for(seed, group, fold)
        )

    # each fit stays on one core, so that its result does not depend on the number of cores
    with threadpool_limits(1, user_api="blas"):
        return list(Parallel(n_jobs=jobs, prefer="threads")(delayed(fit)(group, fold) for group, fold in parts))
