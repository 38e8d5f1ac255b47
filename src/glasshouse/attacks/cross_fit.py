"""Learn a posterior from simulated targets: which they are, and whether a target answers like them.

Each is scored by what was learned without it and its complement.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import logit, ndtri
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from glasshouse.attacks.learners import Learner, Predictor
from glasshouse.compute import is_worth_spreading, spread
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.randomness import generator, seed_for, some_of
from glasshouse.core.threads import ONE_CORE, in_threads
from glasshouse.evidence.simulation import check_simulation, reference_rows

_GROUPS = 4  # held out in turn; more groups need more fits and are hardly better
ENOUGH = 100_000  # pairs of a simulated target and a record: more of them cost time and memory and teach little


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetPlan:
    """Simulated targets of a pool."""

    targets: Positions  # [T] rows of the pool that play the target
    # the rows that each may be compared with: [R, 1] for all records, or [R, N]
    references: tuple[Positions, ...]
    groups: Positions  # [T] a target and its complement share a group, which is held out as a whole
    # sets of references for the true target, as large as that of a simulated target; its scores are averaged over them
    panels: tuple[Positions, ...]


def plan_targets(members: BoolArray, *, targets: int, seed: int, enough: int | None = None) -> TargetPlan:
    """Choose simulated targets, in pairs where the pool has pairs: at most so many, and in small pools all models.

    With more than ``enough`` pairs of a simulated target and a record, fewer models play the target, but at least four.
    """
    count = len(members)
    check_simulation(count)
    order = np.arange(count) if count <= targets else generator(seed, "simulated").permutation(count)
    sets: dict[bytes, list[int]] = {}  # targets by their references: a model and its complement have the same
    rows = {}
    for k in order.tolist():
        if sum(map(len, sets.values())) >= targets:
            break
        for each in [k, *np.flatnonzero((members == ~members[k]).all(axis=1))[:1].tolist()]:  # and its complement
            if each not in rows:
                rows[each] = reference_rows(members, each)
                key = rows[each].tobytes() if rows[each].shape[1] == 1 else bytes([each % 256, each // 256])
                sets.setdefault(key, []).append(each)
    if enough is not None and len(rows) * members.shape[1] > enough and len(sets) >= _GROUPS:
        kept = list(sets)[: max(_GROUPS, enough // members.shape[1])]
        sets = {key: sets[key][:1] for key in kept}
        rows = {k: rows[k] for together in sets.values() for k in together}
    group = {k: number % _GROUPS for number, together in enumerate(sets.values()) for k in together}
    chosen = np.array(sorted(rows))
    alike = [rows[together[0]] for together in sets.values() if rows[together[0]].shape[1] == 1]
    return TargetPlan(
        targets=chosen,
        references=tuple(rows[k] for k in chosen.tolist()),
        groups=np.array([group[k] for k in chosen.tolist()]),
        panels=tuple(alike[:_GROUPS]) or (np.arange(count)[:, None],),
    )


LARGEST_UNLIKENESS = 5.0  # targets of the pool's own kind stay below 3, those of another architecture are above 6
_WEIGHT = 0.75  # of simple attacks; values from 0.7 to 1 work equally well on targets of another architecture
_FURTHEST = 1e6
_LARGEST = 1e100  # a loss of 1e300 is finite, but its square is not
_SHOWN = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
_ANSWERS = 10_000  # answers of a target: enough for its quantiles, and each is copied several times
_LEVELS = (np.arange(2000) + 0.5) / 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class Likeness:
    """How simulated targets answer over all records, members or not, weighted by `prior_weights`.

    A target is described by mean and spread of its answers, and by the shares of them below a few fixed points (half of
    those at a point). Quantiles of votes or labels would be the same for many models and far away for the next.
    """

    quantiles: FloatArray  # [levels] of all their answers together
    points: FloatArray  # [points] some of these quantiles, where shares are taken
    centre: FloatArray  # [figures] mean over targets of the mean, the spread and the shares of a target's answers
    spread: FloatArray  # [figures] standard deviation over targets

    @classmethod
    def of(cls, answers: Iterable[FloatArray], weights: Iterable[FloatArray] | None = None) -> Likeness:
        """From the answers [T, N] of T simulated targets, one after another, with weights [T, N]; by default equal."""
        moments, shown, pooled = [], [], []
        each = itertools.repeat(None) if weights is None else weights
        for number, (row, given) in enumerate(zip(answers, each, strict=weights is not None)):
            part = np.ones(len(row)) if given is None else given
            moments.append(_moments(row, part))
            shown.append(_shown(row, part))
            some = some_of(len(row), _ANSWERS, 0, "answers", number)
            pooled.append((row[some], part[some]))
        together, weighing = (np.concatenate(parts) for parts in zip(*pooled, strict=True))
        points = _quantiles(together, weighing, _SHOWN)
        figures = np.stack([[*one, *_shares(*two, points)] for one, two in zip(moments, shown, strict=True)])
        # equal answers are possible; a spread of 0 would make every target unlike. One record moves a share by so much:
        step = 1 / len(shown[0][0])
        floor = np.repeat([1e-3 * (1 + together.std()), step], [len(moments[0]), len(points)])
        return cls(
            quantiles=_quantiles(together, weighing, _LEVELS),
            points=points,
            centre=figures.mean(axis=0),
            spread=np.maximum(figures.std(axis=0, ddof=1), floor),
        )

    def unlikeness(self, answers: FloatArray) -> float:
        """How far a target's answers [N] are from theirs: root mean square over the figures, in standard deviations."""
        equal = np.ones(len(answers))
        figures = np.array([*_moments(answers, equal), *_shares(*_shown(answers, equal), self.points)])
        apart = np.minimum(np.abs(figures - self.centre) / self.spread, _FURTHEST)
        return float(np.sqrt(np.mean(apart**2)))

    def matched(self, answers: FloatArray) -> FloatArray:
        """The same answers [N] in the same order, on the scale of the simulated targets, quantile by quantile."""
        ordered = np.sort(answers)
        below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
        return np.asarray(np.interp(0.5 * (below + upto) / len(answers), _LEVELS, self.quantiles))


def unlike_warning(attack: str, unlikeness: float) -> str:
    """What a reader must know about the scores of an unlike target; empty if it is like the simulated ones."""
    if unlikeness <= LARGEST_UNLIKENESS:
        return ""
    return (
        f"{attack}: the target answers unlike every simulated target (unlikeness {unlikeness:.1f}; targets of the same "
        f"kind stay below {LARGEST_UNLIKENESS:.0f}). The order of its scores, in which a simpler attack has a part, "
        f"can be trusted. They are not probabilities, and there is no threshold for them."
    )


def steadied(odds: FloatArray, *simple: FloatArray) -> FloatArray:
    """Log-odds [N] of an unlike target, put in an order in which attacks that learned nothing have a large part.

    Ranks are turned into normal quantiles; 4 parts of what was learned and 3 of the mean of the simple attacks order
    the log-odds.
    """
    both = _normal(odds) + _WEIGHT * np.mean([_normal(scores) for scores in simple], axis=0)
    return np.asarray(np.interp(rankdata(both), np.arange(1, len(odds) + 1), np.sort(odds)))


def _normal(values: FloatArray) -> FloatArray:
    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)))


def _moments(answers: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Mean and spread of answers [N] with weights [N]."""
    answers = np.clip(answers, -_LARGEST, _LARGEST)
    mean = np.average(answers, weights=weights)
    return float(mean), float(np.sqrt(np.average((answers - mean) ** 2, weights=weights)))


def _shown(answers: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Answers and weights of some records, the same of all targets: enough for shares."""
    some = some_of(len(answers), _ANSWERS, 0, "shares")
    return answers[some], weights[some]


def _shares(answers: FloatArray, weights: FloatArray, points: FloatArray) -> FloatArray:
    """[points] the weight of the answers below each point, and half of that of the answers at it."""
    below = np.array([weights @ (answers < point) + weights @ (answers <= point) for point in points])
    return np.asarray(below / (2 * weights.sum()))


def _quantiles(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of values [N] with weights [N]; a value lies in the middle of its weight."""
    order = np.argsort(values, kind="stable")
    own = weights[order]
    upto = np.cumsum(own)
    return np.asarray(np.interp(levels, (upto - own / 2) / upto[-1], values[order]))


Rows = Callable[[int, Positions], FloatArray]

_AND = " + "  # between the names of learners whose mean is meant
_BLOCK = 1 << 13  # records that are handled at once
_COMPARED = 400_000  # pairs of a simulated target and a record on which learners are compared; more tell no more


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossFit:
    """A learned posterior, and its log-odds of the simulated targets when they are held out."""

    # for each learner and each fold of records, one predictor per group of simulated targets, learned without the group
    # and without the fold (if there is only one fold, from its own records); a new target is judged by their mean
    predictors: Mapping[str, tuple[tuple[Predictor, ...], ...]]
    folds: Positions  # [N] the fold of each record
    held_out: FloatArray  # [T, N] log-odds of the simulated targets, learned without their group and the record's fold
    learner: str  # in use, with the smallest log loss on held-out targets; or "first + second", their mean
    log_loss: Mapping[str, float]  # of every learner, and of every mean of some; of many records on a part of them
    jobs: int = 1  # number of predictors that judge a new target in parallel; -1 for one per core

    @property
    def steady(self) -> str:
        """The learner for a target unlike the simulated ones: the last of several, trees, which do not extrapolate."""
        return self.learner.split(_AND)[-1]

    def log_odds(
        self,
        rows: FloatArray,
        *,
        learner: str | None = None,
        records: Positions | None = None,
        group: int | None = None,
    ) -> FloatArray:
        """Log-odds [R] of a new target's records from features [R, F], by the best learner or a named one.

        Their positions are ``records`` [R], by default all. With a ``group`` they are judged by the predictor that was
        learned without it, as its simulated targets are; else by the mean of all predictors, which varies less.
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
    groups: Positions,  # [T] simulated targets that are held out together; two groups or more
    folds: Positions,  # [N] the fold of each record; a single fold (online) is both learned from and judged
    learners: Mapping[str, Learner],  # candidates by name; the one that extrapolates least comes last
    seed: int,  # of the learners
    jobs: int = 1,  # number of fits that run in parallel; -1 for one per core. The result does not depend on it
    done: Callable[[int], None] = lambda _: None,  # called with 1 after each of the `count_fits` fits
) -> CrossFit:
    """Fit every learner group by group and fold by fold; pick one, or the mean of several, by held-out targets.

    Members are [T, N], of each simulated target. ``rows``, called with the number of a simulated target and positions
    [R] of records, gives their features [R, F]; it is asked only for the rows of one fit, or for a block to judge. Of
    very many records, the learners are compared on a part, and only those that are used judge the rest.
    """
    each = np.unique(groups).tolist()
    count = int(folds.max()) + 1
    parts = [_Part(fold, group, name) for fold in range(count) for group in each for name in learners]
    work = _Fits(rows, members, groups, folds, learners, seed)

    def fit(part: _Part) -> Predictor:
        learned = _fitted(work, part)
        done(1)
        return learned

    def judge(names: Iterable[str], asked: Positions) -> dict[str, FloatArray]:
        judged = {name: np.empty((len(groups), len(asked))) for name in names}  # large: after the rows of fits are gone

        def of_target(target: int) -> None:
            for fold in range(count):
                for at in in_blocks(np.flatnonzero(folds[asked] == fold)):
                    given = rows(target, asked[at])
                    for name, odds in judged.items():
                        odds[target, at] = found[_Part(fold, int(groups[target]), name)].log_odds(given)

        in_threads(of_target, range(len(groups)), jobs=jobs)
        return judged

    few = np.arange(0, members.shape[1], -(-members.size // _COMPARED))
    # each fit stays on one core, so that its result does not depend on the number of cores; scikit-learn empties the
    # filters of warnings for a moment in every fit, and in threads warns of that itself: nothing of it reaches the user
    with ONE_CORE, warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")  # recorded is what one thread says while the filters of another are empty
        seconds = sum(work.seconds(part) for part in parts) if is_worth_spreading() else 0.0
        if is_worth_spreading(seconds):
            found = {}
            longest = sorted(parts, key=work.seconds, reverse=True)  # first: at the end no worker waits for a long one
            for at, predictor in spread(_fitted, (work,), longest, seconds=seconds):
                found[longest[at]] = predictor
                done(1)
        else:
            found = dict(zip(parts, in_threads(fit, parts, jobs=jobs), strict=True))
        held_out = judge(learners, few)  # log-odds [T, N] by name
        loss = {}
        for size in range(1, len(learners) + 1):
            for some in itertools.combinations(learners, size):
                odds = (np.mean(rows_of, axis=0) for rows_of in zip(*(held_out[name] for name in some), strict=True))
                loss[_AND.join(some)] = float(log_losses(odds, members[:, few]).mean())
        best = min(loss, key=loss.__getitem__)
        if len(few) < members.shape[1]:  # trees take long: only what is used judges all records
            held_out = judge(best.split(_AND), np.arange(members.shape[1]))
    kept, *others = (held_out[name] for name in best.split(_AND))
    if others:
        for row, rest in zip(kept, zip(*others, strict=True), strict=True):
            row[:] = np.mean([row, *rest], axis=0)  # in place: they are as large as the losses
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
    groups: Positions
    folds: Positions
    learners: Mapping[str, Learner]
    seed: int

    def records(self, part: _Part) -> Positions:
        """[R] positions of the records to learn from."""
        return np.flatnonzero(self.folds != part.fold if self.folds.max() > 0 else self.folds == part.fold)

    def seconds(self, part: _Part) -> float:
        """How long a fit should take on one core; only the order of magnitude is known."""
        learner, features = self.learners[part.name], self.rows(0, np.arange(1)).shape[1]
        pairs = len(self.records(part)) * int((self.groups != part.group).sum())
        return learner.seconds(min(pairs, learner.examples), features)


def _fitted(work: _Fits, part: _Part) -> Predictor:
    """What a learner makes of its part, on one core: from pairs of a simulated target and a record, or some of them."""
    learner, apart = work.learners[part.name], seed_for(work.seed, part.group, part.fold)
    targets, records = np.flatnonzero(work.groups != part.group), work.records(part)
    pairs = some_of(len(targets) * len(records), learner.examples, apart, "examples")
    at, record = np.divmod(pairs, max(len(records), 1))
    targets, records = targets[at], records[record]  # [R] each, sorted by target
    asked, starts = np.unique(targets, return_index=True)
    parts = zip(asked.tolist(), np.split(records, starts[1:]), strict=True)
    given = np.concatenate([work.rows(target, some) for target, some in parts], dtype=learner.dtype)
    with ONE_CORE:
        return learner.fit(given, work.members[targets, records], seed=apart)


def in_blocks(records: Positions) -> list[Positions]:
    """Positions of records that are handled at once: features and references of all take much memory."""
    return np.split(records, range(_BLOCK, len(records), _BLOCK))


def count_fits(groups: Positions, folds: Positions, learners: Sequence[str]) -> int:
    """How many fits a `cross_fit` does."""
    return len(np.unique(groups)) * (int(folds.max()) + 1) * len(learners)


_MOST = 100_000  # scores: two numbers are known well from these, and the regression makes eight copies
_LOOSE = 1e6  # almost no penalty: two numbers from thousands of answers need none
_CLEARLY = 5.0  # standard errors
_RATES = np.array([0.001, 0.003, 0.01, 0.03])
_SUREST = 700.0  # scores of log-odds beyond this mean the same, and a loss of 1e300 would be the whole fit


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """A straight line from scores to log-odds of membership (Platt scaling): the order of scores does not change."""

    slope: float  # at least 0
    offset: float  # the log-odds of a score of 0

    @classmethod
    def to(cls, scores: FloatArray, members: BoolArray) -> Self:
        """Fitted to the scores [T, N] of simulated targets, whose members [T, N] are known; to a part of very many."""
        some = some_of(scores.size, _MOST, 0, "line")
        given = _within(scores.reshape(-1)[some])
        fitted = LogisticRegression(C=_LOOSE, max_iter=1000).fit(given[:, None], members.reshape(-1)[some])
        return cls(slope=max(float(fitted.coef_[0, 0]), 0.0), offset=float(fitted.intercept_[0]))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Log-odds for scores, of any shape."""
        return np.asarray(self.slope * _within(scores) + self.offset)


def _within(scores: FloatArray) -> FloatArray:
    return np.clip(scores, -_SUREST, _SUREST)


def log_losses(odds: Iterable[FloatArray], members: BoolArray) -> FloatArray:
    """Log loss of each simulated target, [T], from its log-odds and members, [T, N] each, one target at a time."""
    pairs = zip(odds, members, strict=True)
    return np.array([float(np.logaddexp(0, np.where(who, -one, one)).mean()) for one, who in pairs])


def clearly_finds(odds: FloatArray, members: BoolArray) -> bool:
    """Whether log-odds [T, N] of simulated targets with members [T, N] are far better than their share alone."""
    share = members.mean(axis=1, keepdims=True)
    blind = log_losses(np.broadcast_to(logit(np.clip(share, 1e-9, 1 - 1e-9)), members.shape), members)
    return bool(standard_gain(blind, log_losses(odds, members)) > _CLEARLY)


def part_of_simple(learned: FloatArray, simple: FloatArray, members: BoolArray) -> float:
    """Which part a simple attack should have in the log-odds [T, N] of held-out targets: none, half, or all.

    Learned log-odds, or the mean of both, must have a smaller log loss by more than a standard error over targets. Of
    those that do, the one that finds most members at low false-positive rates is taken; none if the simple attack finds
    more there by a standard error. A simple attack that is not far better than a coin has no part.
    """
    plain = log_losses(simple, members)
    if standard_gain(np.full(len(plain), np.log(2)), plain) <= _CLEARLY:
        return 0.0
    usual, found = power_at_low_rates(simple, members), {}
    for part in (0.0, 0.5):
        if standard_gain(plain, log_losses(_mixed(learned, simple, part), members)) > 1:
            found[part] = power_at_low_rates(_mixed(learned, simple, part), members)
    if not found:
        return 1.0
    best = max(found, key=lambda part: float(found[part].mean()))
    return 1.0 if standard_gain(found[best], usual) < -1 else best


def _mixed(learned: FloatArray, simple: FloatArray, part: float) -> Iterator[FloatArray]:
    """Log-odds [N] of one simulated target after another: all of them together are as large as the evidence."""
    return ((1 - part) * one + part * other for one, other in zip(learned, simple, strict=True))


def power_at_low_rates(odds: Iterable[FloatArray], members: BoolArray) -> FloatArray:
    """Mean share of members that are found at false-positive rates of 0.1, 0.3, 1 and 3 %, [T], by log-odds [T, N]."""
    found = np.zeros(len(members))
    for target, (one, who) in enumerate(zip(odds, members, strict=True)):
        others, own = np.sort(one[~who]), np.sort(one[who])
        if len(others) and len(own):
            allowed = (len(others) * _RATES).astype(np.intp)  # how many others may lie above the threshold
            above = len(own) - np.searchsorted(own, others[len(others) - 1 - allowed], side="right")
            found[target] = np.mean(above / len(own))
    return found


def standard_gain(before: FloatArray, after: FloatArray) -> float:
    """By how many standard errors the figures [T], paired by target, became smaller."""
    gain = before - after
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / error) if error else float(np.sign(gain.mean()) * np.inf if gain.any() else 0.0)
