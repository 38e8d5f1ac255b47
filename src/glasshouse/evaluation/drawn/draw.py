"""Whether members look drawn at random, and what a reader must know if they do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.evaluation.drawn.blind import Blind, blind_baseline
from glasshouse.evaluation.drawn.joined import Joined, joined_members
from glasshouse.evaluation.drawn.known import Known, columns_of
from glasshouse.evidence import Evidence
from glasshouse.randomness import generator

__all__ = ["Drawn", "how_drawn"]

_LEVEL = 0.01  # of false alarms, all tests together
_MOST = 10_000  # records of the blind baseline
_FEWEST = 10  # members, and others


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """How well members can be told from others without the target.

    Args:
        blind: from features, labels and the shadow models' answers.
        joined: from the edges between them; None for records, or without edges.

    Example:
        >>> from glasshouse.evaluation.intervals import Interval
        >>> told = Blind(auc=0.71, interval=Interval(0.68, 0.74), p_value=0.005, records=1000)
        >>> Drawn(blind=told).found, Drawn(blind=told).withheld
        (True, 'members differ from others in kind')
    """

    blind: Blind
    joined: Joined | None = None

    @property
    def found(self) -> bool:
        """Whether members were not drawn at random; at most 1 % of random draws are called so."""
        return self._told or self._clustered

    @property
    def withheld(self) -> str:
        """Why no ε can be given; empty if nothing was found."""
        if not self.found:
            return ""
        return "members differ from others in kind" if self._told else "members were not drawn at random from the graph"

    def warning(self) -> str:
        """What comes first in a report; empty if nothing was found."""
        if not self.found:
            return ""
        found = []
        if self._told:
            low, high = self.blind.interval
            found.append(
                f"Members can be told from others without the model: features, labels and shadow models alone give AUC "
                f"{self.blind.auc:.2f} ({low:.2f} to {high:.2f}; p = {self.blind.p_value:.2g} if they were drawn at "
                f"random)."
            )
        if self._clustered and self.joined is not None:
            found.append(f"Members were not drawn at random from the graph: {self.joined.sentence()}.")
        return " ".join(
            [
                *found,
                "So the figures below say little about the model, and ε is withheld. Draw the members at random, or "
                "audit records of the same kind.",
            ]
        )

    def sentence(self) -> str:
        """What was measured, in one line; shown whether or not something was found."""
        low, high = self.blind.interval
        line = (
            f"Without the model, members are told from others with AUC {self.blind.auc:.2f} ({low:.2f} to {high:.2f}; "
            f"p = {self.blind.p_value:.2g} if they were drawn at random)."
        )
        if self.joined is not None:
            line += f" {self.joined.sentence()}; p = {self.joined.p_value:.2g}."
        return line

    @property
    def _level(self) -> float:
        return _LEVEL if self.joined is None else _LEVEL / 2

    @property
    def _told(self) -> bool:
        return self.blind.p_value <= self._level + 1e-9

    @property
    def _clustered(self) -> bool:
        return self.joined is not None and self.joined.p_value <= self._level + 1e-9


def how_drawn(known: Known, evidence: Evidence, members: BoolArray, *, seed: int) -> Drawn | None:
    """Test whether members were drawn at random; None if there are too few members or others to say.

    Args:
        known: about the records, without the target.
        evidence: of it the shadow models' answers are used, never the target's.
        members: [N] members of the target.
        seed: of every random choice.

    Example:
        >>> random = np.random.default_rng(0)
        >>> losses = {"target_loss": np.ones(200), "shadow_loss": np.ones((2, 200))}
        >>> evidence = Evidence(**losses, shadow_members=np.zeros((2, 200)))
        >>> bright = random.normal(size=(200, 4))
        >>> how_drawn(Known(x=bright), evidence, bright[:, 0] > 0, seed=0).found
        True
        >>> how_drawn(Known(x=bright), evidence, np.arange(200) < 100, seed=0).found
        False
    """
    if min(int(members.sum()), int((~members).sum())) < _FEWEST:
        return None
    random = generator(seed, "how drawn")
    rows = _some(members, known.readable(_MOST), random)
    features, answers = columns_of(known, evidence, rows, random)
    blind = blind_baseline(features, answers, members[rows], seed=seed)
    pairs = known.pairs_of_audited()
    return Drawn(blind=blind, joined=joined_members(pairs, members, seed=seed) if pairs.shape[1] else None)


def _some(members: BoolArray, most: int, random: np.random.Generator) -> IntArray:
    """Records to use, in their order: all, or a random choice with as many members as others where possible.

    Under a random draw, labels of a choice that depends only on the labels' counts are still in random order.
    """
    sides = [random.permutation(np.flatnonzero(members == kind)) for kind in (True, False)]
    few = min(sides, key=len)
    kept = min(len(few), most // 2)
    rest = most - kept
    return np.sort(np.concatenate([side[:kept] if side is few else side[:rest] for side in sides]))
