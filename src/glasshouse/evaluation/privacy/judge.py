"""From the scores of the attacks to a verdict about ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.privacy.choice import Guessed, chosen_for_every_record, chosen_guesses
from glasshouse.evaluation.privacy.claim import USUAL_DELTA, GaussianBound, PrivacyClaim, PrivacyVerdict, Unit
from glasshouse.evaluation.privacy.gaussian import gaussian_epsilon, mu_if_independent, mu_lower_bound
from glasshouse.evaluation.privacy.guesses import Guesses
from glasshouse.evaluation.privacy.one_run import epsilon_lower_bound

__all__ = ["judge_claim"]


def judge_claim(
    claim: PrivacyClaim | None,
    scores: Mapping[str, FloatArray],
    *,
    members: BoolArray,
    practice: Mapping[str, tuple[float, ...]] | None = None,
    confidence: float = 0.95,
    unit: Unit = "record",
    leak: bool = True,
    withheld: str = "",
) -> PrivacyVerdict:
    """Bound ε by guesses of the attack that did best on simulated targets, and judge a claim.

    Without simulated targets several sets of guesses share the allowed error (Bonferroni).

    Args:
        claim: a stated (ε, δ); None if there is none.
        scores: [N] of each attack that does not know the members, higher means member.
        members: [N] of the target. They count the right guesses and choose nothing.
        practice: `shares_right`, mean over simulated targets, for the attacks that have some.
        confidence: of each bound.
        unit: whose membership it is about.
        leak: False if another test finds no leak at all: every bound is then 0.
        withheld: why no ε can be given; empty if one can.

    Example:
        >>> import numpy as np
        >>> scores, members = np.arange(1000.0), np.arange(1000) >= 500
        >>> verdict = judge_claim(PrivacyClaim(epsilon=1.0), {"base": scores}, members=members)
        >>> verdict.contradicted, verdict.guessed.correct
        (True, 200)
    """
    delta = claim.delta if claim is not None and claim.delta > 0 else USUAL_DELTA
    about = PrivacyVerdict(claim=claim, delta=delta, confidence=confidence, unit=unit, withheld=withheld)
    if withheld or not leak or not scores:
        return about
    practice = practice or {}
    looks = chosen_guesses(scores, members, practice=practice, delta=delta, confidence=confidence)
    bounds = [_bounds(guessed, guesses, delta=delta, confidence=confidence) for guessed, guesses in looks]
    pure, epsilon, gaussian = (max(column) for column in zip(*bounds, strict=True))
    best = max(range(len(looks)), key=lambda place: bounds[place][1])
    every = _independent(chosen_for_every_record(scores, members, practice=practice), confidence=confidence)
    shown = pure if claim is not None and claim.delta == 0 else epsilon
    return PrivacyVerdict(
        claim=claim,
        pure=pure,
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        contradicted=claim is not None and shown > claim.epsilon,
        gaussian=GaussianBound(gaussian, gaussian_epsilon(gaussian, delta), looks[best][0]),
        independent=GaussianBound(every[0], gaussian_epsilon(every[0], delta), every[1]),
        guessed=looks[best][0],
        unit=unit,
    )


def _bounds(guessed: Guessed, guesses: Guesses, *, delta: float, confidence: float) -> tuple[float, float, float]:
    """Bounds on ε at δ = 0, on ε at δ, and on μ, from one set of guesses."""
    each = 1 - (1 - confidence) / guessed.tried
    return (
        epsilon_lower_bound(guesses, confidence=each),
        epsilon_lower_bound(guesses, delta=delta, confidence=each),
        mu_lower_bound(guesses, confidence=each),
    )


def _independent(looks: Sequence[tuple[Guessed, Guesses]], *, confidence: float) -> tuple[float, Guessed]:
    """The largest bound on μ from guesses about every record, and whose guesses they are."""
    bounds = [mu_if_independent(guesses, confidence=1 - (1 - confidence) / guessed.tried) for guessed, guesses in looks]
    best = max(range(len(looks)), key=bounds.__getitem__)
    return bounds[best], looks[best][0]
