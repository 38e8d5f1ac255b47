"""A declared draw beside what was found: its evidence, the coins that ε may rest on, and what needs no draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.data.design import Draw
from glasshouse.evaluation.checks.random_members import Known, check_random_members
from glasshouse.evaluation.privacy.bounds import gaussian_epsilon, mu_from_area
from glasshouse.evaluation.privacy.claim import most_often_right
from glasshouse.evaluation.run import AttackOutcome
from glasshouse.evidence import Evidence

_TOLD = 0.01  # a p-value that is called evidence against the draw
_SURELY = 1e-4  # the error of a bound that is true in hundreds of audits at once


@dataclass(frozen=True, kw_only=True)
class DeclaredDraw:
    """What a declared draw means for an audit, and what speaks against it."""

    sentence: str  # the draw in words
    random: bool  # whether it is a draw at all
    cluster: str = ""  # what was drawn as a whole, if not single units
    p_value: float | None = None  # of telling members so well without the model, under the draw; None: not tested
    count_chance: float | None = None  # of so many members by the stated shares; None if none are stated
    left_out: int = 0  # units that are not judged, so that all strata have the same share of members
    coins: str = ""  # what the audit drew itself; empty if it did not
    mu: float = 0.0  # a bound on μ of Gaussian privacy by these coins, if what was drawn is independent
    epsilon: float = 0.0  # the ε of that μ at ``delta``
    delta: float = 0.0
    sure: float = 0.0  # the same ε with a confidence of 99.99 %, which many audits of one mechanism keep together
    without: str = ""  # what can be said without a draw; empty where there is one

    @property
    def contradicted(self) -> bool:
        """Whether what was found is rare under the draw; at most 2 % of true draws are called so."""
        return any(p is not None and p <= _TOLD for p in (self.p_value, self.count_chance))

    def evidence(self) -> str:
        """What was found beside the draw, with its chance under it: evidence, and not a fact about the draw."""
        told = [f"Declared: {self.sentence}."]
        if not self.random:
            return (
                f"{told[0]} So no test of a leak and no ε follow from how members were chosen. {self.without}".strip()
            )
        if self.p_value is not None:
            told.append(
                f"Under the declared draw, members would be told from non-members this well without the model in "
                f"{_cases(self.p_value)}."
            )
        if self.count_chance is not None:
            told.append(
                f"As many members as here, or an even rarer number, would be drawn in {_cases(self.count_chance)}."
            )
        if self.epsilon > 0:
            told.append(
                f"So ε assumes nothing about the draw; and if no {self.coins} influences another, Gaussian privacy has "
                f"ε ≥ {self.epsilon:.2f} at δ = {self.delta:g} (μ ≥ {self.mu:.2f}, by the order of all scores), and "
                f"ε ≥ {self.sure:.2f} with a confidence of 99.99 %."
            )
        if self.contradicted:
            told.append("This speaks against the declared draw, on which the figures rely.")
        if self.left_out:
            told.append(f"{self.left_out} were left out at random, so that all strata have the same share of members.")
        return " ".join(told)


def _cases(p_value: float) -> str:
    if p_value > 0.1:
        return f"{100 * p_value:.0f} of 100 cases"
    return f"1 of {round(1 / max(p_value, 1e-9)):,} cases".replace(",", "\u00a0")


def declared_draw(
    known: Known, evidence: Evidence, members: BoolArray, draw: Draw, *, left_out: int, seed: int
) -> DeclaredDraw:
    """Look at a declared draw without the model: how rare is what members have in common, among its arrangements?"""
    tested = draw.random and not draw.coins  # what we drew ourselves needs no test
    found = check_random_members(known, evidence, members, seed=seed, draw=draw) if tested else None
    return DeclaredDraw(
        sentence=draw.sentence,
        random=draw.random,
        cluster=draw.cluster,
        p_value=None if found is None else found.p_value,
        count_chance=draw.counted if tested else None,
        left_out=left_out,
        coins=draw.coins,
    )


@dataclass(frozen=True, kw_only=True)
class Coins:
    """Whose membership was decided by independent coins: what a bound on ε may guess about."""

    scores: Mapping[str, FloatArray]
    members: BoolArray
    practice: Mapping[str, tuple[float, ...]]
    unit: str
    withheld: str = ""

    @classmethod
    def of(
        cls,
        draw: Draw | None,
        scores: Mapping[str, FloatArray],
        members: BoolArray,
        *,
        practice: Mapping[str, tuple[float, ...]],
        unit: str,
    ) -> Coins:
        """Units, or what was drawn as a whole: a site is guessed by the mean score of its units."""
        withheld = ""
        if draw is not None and not draw.random:
            withheld = f"it needs a random draw, and none was declared ({draw.sentence})"
        elif draw is not None and draw.again is not None:
            withheld = "members were drawn along edges, so that guesses depend on each other"
        elif draw is not None and not draw.cluster and draw.small_strata:
            withheld = "members were drawn within strata of fewer than 20, so that guesses depend on each other"
        if draw is None or not draw.cluster:
            unit = "canary" if draw is not None and draw.coins == "canary" else unit
            return cls(scores=scores, members=members, practice=practice, unit=unit, withheld=withheld)
        sizes = np.bincount(draw.clusters)
        means = {name: np.bincount(draw.clusters, values) / sizes for name, values in scores.items()}
        inside = np.bincount(draw.clusters, members) > 0
        return cls(scores=means, members=inside, practice={}, unit=draw.cluster)


def with_own_coins(declared: DeclaredDraw, coins: Coins, *, delta: float, confidence: float = 0.95) -> DeclaredDraw:
    """The bound by the order of all scores, of the attack that did best on simulated targets; of all, without these."""
    if not declared.coins or coins.withheld:
        return declared
    names = most_often_right(coins.scores, coins.practice, at=-1)

    def shown(error: float) -> float:
        each = 1 - error / len(names)
        return max(mu_from_area(coins.scores[name], coins.members, confidence=each) for name in names)

    mu, sure = shown(1 - confidence), gaussian_epsilon(shown(_SURELY), delta)
    return dataclasses.replace(declared, mu=mu, epsilon=gaussian_epsilon(mu, delta), sure=sure, delta=delta)


def without_draw(
    outcomes: Mapping[str, AttackOutcome], members: BoolArray, attack: str, *, unit: str, fprs: Sequence[float]
) -> str:
    """What can be said without a draw of the target's members: simulated targets have members that we drew."""
    outcome = outcomes.get(attack) or next(iter(outcomes.values()))
    found, first = outcome.simulated, outcome.first_threshold
    if found is None:
        return "Without shadow models nothing can be said without a draw."
    rate = f", {100 * found.strengths[0]:.1f} % of them at {100 * fprs[0]:g} % false positives" if fprs else ""
    told = (
        f"Without a draw: models trained in the same way on random halves of these {unit}s tell members from "
        f"non-members with AUC {found.auc:.3f}{rate} ({outcome.attack.name}, {found.targets} simulated targets). This "
        f"is about the way of training, not about this model."
    )
    if first is None:
        return told
    flagged = outcome.flagged(first)
    return (
        f"{told} At the same threshold {int((flagged & members).sum())} of this model's {int(members.sum())} members "
        f"are flagged, and {int((flagged & ~members).sum())} of {int((~members).sum())} non-members; that "
        f"may be the model's doing, or that of the choice of members."
    )
