"""What an attack shows about differential privacy: bounds between ε and the success of attacks (paper, App. E)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import binom

from glasshouse.errors import InputError

__all__ = ["Guesses", "PrivacyClaim", "PrivacyVerdict", "epsilon_lower_bound", "judge_claim", "posterior_bound"]

_LARGEST_EPSILON = 100.0


def posterior_bound(epsilon: float, *, prior: float = 0.5) -> float:
    """σ(ε + log λ/(1−λ)): against an ε-private model nobody can be surer than this that a record is a member.

    Example:
        >>> round(posterior_bound(1.0), 3), posterior_bound(0.0)
        (0.731, 0.5)
    """
    return float(expit(epsilon + logit(prior)))


class Guesses(NamedTuple):
    """Records that an attack called members, and how many of them were."""

    correct: int
    made: int


def epsilon_lower_bound(
    guesses: Guesses, *, records: int, prior: float = 0.5, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The largest ε that the guesses contradict: with this confidence the true ε is above it; 0 if there is none.

    Under (ε, 0)-privacy each guess "member" is right with probability at most `posterior_bound`, whatever the other
    guesses were, so the number of right ones is at most binomial; δ adds the correction of Steinke, Nasr and Jagielski
    (*Privacy auditing with one training run*, NeurIPS 2023). Members must have been drawn at random, and the threshold
    behind the guesses must not come from the members themselves (ours comes from simulated targets).

    Args:
        guesses: records called members, and how many of them were.
        records: how many were audited in total.
        prior: share of members among them.
        delta: δ of the guarantee.
        confidence: of the bound.

    Example:
        >>> round(epsilon_lower_bound(Guesses(correct=95, made=100), records=1000), 2)
        2.17
    """
    if not 0 <= guesses.correct <= guesses.made <= records:
        raise InputError(f"guesses: {guesses.correct} right of {guesses.made} about {records} records is impossible.")
    if guesses.made == 0:
        return 0.0

    def surprise(epsilon: float) -> float:
        return _chance(guesses, records, posterior_bound(epsilon, prior=prior), delta) - (1 - confidence)

    if surprise(0.0) >= 0:
        return 0.0
    if surprise(_LARGEST_EPSILON) < 0:
        return _LARGEST_EPSILON
    return float(brentq(surprise, 0.0, _LARGEST_EPSILON, xtol=1e-9))


@dataclass(frozen=True, kw_only=True)
class PrivacyClaim:
    """A guarantee that is claimed for the target: (ε, δ)-differential privacy.

    Example:
        >>> PrivacyClaim(epsilon=3.0, delta=1e-5)
        PrivacyClaim(epsilon=3.0, delta=1e-05)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not self.epsilon >= 0 or not 0 <= self.delta < 1:
            raise InputError(f"claim: epsilon {self.epsilon}, delta {self.delta}; use epsilon ≥ 0 and 0 ≤ delta < 1.")


@dataclass(frozen=True)
class PrivacyVerdict:
    """What the attacks show about a claim.

    Args:
        claim: what was claimed; None if there was no claim.
        epsilon: lower bound on the true ε, the largest over all attacks and thresholds.
        confidence: of the bound, over all attacks and thresholds at once.
        contradicted: whether the bound is above the claim.
        withheld: why no bound is given, although it was asked for; then ``epsilon`` is 0 and means nothing.
    """

    claim: PrivacyClaim | None
    epsilon: float
    confidence: float
    contradicted: bool
    withheld: str = ""

    def sentence(self) -> str:
        """The verdict in words."""
        if self.withheld:
            return f"ε is withheld: {self.withheld}."
        level = f"{self.confidence:.0%}"
        found = f"the attacks show ε ≥ {self.epsilon:.2f} with {level} confidence"
        if self.claim is None:
            return f"No guarantee was claimed; {found}."
        stated = f"(ε = {self.claim.epsilon:g}, δ = {self.claim.delta:g})"
        if self.contradicted:
            return f"The claimed {stated} is contradicted: {found}."
        return f"The claimed {stated} is not contradicted: {found}. This does not prove the claim."


def judge_claim(
    claim: PrivacyClaim | None,
    several: Sequence[Guesses],
    *,
    records: int,
    prior: float = 0.5,
    confidence: float = 0.95,
    withheld: str = "",
) -> PrivacyVerdict:
    """Bound ε by the best of several sets of guesses, each with its share of the allowed error (Bonferroni).

    With a reason in ``withheld`` no bound is given, and no claim is judged.

    Example:
        >>> verdict = judge_claim(PrivacyClaim(epsilon=1.0), [Guesses(95, 100), Guesses(10, 10)], records=1000)
        >>> verdict.contradicted, round(verdict.epsilon, 2)
        (True, 2.06)
    """
    if withheld:
        return PrivacyVerdict(claim, 0.0, confidence, contradicted=False, withheld=withheld)
    each = 1 - (1 - confidence) / max(1, len(several))
    delta = claim.delta if claim else 0.0
    bounds = [
        epsilon_lower_bound(guesses, records=records, prior=prior, delta=delta, confidence=each) for guesses in several
    ]
    epsilon = max(bounds, default=0.0)
    return PrivacyVerdict(claim, epsilon, confidence, contradicted=claim is not None and epsilon > claim.epsilon)


def _chance(guesses: Guesses, records: int, success: float, delta: float) -> float:
    """Upper bound on the chance of so many right guesses under the guarantee."""
    plain = float(binom.sf(guesses.correct - 1, guesses.made, success))
    if delta == 0.0 or guesses.correct == 0:
        return plain
    # δ may turn i wrong guesses right at the cost of i failures; the worst i is the largest mean probability
    steps = np.arange(1, guesses.correct + 1)
    lost = np.cumsum(binom.pmf(guesses.correct - steps, guesses.made, success))
    return min(1.0, plain + 2 * records * delta * float((lost / steps).max()))
