"""What is claimed about a target's privacy, and what the attacks show about it, in numbers and in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from scipy.special import expit, logit

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.evaluation.intervals import ratio_bound
from glasshouse.evaluation.privacy.bounds import (
    DESIGNS,
    EVERY_RECORD,
    Design,
    Guesses,
    count_right,
    epsilon_lower_bound,
    expected_bound,
    gaussian_epsilon,
    mu_if_independent,
    mu_lower_bound,
    sized,
)
from glasshouse.evaluation.roc import roc

LOOK_ERROR = 0.025 / 4  # of each of the four looks that a rating takes besides the TPR at the wanted rate, one-sided
_ENDS = (0.35, 0.15)  # shares of the records at either end that a rating guesses about
_BOTH_ENDS = Design(0.1, 0.1)
_WITHOUT_PRACTICE = (Design(0.02, 0.02), Design(0.1, 0.1), Design(0.05, 0.0))


@dataclass(frozen=True)
class Guessed:
    """What was guessed."""

    attack: str  # whose scores ranked the records
    members: int  # how many records were guessed to be members
    others: int  # how many were guessed to be non-members
    correct: int  # how many of both were right
    tried: int = 1  # how many sets of guesses share the allowed error; 1 if the choice was made on simulated targets

    def sentence(self, unit: str = "record") -> str:
        """What was guessed, how many guesses were right, and where that was chosen."""
        sides = [f"the {self.members} {unit}s ranked highest members"] if self.members else []
        sides += [f"the {self.others} {unit}s ranked lowest non-members"] if self.others else []
        chosen = (
            f"{self.tried} sets of guesses were tried, and share the allowed error."
            if self.tried > 1
            else "Which attack guesses, and about how many, was chosen without looking at the target's members."
        )
        right = f"{self.correct} of these {self.members + self.others} guesses were right"
        return f"{self.attack} called {' and '.join(sides)}; {right}. {chosen}"


def chosen_guesses(
    scores: Mapping[str, FloatArray],
    members: BoolArray,
    *,
    practice: Mapping[str, tuple[float, ...]],
    delta: float,
    confidence: float,
) -> list[tuple[Guessed, Guesses]]:
    """The guesses to judge: one set, chosen on simulated targets; several, where none were simulated."""
    known = [name for name in scores if name in practice]
    if not known:
        looks = list(itertools.product(scores, _WITHOUT_PRACTICE))
        return [_made(name, scores[name], members, design, tried=len(looks)) for name, design in looks]
    planned = list(sized(members).values()) * len(known)  # how many guesses are made does not depend on who is a member
    even = np.array([practice[name][: len(DESIGNS)] for name in known]).ravel()
    with np.errstate(divide="ignore"):
        here = expit(logit(even) + logit([one.prior for one in planned]))  # from even odds to this share of members
    bounds = expected_bound(here, planned, delta=delta, confidence=confidence)  # of each attack and design
    name, design = known[int(bounds.argmax()) // len(DESIGNS)], DESIGNS[int(bounds.argmax()) % len(DESIGNS)]
    if bounds.max() <= 0:  # the target may leak though simulated targets do not, so it is guessed all the same
        name, design = max(known, key=lambda one: practice[one][-1]), _BOTH_ENDS
    return [_made(name, scores[name], members, design)]


def most_often_right(
    scores: Mapping[str, FloatArray], practice: Mapping[str, tuple[float, ...]], *, at: int
) -> list[str]:
    """The attack with most right guesses of a design about simulated targets; all, if none was tried on some."""
    known = [name for name in scores if name in practice]
    return [max(known, key=lambda one: practice[one][at])] if known else list(scores)


def rated_epsilon(
    scores: Mapping[str, FloatArray], members: BoolArray, *, practice: Mapping[str, tuple[float, ...]]
) -> float:
    """The bound on ε at δ = 0 that a rating uses, with an error of `LOOK_ERROR`.

    `chosen_guesses` are as many as are best for so many records, and so they jump where there are more: a bound can
    then be lower. Here all counts are fixed shares, and no tie is cut, so that the same proportions in more records do
    not lower it: half of the error is spent on guesses about 70 % and 30 % of the records, and half on `ratio_bound`.
    """
    names = most_often_right(scores, practice, at=DESIGNS.index(_BOTH_ENDS))
    error, found = LOOK_ERROR / len(names), 0.0
    for name in names:
        guessed = [_guesses_at_ends(scores[name], members, share) for share in _ENDS]
        bounds = [epsilon_lower_bound(one, confidence=1 - error / 2 / len(_ENDS)) for one in guessed]
        ratio = ratio_bound(roc(scores[name], members), error=error / 2)
        found = max(found, *bounds, math.log(max(1.0, ratio)))
    return found


def _guesses_at_ends(scores: FloatArray, members: BoolArray, share: float) -> Guesses:
    """Guesses about both ends, of tied scores about all or none; the prior is that of the likelier side for all."""
    count = len(scores)
    ranked, cut = np.sort(scores), int(share * count)
    top, bottom = scores > ranked[count - 1 - cut], scores < ranked[cut]
    right = int(members[top].sum() + (~members)[bottom].sum())
    inside = float(members.mean())
    return Guesses(right, int(top.sum() + bottom.sum()), possible=count, prior=max(inside, 1 - inside))


def _made(
    name: str, scores: FloatArray, members: BoolArray, design: Design, *, tried: int = 1
) -> tuple[Guessed, Guesses]:
    guesses = count_right(scores, members, design)
    called = guesses.made // 2 if design.both else guesses.made * (design.members > 0)
    return Guessed(name, called, guesses.made - called, guesses.correct, tried), guesses


USUAL_DELTA = 1e-5
_NEEDS = {
    "record": "if members were drawn at random, each record by itself",
    "canary": "since coins of the audit decided which canaries were inside",
    "node": (
        "if training nodes were drawn at random, each by itself, and neighbouring data sets differ in one node with "
        "all its edges"
    ),
    "edge": (
        "if a coin decided for each audited edge whether it was trained with, and neighbouring graphs differ in one "
        "edge"
    ),
}


@dataclass(frozen=True, kw_only=True)
class PrivacyClaim:
    """A guarantee that is claimed for the target: (ε, δ)-differential privacy."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, Real):
                raise InputError(f"claim: {name}: {shortened(value)} is not a number.")
        if not 0 <= self.epsilon < math.inf or not 0 <= self.delta < 1:
            raise InputError(
                f"claim: epsilon {self.epsilon}, delta {self.delta}; use a finite epsilon ≥ 0 and 0 ≤ delta < 1."
            )


def as_claim(given: PrivacyClaim | Mapping[str, float] | None) -> PrivacyClaim | None:
    """A claim, or a mapping with ``epsilon`` and perhaps ``delta``, as audit files have it; all else is refused."""
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
    """A lower bound on μ of Gaussian privacy, and the ε that follows from it at the verdict's δ."""

    mu: float = 0.0  # bound on μ
    epsilon: float = 0.0  # at the δ of the verdict
    guessed: Guessed | None = None  # the guesses behind it; None if none were made


@dataclass(frozen=True, kw_only=True)
class PrivacyVerdict:
    """What the attacks show about ε. Each bound holds with the stated confidence by itself.

    A bound that assumes more and does not show more is left out, here for table, page, file and appendix alike: it is
    then an empty `GaussianBound`.
    """

    claim: PrivacyClaim | None = None  # what was claimed; None if there was no claim
    pure: float = 0.0  # lower bound on ε at δ = 0. It assumes nothing about the training
    epsilon: float = 0.0  # lower bound on ε at ``delta``. It assumes nothing about the training
    delta: float = USUAL_DELTA  # of the claim; the usual 1e-5 where none is claimed
    confidence: float = 0.95  # of each bound
    contradicted: bool = False  # whether the claimed ε is below the bound at the claimed δ
    gaussian: GaussianBound = GaussianBound()  # under Gaussian privacy, whatever the records have to do with each other
    independent: GaussianBound = GaussianBound()  # also if guesses about different records are independent
    guessed: Guessed | None = None  # the guesses behind ``pure``, ``epsilon`` and ``gaussian``; None if none were made
    rated: float | None = None  # lower bound on ε at δ = 0 by fixed counts (`rated_epsilon`); None: runs of before
    unit: str = "record"  # whose membership it is about: also a node, or a unit such as a person
    withheld: str = ""  # why no ε is given; empty if one is

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

    @property
    def needs(self) -> str:
        """What the bound assumes about the draw of the members, as a part of a sentence."""
        return _NEEDS.get(self.unit, f"if {self.unit}s were drawn at random, each with all its records by itself")

    def sentence(self) -> str:
        """The verdict in words, with its assumption: what is shown without assuming anything about the training.

        Example:
            >>> PrivacyVerdict(pure=1.72, epsilon=1.71).sentence().split(" with ")[0]
            'No guarantee was claimed; the attacks show ε ≥ 1.71 at δ = 1e-05 (≥ 1.72 at δ = 0)'
        """
        if self.withheld:
            return f"ε is withheld: {self.withheld.rstrip('.')}."
        found = f"the attacks show {self.bound()} with {100 * self.confidence:g} % confidence, {self.needs}"
        if self.claim is None:
            return f"No guarantee was claimed; {found}."
        stated = f"The claimed (ε = {self.claim.epsilon:g}, δ = {self.claim.delta:g}) is"
        if self.contradicted:
            return f"{stated} contradicted: {found}."
        return f"{stated} not contradicted: {found}. This does not prove the claim."

    def rated_sentence(self) -> str:
        """Why a rating counts a smaller ε than is shown; empty where it does not."""
        if self.withheld or self.rated is None or self.rated >= self.pure:
            return ""
        return (
            f"The rating counts ε ≥ {self.rated:.2f} at δ = 0 instead: it looks at five figures, which share one error "
            f"of 5 %, while ε ≥ {self.pure:.2f} is right with {100 * self.confidence:g} % confidence by itself."
        )

    def gaussian_sentence(self) -> str:
        """What follows under Gaussian privacy, with each assumption named; empty where nothing follows."""
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
        """The bound alone, as a part of a sentence."""
        level = "" if self.unit == "record" else f"{self.unit}-level "
        if self.pure <= 0:
            return f"no {level}ε above 0 (at δ = 0 and at δ = {self.delta:g})"
        return f"{level}ε ≥ {self.epsilon:.2f} at δ = {self.delta:g} (≥ {self.pure:.2f} at δ = 0)"


def judge_claim(
    claim: PrivacyClaim | None,
    scores: Mapping[str, FloatArray],
    *,
    members: BoolArray,
    practice: Mapping[str, tuple[float, ...]] | None = None,
    confidence: float = 0.95,
    unit: str = "record",
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
    about = PrivacyVerdict(claim=claim, delta=delta, confidence=confidence, rated=0.0, unit=unit, withheld=withheld)
    if withheld or not leak or not scores:
        return about
    practice = practice or {}
    looks = chosen_guesses(scores, members, practice=practice, delta=delta, confidence=confidence)
    each = 1 - (1 - confidence) / len(looks)  # of each set, so that all hold at once
    epsilons = [epsilon_lower_bound(guesses, delta=delta, confidence=each) for _, guesses in looks]
    gaussian = max(mu_lower_bound(guesses, confidence=each) for _, guesses in looks)
    best = looks[int(np.argmax(epsilons))][0]
    names = most_often_right(scores, practice, at=-1)
    every = [_made(name, scores[name], members, EVERY_RECORD, tried=len(names)) for name in names]
    values = [mu_if_independent(guesses, confidence=1 - (1 - confidence) / len(names)) for _, guesses in every]
    mu = max(values)
    found = replace(
        about,
        pure=max(epsilon_lower_bound(guesses, confidence=each) for _, guesses in looks),
        epsilon=max(epsilons),
        gaussian=GaussianBound(gaussian, gaussian_epsilon(gaussian, delta), best),
        independent=GaussianBound(mu, gaussian_epsilon(mu, delta), every[int(np.argmax(values))][0]),
        guessed=best,
        rated=rated_epsilon(scores, members, practice=practice),
    )
    return replace(found, contradicted=claim is not None and found.shown > claim.epsilon)
