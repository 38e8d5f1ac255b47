"""Which attack guesses, and about how many records: chosen where the target's members are not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.privacy.guesses import DESIGNS, EVERY_RECORD, Design, Guesses, count_right, sized
from glasshouse.evaluation.privacy.one_run import expected_bound

__all__ = ["Guessed", "chosen_for_every_record", "chosen_guesses"]

_NOTHING_EXPECTED = Design(0.1, 0.1)
_WITHOUT_PRACTICE = (Design(0.02, 0.02), Design(0.1, 0.1), Design(0.05, 0.0))


@dataclass(frozen=True)
class Guessed:
    """What was guessed.

    Args:
        attack: whose scores ranked the records.
        members: how many records were called members.
        others: how many were called non-members.
        correct: how many of both were right.
        tried: how many sets of guesses share the allowed error; 1 if the choice was made on simulated targets.
    """

    attack: str
    members: int
    others: int
    correct: int
    tried: int = 1

    def sentence(self, unit: str = "record") -> str:
        """What was guessed, how many guesses were right, and where that was chosen.

        Example:
            >>> Guessed("base", members=50, others=0, correct=47).sentence().split(". ")[0]
            'base called the 50 records ranked highest members; 47 of these 50 guesses were right'
        """
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
    """The guesses to judge: one set, chosen on simulated targets; several, where none were simulated.

    Args:
        scores: [N] of each attack.
        members: [N] of the target; they count right guesses and choose nothing.
        practice: `shares_right`, mean over simulated targets, of the attacks that have some.
        delta: δ of the bound that should become large.
        confidence: of that bound.

    Example:
        >>> values = np.arange(200.0)
        >>> shares = tuple(0.5 + 0.4 * (place == 5) for place in range(len(DESIGNS) + 1))
        >>> options = {"practice": {"base": shares}, "delta": 0.0, "confidence": 0.95}
        >>> chosen_guesses({"base": values}, values >= 100, **options)[0][0]
        Guessed(attack='base', members=10, others=10, correct=20, tried=1)
    """
    known = [name for name in scores if name in practice]
    if known:
        bounds = _expected([practice[name] for name in known], members, delta=delta, confidence=confidence)
        if bounds.max() <= 0:  # the target may leak though simulated targets do not, so it is guessed all the same
            name = max(known, key=lambda one: practice[one][-1])
            return [_made(name, scores[name], members, _NOTHING_EXPECTED)]
        name, design = known[int(bounds.argmax()) // len(DESIGNS)], DESIGNS[int(bounds.argmax()) % len(DESIGNS)]
        return [_made(name, scores[name], members, design)]
    tried = len(scores) * len(_WITHOUT_PRACTICE)
    return [
        _made(name, some, members, design, tried=tried) for name, some in scores.items() for design in _WITHOUT_PRACTICE
    ]


def chosen_for_every_record(
    scores: Mapping[str, FloatArray], members: BoolArray, *, practice: Mapping[str, tuple[float, ...]]
) -> list[tuple[Guessed, Guesses]]:
    """Guesses about every record, by the attack that is most often right about simulated targets; else by each.

    Example:
        >>> values = np.arange(200.0)
        >>> chosen_for_every_record({"base": values}, values >= 100, practice={})[0][0]
        Guessed(attack='base', members=100, others=100, correct=200, tried=1)
    """
    known = [name for name in scores if name in practice]
    if known:
        name = max(known, key=lambda one: practice[one][-1])
        return [_made(name, scores[name], members, EVERY_RECORD)]
    return [_made(name, some, members, EVERY_RECORD, tried=len(scores)) for name, some in scores.items()]


def _expected(shares: list[tuple[float, ...]], members: BoolArray, *, delta: float, confidence: float) -> FloatArray:
    """[A · D] bounds to expect from each attack and design. Numbers of guesses do not depend on who is a member."""
    planned = list(sized(members).values()) * len(shares)
    even = np.array([row[: len(DESIGNS)] for row in shares]).ravel()
    with np.errstate(divide="ignore"):
        here = expit(logit(even) + logit([one.prior for one in planned]))  # from even odds to this share of members
    return expected_bound(here, planned, delta=delta, confidence=confidence)


def _made(
    name: str, scores: FloatArray, members: BoolArray, design: Design, *, tried: int = 1
) -> tuple[Guessed, Guesses]:
    guesses = count_right(scores, members, design)
    called = guesses.made // 2 if design.both else guesses.made * (design.members > 0)
    return Guessed(name, called, guesses.made - called, guesses.correct, tried), guesses
