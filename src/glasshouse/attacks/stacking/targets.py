"""The simulated targets that a stacked attack learns from: which they are, and whether a target answers like them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.randomness import generator, some_of
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
_MOST = 10_000  # answers of a target: enough for its quantiles, and each is copied several times
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
            some = some_of(len(row), _MOST, 0, "answers", number)
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
    some = some_of(len(answers), _MOST, 0, "shares")
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
