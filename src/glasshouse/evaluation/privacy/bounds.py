r"""Guesses about membership by rank: the top of the records, the bottom, or both; neither a threshold nor the truth.

How many guesses can be right under differential privacy, whatever the records have to do with each other.

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

Gaussian differential privacy: one number μ for a whole trade-off curve (Dong, Roth and Su, JRSS B 2022).

Let :math:`c` of :math:`n` guesses be right, of :math:`m` that could be, where a guess without a look at the model
has the odds :math:`o`. Write :math:`P_i` for the chance of at least :math:`i` right guesses. The inequality of
`one_run` for a whole trade-off curve and the counts above :math:`i` is

.. math:: \frac1m \sum_{j > i} j\, p_j \le \bar f\Bigl(\frac om \sum_{j \ge i} (n-j)\, p_j\Bigr),
          \qquad \bar f(x) = 1 - G_μ(x) = Φ(Φ^{-1}(x) + μ).

Both sums are sums of tails: with :math:`S_i = P_i + P_{i+1} + …` the left one is
:math:`(i P_{i+1} + S_{i+1}) / m`, and the right one is :math:`(n-i) P_i - S_{i+1}`. So

.. math:: P_i \ge \max\Bigl(P_{i+1},\;
          \frac{S_{i+1} + \frac mo \bar f^{-1}\bigl((i P_{i+1} + S_{i+1}) / m\bigr)}{n-i}\Bigr),

which grows with every tail above :math:`i`. If :math:`P_c` were as large as 1 − confidence, then all :math:`P_i`
were at least what this gives from :math:`P_c` = 1 − confidence and :math:`P_{c+1} = 0`; a :math:`P_i` above 1 is
impossible and contradicts μ (the recursion of Mahloujifar, Melis and Chaudhuri, 2025).

Bounds with coins of our own, and how many canaries they need.

Let canary :math:`i` be inside and :math:`j` outside, or the other way round, with equal chances. If each is released
under its own independent noise with μ-Gaussian privacy, the two cases are :math:`\sqrt2 μ`-Gaussian private together
(Dong, Roth and Su, JRSS B 2022, Corollary 2). "The one with the higher score is inside" is then right with probability
at most :math:`Φ(\sqrt2 μ / 2)`. Averaged over all pairs and coins, this is the AUC. So an AUC that is above
:math:`a` with confidence shows :math:`μ \ge \sqrt2\, Φ^{-1}(a)`. A count of right guesses by one threshold uses less:
for a shift of a normal score it has 2/π of the information, and ranks have 3/π.

The variance of the AUC is about :math:`c\,(1/n_1 + 1/n_0)`, with :math:`n_1` canaries inside and :math:`n_0` left out.
Only those inside train a model and cost accuracy. Canaries that are left out cost a query each: with four times as many
of them the error falls to 0.79 of that of fair coins, and with very many to 0.71.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, expit, gammaln, log_expit, log_ndtr, logit, ndtr, ndtri

from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evaluation.intervals import delong, lowest_rate
from glasshouse.evaluation.roc import SortedScores

_FRACTIONS = (0.0002, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35)


class Design(NamedTuple):
    """Which shares of the ranked records are guessed: the top as members, the bottom as non-members; no others."""

    members: float
    others: float

    @property
    def both(self) -> bool:
        """Whether there are guesses on both sides; they are then equally many."""
        return self.members > 0 and self.others > 0


DESIGNS = (
    *(Design(share, share) for share in _FRACTIONS),
    *(Design(share, 0.0) for share in _FRACTIONS),
    *(Design(0.0, share) for share in _FRACTIONS),
)
EVERY_RECORD = Design(0.5, 0.5)


@dataclass(frozen=True)
class Guesses:
    """How many guesses were made, and how many of them were right."""

    correct: int  # right guesses
    made: int  # all guesses; the other records were left open
    # of how many records a guess of this kind could be right: all of them for guesses on both sides, the members for
    # guesses "member" alone, the non-members for guesses "not a member" alone
    possible: int
    prior: float = 0.5  # the chance of being right without a look at the model

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.made or self.correct > self.possible:
            raise InputError(
                f"guesses: {self.correct} right of {self.made}, where {self.possible} could be, is impossible."
            )


def count_right(scores: FloatArray, members: BoolArray, design: Design) -> Guesses:
    """Guess by the ranks of the scores [N], and count the right guesses against the members [N].

    Tied scores are ordered by a fixed random permutation. Guesses on both sides need as many members as non-members;
    where the shares differ by more than fair coins do, records of the larger group are first left out at random: they
    belong to the data set that is known anyway.
    """
    return _guesses(scores, members, [design])[design]


def shares_right(scores: FloatArray, members: BoolArray, *, ordered: SortedScores | None = None) -> tuple[float, ...]:
    """How many guesses of each of `DESIGNS`, and at last of `EVERY_RECORD`, are right, as shares at even odds.

    At even odds means: as if half of the records were members. ``ordered`` are the same scores sorted, if known.
    """
    counted = _guesses(scores, members, [*DESIGNS, EVERY_RECORD], ordered=ordered).values()
    shares = np.array([guesses.correct / guesses.made if guesses.made else 0.5 for guesses in counted])
    with np.errstate(divide="ignore"):  # all right, or none: the odds are infinite, and the share stays what it is
        return tuple(expit(logit(shares) - logit([guesses.prior for guesses in counted])).tolist())


def sized(members: BoolArray) -> Mapping[Design, Guesses]:
    """The guesses of each of `DESIGNS` before any score is looked at: how many are made, and with which prior."""
    return _guesses(np.zeros(len(members)), members, DESIGNS)


@dataclass(frozen=True, eq=False)
class _Ranking:
    """Records by their scores, the highest first; tied ones are shuffled, which is drawn only where it matters."""

    scores: FloatArray
    members: BoolArray
    ordered: SortedScores
    shuffled: Callable[[], Positions]

    @functools.cached_property
    def _ranked(self) -> BoolArray:
        order = self.shuffled()
        return self.members[order[np.argsort(-self.scores[order], kind="stable")]]

    def members_in_top(self, count: int) -> int:
        found = self.ordered.members_in_top(count)
        return int(np.count_nonzero(self._ranked[:count])) if found is None else found


def _guesses(
    scores: FloatArray, members: BoolArray, designs: Sequence[Design], *, ordered: SortedScores | None = None
) -> dict[Design, Guesses]:
    random = generator(len(scores), "order of tied scores")
    shuffled = functools.cache(lambda: random.permutation(len(scores)))  # drawing takes as long as sorting
    everyone = balanced = _Ranking(scores, members, ordered or SortedScores.of(scores, members), shuffled)
    surplus = 2 * int(members.sum()) - len(members)
    if abs(surplus) > 3 * math.sqrt(len(members)):  # fair coins may well differ by less
        order, kept = shuffled(), np.ones(len(members), dtype=np.bool_)  # who stays so that membership is a fair coin
        larger = np.flatnonzero(members if surplus > 0 else ~members)
        kept[random.permutation(larger)[: abs(surplus)]] = False
        some, place = (scores[kept], members[kept]), np.cumsum(kept) - 1
        balanced = _Ranking(*some, SortedScores.of(*some), lambda: place[order[kept[order]]])
    return {design: _counted(design, balanced if design.both else everyone) for design in designs}


def _counted(design: Design, ranking: _Ranking) -> Guesses:
    count = len(ranking.members)
    inside = ranking.members_in_top(count)
    top, bottom = (_size(share, count) for share in design)
    right_top = ranking.members_in_top(top)
    right_bottom = bottom - (inside - ranking.members_in_top(count - bottom))
    if design.both:
        return Guesses(right_top + right_bottom, top + bottom, count)
    if top:
        return Guesses(right_top, top, inside, inside / count)
    return Guesses(right_bottom, bottom, count - inside, 1 - inside / count)


def _size(share: float, count: int) -> int:
    """At least one record where there are enough for guesses on both sides, and never more than asked for otherwise."""
    return 0 if share == 0 else min(max(1, int(share * count)), count // 2)


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
    return float(_bounds(guesses, delta=delta, confidence=confidence))


def expected_bound(
    shares: FloatArray, planned: Sequence[Guesses], *, delta: float = 0.0, confidence: float = 0.95
) -> FloatArray:
    """[D] the bound to expect from planned guesses [D] that will be right in these shares, between two whole counts."""
    many = _Many.of(planned)
    right = shares * many.made
    low = np.floor(right + 1e-9)
    rest = np.clip(right - low, 0.0, 1.0)
    below, above = (
        _bounds(many._replace(correct=count), delta=delta, confidence=confidence)
        for count in (low, np.minimum(low + 1, many.made))
    )
    return (1 - rest) * below + rest * above


class _Many(NamedTuple):
    """Several `Guesses` as arrays [D] of the same names."""

    correct: FloatArray
    made: FloatArray
    possible: FloatArray
    prior: FloatArray

    @classmethod
    def of(cls, several: Sequence[Guesses]) -> _Many:
        """From one object each."""
        return cls(*(np.array([getattr(one, name) for one in several], dtype=np.float64) for name in cls._fields))


def _bounds(guesses: Guesses | _Many, *, delta: float, confidence: float) -> FloatArray:
    """Bounds on ε, [] or [D]: the contradicted δ falls with ε, so its crossing of ``delta`` is found by halving."""
    low = np.zeros(np.shape(guesses.made))
    high = np.full_like(low, _LARGEST_EPSILON)
    while (high - low).max() > 1e-9:
        middle = (low + high) / 2
        contradicted = delta_shown(middle, guesses, confidence=confidence) > delta
        low, high = np.where(contradicted, middle, low), np.where(contradicted, high, middle)
    return low


def delta_shown(epsilon: ArrayLike, guesses: Guesses | _Many, *, confidence: float = 0.95) -> FloatArray:
    """Below which δ guesses contradict (ε, δ)-privacy, for ε [E] or of several guesses [D]; 0 where they never do.

    It is the bound of the module solved for δ, where it is 1 − confidence.
    """
    correct, made = guesses.correct, guesses.made
    odds = epsilon + logit(np.clip(guesses.prior, 1e-12, 1 - 1e-12))
    tail = betainc(np.maximum(correct, 1), made - correct + 1, expit(odds))  # β
    ways = gammaln(made + 1) - gammaln(correct + 1) - gammaln(made - correct + 1)  # log of the binomial coefficient
    at = np.exp(ways + correct * log_expit(odds) + (made - correct) * log_expit(-odds))  # w_c
    with np.errstate(divide="ignore", invalid="ignore"):
        # w_c / β, and where β is too small for a float: below it, from the sum of a geometric series
        falling = 1 - np.exp(np.minimum(odds, 50.0)) * (made - correct) / (correct + 1)
        first = np.where(tail > _TINY, at / tail, np.maximum(falling, 0.0))
        room = (1 - confidence - tail) / (1 - tail)
        shown = room * correct * first / np.maximum(guesses.possible, 1)
    return np.where((tail < 1 - confidence) & (np.asarray(correct) > 0), shown, 0.0)


_LARGEST_MU = 30.0
_SLOPES = 512


def gaussian_delta(epsilon: FloatArray | float, mu: float) -> FloatArray:
    """δ(ε) of μ-Gaussian privacy, Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), exact."""
    if mu <= 0:
        return np.zeros_like(np.asarray(epsilon, dtype=np.float64))
    ratio = np.asarray(epsilon, dtype=np.float64) / mu
    return np.asarray(ndtr(mu / 2 - ratio) - np.exp(epsilon + log_ndtr(-mu / 2 - ratio)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε at a δ of μ-Gaussian privacy; infinite at δ = 0, since no Gaussian noise is private without δ.

    Example:
        >>> round(gaussian_epsilon(1.0, 1e-5), 2), gaussian_epsilon(0.0, 1e-5)
        (4.38, 0.0)
    """
    if mu <= 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return float("inf")
    highest = mu * mu / 2 + 40 * mu  # there δ is below 1e-300
    return float(brentq(lambda epsilon: float(gaussian_delta(epsilon, mu)) - delta, 0.0, highest))


def gaussian_trade_off(fpr: FloatArray, mu: float) -> FloatArray:
    """G_μ: the smallest false-negative rate at false-positive rates [P] under μ-Gaussian privacy."""
    return np.asarray(ndtr(ndtri(1 - fpr) - mu))


def mu_lower_bound(guesses: Guesses, *, confidence: float = 0.95) -> float:
    """The largest μ that the guesses contradict, whatever the records have to do with each other.

    μ is contradicted by the recursion of the module, or by one of its pairs (ε, δ(ε)) through `delta_shown`: both bound
    the chance of as many right guesses. The pairs allow less in few cases, mostly of many guesses.

    Example:
        >>> round(mu_lower_bound(Guesses(95, 100, possible=1000)), 2)
        0.79
    """
    highest = epsilon_lower_bound(guesses, confidence=confidence)
    if highest <= 0:
        return 0.0
    epsilons = np.linspace(0.0, highest, _SLOPES, endpoint=False)
    shown = delta_shown(epsilons, guesses, confidence=confidence)
    low, high = 0.0, _LARGEST_MU
    while high - low > 1e-9:
        middle = (low + high) / 2
        by_a_pair = (gaussian_delta(epsilons, middle) < shown).any()
        contradicted = by_a_pair or _impossible(guesses, middle, tail=1 - confidence)
        low, high = (middle, high) if contradicted else (low, middle)
    return low


def _impossible(guesses: Guesses, mu: float, *, tail: float) -> bool:
    """Whether a chance of ``tail`` for as many right guesses would make another chance larger than 1."""
    made, possible = guesses.made, guesses.possible
    prior = min(max(guesses.prior, 1e-12), 1 - 1e-12)
    odds = prior / (1 - prior)
    at_least = above = tail  # P and S of the count before
    for count in range(guesses.correct - 1, -1, -1):
        right = min((count * at_least + above) / possible, 1.0)  # above 1 only by rounding
        wrong = possible / odds * float(ndtr(ndtri(right) - mu))
        needed = (above + wrong) / (made - count)
        if needed <= at_least:
            return False  # smaller counts then need no chance of their own: the sums stay, and made − count grows
        if needed > 1:
            return True
        at_least = needed
        above += needed
    return False


def mu_if_independent(guesses: Guesses, *, confidence: float = 0.95) -> float:
    """The largest μ that guesses about every record contradict, *if they are right or wrong independently*.

    Under μ-Gaussian privacy a guess about a fair coin is right with probability at most Φ(μ/2). Without independence
    the bound can be far too high: see `mu_lower_bound`. One right guess is not counted: where exactly half of the
    records are members, right guesses by rank come in pairs.

    Example:
        >>> round(mu_if_independent(Guesses(691, 1000, possible=1000)), 2)
        0.85
    """
    correct = guesses.correct - 1
    if correct <= 0:
        return 0.0
    return max(0.0, 2 * float(ndtri(lowest_rate(correct, guesses.made, 1 - confidence))))


_SMALLEST, _LARGEST = 20, 10_000_000  # canaries


def mu_from_area(scores: FloatArray, members: BoolArray, *, confidence: float = 0.95) -> float:
    """The largest μ that the order of scores [n] contradicts, *if canaries do not influence each other*.

    Members must have been drawn by independent coins. The interval of the AUC is DeLong's, one-sided, which is right
    for many canaries.

    Example:
        >>> random = np.random.default_rng(0)
        >>> members = random.random(2000) < 0.5
        >>> scores = members + random.normal(size=2000)  # μ = 1
        >>> 0.85 < mu_from_area(scores, members) < 1
        True
    """
    low = delong(scores, members, confidence=2 * confidence - 1).low
    return max(0.0, math.sqrt(2) * float(ndtri(low))) if low < 1 else math.inf


def area_spread(mu: float, share: float = 0.5) -> float:
    """The standard deviation of the AUC times √n, for n canaries whose scores are shifted by μ, a share of them inside.

    Example:
        >>> round(area_spread(0.0), 3)  # √(1/3)
        0.577
    """
    places, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    area = float(ndtr(mu / math.sqrt(2)))
    placement = float((weights * ndtr(places + mu) ** 2).sum()) - area**2  # of one member among the others' scores
    return math.sqrt(max(placement, 0.0) / (share * (1 - share)))  # two samples with equal placements


def mu_of(epsilon: float, delta: float) -> float:
    """The μ whose Gaussian privacy has this ε at this δ.

    Example:
        >>> round(gaussian_epsilon(mu_of(4.0, 1e-5), 1e-5), 6)
        4.0
    """
    if not (0 < epsilon < 50 and 0 < delta < 1):
        raise InputError(f"epsilon {epsilon}, delta {delta}: use an ε between 0 and 50, and a δ between 0 and 1.")
    return float(brentq(lambda mu: gaussian_epsilon(mu, delta) - epsilon, 1e-6, 20.0))


def canaries_for(
    epsilon: float,
    *,
    shown: float,
    share: float = 0.5,
    delta: float = 1e-5,
    power: float = 0.8,
    confidence: float = 0.95,
) -> int:
    """How many canaries show an ε of ``shown`` where the true one is ``epsilon``, with this power.

    It is for canaries that find all that Gaussian privacy allows; weaker ones need more.

    Args:
        epsilon: the true ε that a leak would have, at δ.
        shown: the bound to show, below it.
        share: of the canaries that are inside, the chance of each one's coin.
        delta: δ of both.
        power: the chance that the bound is reached.
        confidence: of the bound.

    Example:
        >>> canaries_for(4.0, shown=2.4) < canaries_for(1.0, shown=0.6)
        True
    """
    if not 0 < shown < epsilon:
        raise InputError(f"shown {shown}: give an ε between 0 and {epsilon}, the one that is expected.")
    true, least = mu_of(epsilon, delta), mu_of(shown, delta)
    gap = float(ndtr(true / math.sqrt(2)) - ndtr(least / math.sqrt(2)))
    spreads = area_spread(least, share), area_spread(true, share)
    reach = -float(ndtri(1 - confidence)) * spreads[0] - float(ndtri(1 - power)) * spreads[1]
    count = math.ceil((reach / gap) ** 2)
    if count > _LARGEST:
        raise InputError(f"shown {shown}: needs {count} canaries; ask for less than that of {epsilon}.")
    return max(_SMALLEST, 2 * math.ceil(count / 2))
