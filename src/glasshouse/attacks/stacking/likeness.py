"""Whether a target answers like the simulated ones that were learned from, and how to make up for it where not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from glasshouse.arrays import FloatArray

__all__ = ["LARGEST_UNLIKENESS", "Likeness", "steadied", "warning"]

LARGEST_UNLIKENESS = 5.0  # targets of the pool's own kind stay under 3, those of another architecture are past 6
_WEIGHT = 0.75  # of simple attacks; anything from 0.7 to 1 does as well on targets of another architecture
_FURTHEST = 1e6
_LARGEST = 1e100  # a loss of 1e300 is a number, and its square is none
_LEVELS = (np.arange(2000) + 0.5) / 2000


@dataclass(frozen=True, kw_only=True, eq=False)
class Likeness:
    """How simulated targets answer over all records, without a look at who trained them.

    Args:
        quantiles: [levels] of their answers, all together.
        centre: [figures] mean over targets of the mean, the spread and some quantiles of a target's answers.
        spread: [figures] standard deviation over targets.

    Example:
        >>> random = np.random.default_rng(0)
        >>> like = Likeness.of(random.normal(size=(8, 1000)))
        >>> bool(like.distance(random.normal(size=1000)) < 5), bool(like.distance(random.normal(3, 2, size=1000)) > 20)
        (True, True)
    """

    quantiles: FloatArray
    centre: FloatArray
    spread: FloatArray

    @classmethod
    def of(cls, answers: FloatArray) -> Likeness:
        """Of the answers [T, N] of T simulated targets."""
        figures = np.stack([_figures(row) for row in answers])
        floor = 1e-3 * (1 + answers.std())  # equal answers are possible; a spread of 0 would find everything strange
        return cls(
            quantiles=np.quantile(answers, _LEVELS),
            centre=figures.mean(axis=0),
            spread=np.maximum(figures.std(axis=0, ddof=1), floor),
        )

    def distance(self, answers: FloatArray) -> float:
        """How far a target's answers [N] are from theirs: root mean square over the figures, in standard deviations."""
        apart = np.minimum(np.abs(_figures(answers) - self.centre) / self.spread, _FURTHEST)
        return float(np.sqrt(np.mean(apart**2)))

    def matched(self, answers: FloatArray) -> FloatArray:
        """The same answers [N] in the same order, on the scale of the simulated targets'.

        A model that is surer of everything than the pool's has its margins drawn in, and so on, quantile by quantile.

        Example:
            >>> Likeness.of(np.array([[0.0, 1.0], [0.0, 1.0]])).matched(np.array([70.0, 50.0])).round(1)
            array([1., 0.])
        """
        ordered = np.sort(answers)
        below, upto = (np.searchsorted(ordered, answers, side=side) for side in ("left", "right"))
        return np.asarray(np.interp(0.5 * (below + upto) / len(answers), _LEVELS, self.quantiles))


def warning(attack: str, mismatch: float) -> str:
    """What a reader must know of scores of a strange target; empty for one like the simulated ones.

    Example:
        >>> warning("stacked", 1.2)
        ''
        >>> warning("stacked", 23.4).split(":")[0]
        'stacked'
    """
    if mismatch <= LARGEST_UNLIKENESS:
        return ""
    return (
        f"{attack}: the target answers unlike every simulated target (mismatch {mismatch:.1f}; its like stay below "
        f"{LARGEST_UNLIKENESS:.0f}). A simpler attack has a say in the order of its scores, which holds; its "
        f"probabilities do not."
    )


def steadied(odds: FloatArray, *simple: FloatArray) -> FloatArray:
    """Log-odds [N] of a strange target, put in an order in which attacks that learned nothing have a large say.

    What was learned elsewhere may mislead; scores [N] of simple attacks, such as BASE, cannot. All are made normal, the
    weighted sum (4 for what was learned, 3 for the others' mean) gives the order, and the log-odds are dealt out again
    in it.

    Example:
        >>> steadied(np.array([3.0, 2.0, -4.0, -5.0]), np.array([0.2, 0.9, 0.3, 0.1]))
        array([ 2.,  3., -4., -5.])
    """
    both = _normal(odds) + _WEIGHT * np.mean([_normal(scores) for scores in simple], axis=0)
    return np.asarray(np.interp(rankdata(both), np.arange(1, len(odds) + 1), np.sort(odds)))


def _normal(values: FloatArray) -> FloatArray:
    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)))


def _figures(answers: FloatArray) -> FloatArray:
    answers = np.clip(answers, -_LARGEST, _LARGEST)
    return np.array([answers.mean(), answers.std(), *np.quantile(answers, [0.05, 0.25, 0.5, 0.75, 0.95])])
