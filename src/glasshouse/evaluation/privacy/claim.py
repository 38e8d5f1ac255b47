"""What is claimed about a target's privacy, and what the attacks show about it, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from glasshouse.errors import InputError, shortened
from glasshouse.evaluation.privacy.choice import Guessed

__all__ = ["USUAL_DELTA", "GaussianBound", "PrivacyClaim", "PrivacyVerdict", "Unit", "as_claim"]

USUAL_DELTA = 1e-5
Unit = Literal["record", "node"]

_NEEDS: dict[Unit, str] = {
    "record": "if members were drawn at random, each record by itself",
    "node": (
        "if training nodes were drawn at random, each by itself, and neighbouring data sets differ in one node with "
        "all its edges"
    ),
}


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
        given: dict[str, object] = {"epsilon": self.epsilon, "delta": self.delta}
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, Real):
                raise InputError(f"claim: {name}: {shortened(value)} is not a number.")
        if not 0 <= self.epsilon < math.inf or not 0 <= self.delta < 1:
            raise InputError(
                f"claim: epsilon {self.epsilon}, delta {self.delta}; use a finite epsilon ≥ 0 and 0 ≤ delta < 1."
            )


def as_claim(given: PrivacyClaim | Mapping[str, float] | None) -> PrivacyClaim | None:
    """A claim, or a mapping with ``epsilon`` and perhaps ``delta``, as audit files have it; anything else is refused.

    Example:
        >>> as_claim({"epsilon": 8.0, "delta": 1e-5})
        PrivacyClaim(epsilon=8.0, delta=1e-05)
        >>> as_claim((8.0, 1e-5))
        Traceback (most recent call last):
        glasshouse.errors.InputError: claim: (8.0, 1e-05) is no claim; give PrivacyClaim(epsilon=8.0, delta=...
    """
    if given is None or isinstance(given, PrivacyClaim):
        return given
    if isinstance(given, Mapping) and "epsilon" in given and given.keys() <= {"epsilon", "delta"}:
        return PrivacyClaim(**given)
    raise InputError(
        f"claim: {shortened(given)} is no claim; give PrivacyClaim(epsilon=8.0, delta=1e-5), or "
        f'{{"epsilon": 8.0, "delta": 1e-5}}, of which delta may be left out.'
    )


@dataclass(frozen=True)
class GaussianBound:
    """A lower bound on μ of Gaussian privacy, and the ε that follows from it at the verdict's δ.

    Args:
        mu: bound on μ.
        epsilon: at the δ of the verdict.
        guessed: the guesses behind it; None if none were made.
    """

    mu: float = 0.0
    epsilon: float = 0.0
    guessed: Guessed | None = None


@dataclass(frozen=True, kw_only=True)
class PrivacyVerdict:
    """What the attacks show about ε. Each bound holds with the stated confidence by itself.

    A bound that assumes more and does not show more is left out, here for table, page, file and appendix alike: it is
    then an empty `GaussianBound`.

    Args:
        claim: what was claimed; None if there was no claim.
        pure: lower bound on ε at δ = 0. It assumes nothing about the training.
        epsilon: lower bound on ε at ``delta``. It assumes nothing about the training.
        delta: of the claim; the usual 1e-5 where none is claimed.
        confidence: of each bound.
        contradicted: whether the claimed ε is below the bound at the claimed δ.
        gaussian: under Gaussian privacy, whatever the records have to do with each other.
        independent: under Gaussian privacy, and if guesses about different records are independent.
        guessed: the guesses behind ``pure``, ``epsilon`` and ``gaussian``; None if none were made.
        unit: whose membership it is about.
        withheld: why no ε is given; empty if one is.
    """

    claim: PrivacyClaim | None = None
    pure: float = 0.0
    epsilon: float = 0.0
    delta: float = USUAL_DELTA
    confidence: float = 0.95
    contradicted: bool = False
    gaussian: GaussianBound = GaussianBound()
    independent: GaussianBound = GaussianBound()
    guessed: Guessed | None = None
    unit: Unit = "record"
    withheld: str = ""

    def __post_init__(self) -> None:
        """Compare the bounds in the order of their assumptions, each at ``delta``."""
        best = self.epsilon
        for name in ("gaussian", "independent"):
            bound: GaussianBound = getattr(self, name)
            if bound.epsilon <= best:
                object.__setattr__(self, name, GaussianBound())
            best = max(best, bound.epsilon)

    @property
    def shown(self) -> float:
        """The bound that a claim is compared with: at the claimed δ, or at the usual one."""
        return self.pure if self.claim is not None and self.claim.delta == 0 else self.epsilon

    def sentence(self) -> str:
        """The verdict in words, with its assumption: what is shown without assuming anything about the training.

        Example:
            >>> PrivacyVerdict(pure=1.72, epsilon=1.71).sentence().split(" with ")[0]
            'No guarantee was claimed; the attacks show ε ≥ 1.71 at δ = 1e-05 (≥ 1.72 at δ = 0)'
        """
        if self.withheld:
            return f"ε is withheld: {self.withheld.rstrip('.')}."
        found = f"the attacks show {self.bound()} with {100 * self.confidence:g} % confidence, {_NEEDS[self.unit]}"
        if self.claim is None:
            return f"No guarantee was claimed; {found}."
        stated = f"(ε = {self.claim.epsilon:g}, δ = {self.claim.delta:g})"
        if self.contradicted:
            return f"The claimed {stated} is contradicted: {found}."
        return f"The claimed {stated} is not contradicted: {found}. This does not prove the claim."

    def gaussian_sentence(self) -> str:
        """What follows under Gaussian privacy, with each assumption named; empty where nothing follows.

        Example:
            >>> bounds = {"gaussian": GaussianBound(0.6, 2.44), "independent": GaussianBound(0.85, 3.6)}
            >>> PrivacyVerdict(pure=1.7, epsilon=1.7, **bounds).gaussian_sentence().split(";")[0]
            'Under Gaussian privacy (noise as that of DP-SGD) ε ≥ 2.44 at δ = 1e-05 (μ ≥ 0.60)'
        """
        said = []
        if self.gaussian.epsilon > 0:
            said.append(f"ε ≥ {self.gaussian.epsilon:.2f} at δ = {self.delta:g} (μ ≥ {self.gaussian.mu:.2f})")
        if self.independent.epsilon > 0:
            also = "if also" if said else "and if"
            found = f"ε ≥ {self.independent.epsilon:.2f} at δ = {self.delta:g} (μ ≥ {self.independent.mu:.2f})"
            said.append(f"{also} every guess is right or wrong independently of the others, {found}")
        if self.withheld or not said:
            return ""
        scope = "These two hold" if len(said) == 2 else "This holds"
        found = "; ".join(said)
        return f"Under Gaussian privacy (noise as that of DP-SGD) {found}. {scope} only under what is assumed."

    def bound(self) -> str:
        """The bound alone, as a part of a sentence.

        Example:
            >>> PrivacyVerdict(pure=1.72, epsilon=1.71, unit="node").bound()
            'node-level ε ≥ 1.71 at δ = 1e-05 (≥ 1.72 at δ = 0)'
        """
        level = {"record": "", "node": "node-level "}[self.unit]
        if self.pure <= 0:
            return f"no {level}ε above 0 (at δ = 0 and at δ = {self.delta:g})"
        return f"{level}ε ≥ {self.epsilon:.2f} at δ = {self.delta:g} (≥ {self.pure:.2f} at δ = 0)"
