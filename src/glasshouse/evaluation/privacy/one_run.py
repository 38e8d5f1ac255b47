r"""How many guesses can be right under differential privacy, whatever the records have to do with each other.

Of :math:`m` records, :math:`n` are guessed; :math:`p_j` is the chance that :math:`j` guesses are right. Flip the
membership of one random record: its guess changes from right to wrong, and privacy bounds how much the chances move.
So for every set :math:`T` of counts (Mahloujifar, Melis and Chaudhuri, *Auditing f-differential privacy in one run*,
ICML 2025, Theorem 3.2; here for a trade-off function of slope :math:`e^ε` and offset δ)

.. math:: \sum_{j \in T} j\, p_j \le e^ε \sum_{j \in T} (n-j+1)\, p_{j-1} + m δ.

Let :math:`w_j` be the binomial chances of :math:`j` right guesses of :math:`n` where each is right with probability
:math:`σ(ε)`: then :math:`j w_j = e^ε (n-j+1) w_{j-1}`. So :math:`x_j = p_j / w_j` satisfies
:math:`x_j \le x_{j-1} + m δ_j / (j w_j)`, where the :math:`δ_j \ge 0` sum to at most δ. Add these steps from any
:math:`j < c` to any :math:`k \ge c`, multiply by :math:`w_j w_k` and sum over :math:`j` and :math:`k`: with
:math:`β = \sum_{k \ge c} w_k`,

.. math:: P(\text{at least } c \text{ right}) \le β + m δ\, β (1-β) / (c\, w_c).

(The factor of :math:`δ_i` is largest at :math:`i = c`, since binomial chances are log-concave.) This is the largest
value that the inequalities allow: tests compare it with a linear program. At δ = 0 it is the binomial bound of Steinke,
Nasr and Jagielski (*Privacy auditing with one (1) training run*, NeurIPS 2023), and for δ > 0 it is below theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, expit, gammaln, log_expit, logit

from glasshouse.arrays import FloatArray
from glasshouse.evaluation.privacy.guesses import Guesses

__all__ = ["delta_shown", "epsilon_lower_bound", "expected_bound", "posterior_bound"]

_LARGEST_EPSILON = 100.0
_TINY = 1e-250


def posterior_bound(epsilon: float, *, prior: float = 0.5) -> float:
    """σ(ε + log λ/(1−λ)): against an ε-private model nobody can be surer than this that a record is a member.

    Example:
        >>> round(posterior_bound(1.0), 3), posterior_bound(0.0)
        (0.731, 0.5)
    """
    return float(expit(epsilon + logit(prior)))


def epsilon_lower_bound(guesses: Guesses, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The largest ε that the guesses contradict: with this confidence the true ε is above it; 0 if there is none.

    Nothing is assumed about how records influence each other. Members must have been drawn at random, and what decides
    the guesses must not come from the members themselves.

    Args:
        guesses: made, and right.
        delta: δ of the guarantee.
        confidence: of the bound.

    Example:
        >>> round(epsilon_lower_bound(Guesses(95, 100, possible=1000)), 2)
        2.17
        >>> round(epsilon_lower_bound(Guesses(95, 100, possible=1000), delta=1e-5), 2)
        2.17
    """
    return float(_bounds(_Many.of([guesses]), delta=delta, confidence=confidence)[0])


def expected_bound(
    shares: FloatArray, planned: Sequence[Guesses], *, delta: float = 0.0, confidence: float = 0.95
) -> FloatArray:
    """[D] the bound to expect from planned guesses [D] that will be right in these shares, between two whole counts.

    Example:
        >>> expected_bound(np.array([0.95, 0.7]), [Guesses(0, 100, 1000), Guesses(0, 1000, 1000)]).round(2)
        array([2.17, 0.73])
    """
    many = _Many.of(planned)
    right = shares * many.made
    low = np.floor(right + 1e-9)
    rest = np.clip(right - low, 0.0, 1.0)
    below, above = (
        _bounds(many._replace(correct=count), delta=delta, confidence=confidence)
        for count in (low, np.minimum(low + 1, many.made))
    )
    return (1 - rest) * below + rest * above


def delta_shown(epsilon: FloatArray, guesses: Guesses, *, confidence: float = 0.95) -> FloatArray:
    """[E] below which δ the guesses contradict (ε, δ)-privacy, for each ε [E]; 0 where they contradict no δ.

    Example:
        >>> delta_shown(np.array([0.0, 2.0, 3.0]), Guesses(95, 100, possible=1000)).round(4)
        array([0.0045, 0.0021, 0.    ])
    """
    return _delta_shown(np.asarray(epsilon, dtype=np.float64), _Many.of([guesses]), confidence=confidence)


class _Many(NamedTuple):
    """Several `Guesses` as arrays [D]."""

    correct: FloatArray
    made: FloatArray
    possible: FloatArray
    prior: FloatArray

    @classmethod
    def of(cls, several: Sequence[Guesses]) -> _Many:
        """From one object each."""
        return cls(*(np.array([getattr(one, name) for one in several], dtype=np.float64) for name in cls._fields))

    def ways(self) -> FloatArray:
        """[D] logarithm of the binomial coefficient."""
        wrong = self.made - self.correct
        return np.asarray(gammaln(self.made + 1) - gammaln(self.correct + 1) - gammaln(wrong + 1))


def _bounds(many: _Many, *, delta: float, confidence: float) -> FloatArray:
    """[D] bounds on ε: the contradicted δ falls with ε, so its crossing of ``delta`` is found by halving."""
    low = np.zeros(len(many.made))
    high = np.where(_delta_shown(low, many, confidence=confidence) > delta, _LARGEST_EPSILON, 0.0)
    while (high - low).max() > 1e-9:
        middle = (low + high) / 2
        contradicted = _delta_shown(middle, many, confidence=confidence) > delta
        low, high = np.where(contradicted, middle, low), np.where(contradicted, high, middle)
    return low


def _delta_shown(epsilon: FloatArray, many: _Many, *, confidence: float) -> FloatArray:
    """The bound of the module solved for δ, where it is 1 − confidence."""
    correct, made = many.correct, many.made
    odds = epsilon + logit(np.clip(many.prior, 1e-12, 1 - 1e-12))
    tail = betainc(np.maximum(correct, 1), made - correct + 1, expit(odds))  # β
    at = np.exp(many.ways() + correct * log_expit(odds) + (made - correct) * log_expit(-odds))  # w_c
    with np.errstate(divide="ignore", invalid="ignore"):
        # w_c / β, and where β is too small for a float: below it, from the sum of a geometric series
        falling = 1 - np.exp(np.minimum(odds, 50.0)) * (made - correct) / (correct + 1)
        first = np.where(tail > _TINY, at / tail, np.maximum(falling, 0.0))
        room = (1 - confidence - tail) / (1 - tail)
        shown = room * correct * first / np.maximum(many.possible, 1)
    return np.where((tail < 1 - confidence) & (correct > 0), shown, 0.0)
