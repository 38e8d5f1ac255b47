"""The blind baseline: who is a member, predicted from what is known about the records without the target."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.stats import norm, rankdata

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.attacks.thread_counts import thread_counts
from glasshouse.evaluation.drawn.smoothers import cells, ridge, waves
from glasshouse.evaluation.intervals import Interval, delong
from glasshouse.randomness import generator

__all__ = ["Blind", "blind_baseline"]

_FOLDS = 5
_PERMUTATIONS = 199
# Folds learn from each other: the product of two records' labels counts twice, once with either as the one to predict,
# which doubles the variance where there is little to find. 95 % therefore takes an interval √2 times as wide as
# DeLong's, which belongs to scores that were fixed before; benchmarks/blind.md shows how often it covers.
_WIDER = float(2 * norm.cdf(np.sqrt(2) * norm.ppf(0.975)) - 1)


@dataclass(frozen=True, kw_only=True)
class Blind:
    """How well members are told from others without the target.

    Args:
        auc: of the mean score of the learners on all columns, out of fold; pairs of one fold are compared. It is 0.5
            on average if members were drawn at random.
        interval: 95 %, of the AUC.
        p_value: how often random members are predicted so well, by permutation. Exact: at most α of the audits with
            random members have a p-value of α or less.
        records: how many records were used.
    """

    auc: float
    interval: Interval
    p_value: float
    records: int


def blind_baseline(features: FloatArray, answers: FloatArray, members: BoolArray, *, seed: int) -> Blind:
    """Predict members from the columns of other records, and test whether the prediction is better than chance.

    Four learners are fitted out of fold: ridge regression on the answers of the shadow models (few columns, so a weak
    dependence shows), and on all columns ridge regression, random Fourier features and random ferns. The test statistic
    is the largest of their four statistics, each standardised over the permutations. Given the labels of the other
    folds, random members of a fold are in random order, so the AUC within folds is 0.5 on average.

    Args:
        features: [N, F] columns about the records, each with mean 0 and variance 1; F may be 0.
        answers: [N, A] the same about the shadow models' answers and the labels; A may be 0.
        members: [N] members of the target.
        seed: of folds, permutations and learners.

    Example:
        >>> columns, none = np.random.default_rng(0).normal(size=(200, 3)), np.empty((200, 0))
        >>> blind_baseline(columns, none, columns[:, 0] > 0, seed=0).p_value
        0.005
        >>> blind_baseline(columns, none, np.arange(200) < 100, seed=0).p_value > 0.01
        True
    """
    random = generator(seed, "blind baseline")
    folds = random.permutation(np.arange(len(members)) % _FOLDS)
    permuted = random.permuted(np.tile(members, (_PERMUTATIONS, 1)), axis=1)
    labels = np.vstack([members[None], permuted]).T - members.mean()  # [N, 1 + permutations]
    together = np.hstack([features, answers])
    plan = chain(
        [(ridge, answers)] if answers.shape[1] and features.shape[1] else [],
        [(learner, together) for learner in (ridge, waves, cells)] if together.shape[1] else [],
    )
    mean, largest = np.zeros(len(members)), np.full(1 + _PERMUTATIONS, -np.inf)
    for learner, columns in plan:
        with thread_counts().limit(limits=1):  # matrices so small wait longer for a second thread than they take
            scores = _standard(learner(columns, labels, folds, random), folds)
        if columns is together:
            mean += scores[:, 0]
        statistic = np.einsum("np,np->p", scores, labels)
        # standardised with the truth among the permutations, so that under random members all columns are alike
        spread = statistic.std() or 1.0
        largest = np.maximum(largest, (statistic - statistic.mean()) / spread)
    ranks = _ranks(mean, folds)
    return Blind(
        auc=_within(ranks, members, folds),
        interval=delong(ranks, members, confidence=_WIDER),
        p_value=float(np.mean(largest >= largest[0] - 1e-9)),
        records=len(members),
    )


def _standard(scores: FloatArray, folds: IntArray) -> FloatArray:
    """[N, P] with mean 0 and variance 1 within each fold; constant scores become 0."""
    for fold in range(_FOLDS):
        own = scores[folds == fold]
        own -= own.mean(axis=0)
        spread = own.std(axis=0)
        scores[folds == fold] = own / np.where(spread > 1e-12, spread, np.inf)
    return scores


def _ranks(scores: FloatArray, folds: IntArray) -> FloatArray:
    """[N] share of its fold that a record is above, so that folds can be pooled."""
    ranks = np.empty_like(scores)
    for fold in range(_FOLDS):
        own = folds == fold
        ranks[own] = (rankdata(scores[own]) - 0.5) / own.sum()
    return ranks


def _within(ranks: FloatArray, members: BoolArray, folds: IntArray) -> float:
    """AUC over the pairs of a member and another record that are in one fold."""
    won = pairs = 0.0
    for fold in range(_FOLDS):
        inside, placed = members[folds == fold], rankdata(ranks[folds == fold])
        count, others = int(inside.sum()), int((~inside).sum())
        won += float(placed[inside].sum()) - count * (count + 1) / 2
        pairs += count * others
    return won / pairs if pairs else 0.5
