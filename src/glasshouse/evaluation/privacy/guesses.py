"""Guesses about membership by rank: the top of the records, the bottom, or both; neither a threshold nor the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError
from glasshouse.evaluation.sorted_scores import SortedScores
from glasshouse.randomness import generator

__all__ = ["DESIGNS", "EVERY_RECORD", "Design", "Guesses", "count_right", "shares_right", "sized"]

_FRACTIONS = (0.0002, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35)


class Design(NamedTuple):
    """Which shares of the ranked records are guessed: the top as members, the bottom as others; the rest is left open.

    Example:
        >>> Design(0.05, 0.05).both
        True
    """

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
    """How many guesses were made, and how many of them were right.

    Args:
        correct: right guesses.
        made: all guesses; the other records were left open.
        possible: of how many records a guess of this kind could be right: all of them for guesses on both sides, the
            members for guesses "member" alone, the others for guesses "not a member" alone.
        prior: the chance of being right without a look at the model.

    Example:
        >>> Guesses(correct=95, made=100, possible=1000).prior
        0.5
    """

    correct: int
    made: int
    possible: int
    prior: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.made or self.correct > self.possible:
            raise InputError(
                f"guesses: {self.correct} right of {self.made}, where {self.possible} could be, is impossible."
            )


def count_right(scores: FloatArray, members: BoolArray, design: Design) -> Guesses:
    """Guess by the ranks of the scores [N], and count the right guesses against the members [N].

    Tied scores are ordered by a fixed random permutation, which knows nothing of the members. Guesses on both sides
    need as many members as others; where the shares differ by more than three standard deviations of fair coins,
    records of the larger group are first left out at random. For who is left, membership is a fair coin again: those
    who were left out belong to the data set that is known anyway.

    Example:
        >>> scores = np.arange(200.0)
        >>> count_right(scores, scores >= 80, Design(0.05, 0.05))
        Guesses(correct=20, made=20, possible=200, prior=0.5)
        >>> count_right(scores, scores >= 80, Design(0.05, 0.0))
        Guesses(correct=10, made=10, possible=120, prior=0.6)
    """
    return _counted(_ranked(scores, members, [design]), [design])[design]


def shares_right(scores: FloatArray, members: BoolArray, *, ordered: SortedScores | None = None) -> tuple[float, ...]:
    """How many guesses of each of `DESIGNS`, and at last of `EVERY_RECORD`, are right, as shares at even odds.

    At even odds means: as if half of the records were members, so that they can be used where another share is.

    Args:
        scores: [N], higher means member.
        members: [N] the true members.
        ordered: the same scores sorted, if they are known already.

    Example:
        >>> scores = np.arange(200.0)
        >>> set(shares_right(scores, scores >= 100))
        {1.0}
    """
    designs = [*DESIGNS, EVERY_RECORD]
    counted = _counted(_ranked(scores, members, designs, ordered=ordered), designs).values()
    shares = np.array([guesses.correct / guesses.made if guesses.made else 0.5 for guesses in counted])
    with np.errstate(divide="ignore"):  # all right, or none: the odds are infinite, and the share stays what it is
        return tuple(expit(logit(shares) - logit([guesses.prior for guesses in counted])).tolist())


def sized(members: BoolArray) -> Mapping[Design, Guesses]:
    """The guesses of each of `DESIGNS` before any score is looked at: how many are made, and with which prior.

    Example:
        >>> sized(np.arange(200) < 120)[Design(0.05, 0.0)].made
        10
    """
    designs = list(DESIGNS)
    return _counted(_ranked(np.zeros(len(members)), members, designs), designs)


class _Ranked(NamedTuple):
    """Members among the first so many records, the highest score first: of all records, and of those after balancing.

    The numbers of records are those that some designs ask for; the largest of them is that of all records.
    """

    everyone: Mapping[int, int]
    balanced: Mapping[int, int]


def _ranked(
    scores: FloatArray, members: BoolArray, designs: list[Design], *, ordered: SortedScores | None = None
) -> _Ranked:
    random = generator(len(scores), "order of tied scores")
    places = _places(designs, len(members))
    everyone = _searched(ordered or SortedScores.of(scores, members), places)
    if _surplus(members) == 0 and everyone is not None:  # drawing takes as long as sorting, and is rarely needed
        return _Ranked(everyone, everyone)
    shuffled = random.permutation(len(scores))
    kept = _balanced(members, random) if _surplus(members) else np.ones(len(members), dtype=np.bool_)
    fewer = _places(designs, int(kept.sum()))
    balanced = _searched(SortedScores.of(scores[kept], members[kept]), fewer) if everyone is not None else None
    if everyone is not None and balanced is not None:
        return _Ranked(everyone, balanced)
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    return _Ranked(_running(members[order], places), _running(members[order[kept[order]]], fewer))


def _places(designs: list[Design], count: int) -> list[int]:
    """How many records from the top designs look at."""
    tops = {_size(design.members, count) for design in designs}
    bottoms = {_size(design.others, count) for design in designs}
    return sorted({count, *tops, *(count - size for size in bottoms)})


def _searched(ordered: SortedScores, places: list[int]) -> dict[int, int] | None:
    """Members among the first records at each place; None if one of them depends on the order of tied scores."""
    found: dict[int, int] = {}
    for place in places:
        inside = ordered.members_in_top(place)
        if inside is None:
            return None
        found[place] = inside
    return found


def _balanced(members: BoolArray, random: np.random.Generator) -> BoolArray:
    """[N] who stays so that membership is a fair coin."""
    kept = np.ones(len(members), dtype=np.bool_)
    surplus = _surplus(members)
    larger = np.flatnonzero(members if surplus > 0 else ~members)
    kept[random.permutation(larger)[: abs(surplus)]] = False
    return kept


def _surplus(members: BoolArray) -> int:
    """How many more members than others there are; 0 where fair coins may well differ by as much."""
    surplus = 2 * int(members.sum()) - len(members)
    return surplus if abs(surplus) > 3 * math.sqrt(len(members)) else 0


def _running(ranked: BoolArray, places: list[int]) -> dict[int, int]:
    running = np.concatenate([[0], np.cumsum(ranked)])
    return {place: int(running[place]) for place in places}


def _counted(ranked: _Ranked, designs: list[Design]) -> Mapping[Design, Guesses]:
    found = {}
    for design in designs:
        running = ranked.balanced if design.both else ranked.everyone
        count = max(running)
        inside = running[count]
        top, bottom = (_size(share, count) for share in design)
        right_top = running[top]
        right_bottom = bottom - (inside - running[count - bottom])
        if design.both:
            found[design] = Guesses(right_top + right_bottom, top + bottom, count)
        elif top:
            found[design] = Guesses(right_top, top, inside, inside / count)
        else:
            found[design] = Guesses(right_bottom, bottom, count - inside, 1 - inside / count)
    return found


def _size(share: float, count: int) -> int:
    """At least one record where there are enough for guesses on both sides, and never more than asked for otherwise."""
    return 0 if share == 0 else min(max(1, int(share * count)), count // 2)
