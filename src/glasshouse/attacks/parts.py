"""Attacks that look at the parts of a record, such as the tokens of a text: the sum of what each part tells.

A model that predicts each part from those before it gives a record the sum of their losses, and the posterior of the
sum follows from the sum alone. But its reference is one number for the whole record. Part by part, every part has
references of its own, and the log ratios add up; so a part that every model finds hard does not hide one that only the
target knows.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glasshouse.attacks.attack import Attack, register
from glasshouse.attacks.base import BASE
from glasshouse.attacks.lira import LiRA
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evidence import Evidence, Mode


@dataclass(frozen=True, kw_only=True)
class _Parts(Attack):
    """What both share: each part as a record of its own, whose log ratios are summed."""

    needs_parts: ClassVar[bool] = True
    likelihood_ratio: ClassVar[bool] = True
    quick_simulation: ClassVar[bool] = True
    mode: Mode = "online"

    @property
    @abc.abstractmethod
    def single(self) -> Attack:
        """The attack on a part as a record of its own; its scores are log ratios."""

    def score(self, evidence: Evidence) -> FloatArray:
        """Sums of log ratios, [N]; higher means member."""
        return self._sums(evidence, self.single.score(evidence.of_parts()))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: those of its parts, summed."""
        of_parts = (one for one, _ in self.single.simulated_scores(evidence.of_parts()))
        return ((self._sums(evidence, one), who) for one, who in zip(of_parts, evidence.shadow_members, strict=True))

    @staticmethod
    def _sums(evidence: Evidence, ratios: FloatArray) -> FloatArray:
        assert evidence.parts is not None  # noqa: S101 (for the type checker: `of_parts` refuses)
        return np.add.reduceat(ratios, evidence.parts.offsets[:-1])


class _LogOdds(BASE):
    """BASE whose scores are the logits of its posteriors, which can be summed."""

    def _scored(self, ratios: FloatArray, members: BoolArray | None = None) -> FloatArray:
        return ratios


@register("base-parts")
@dataclass(frozen=True, kw_only=True)
class PartsBASE(_Parts):
    """BASE part by part, with the log-odds of all parts of a record summed.

    Args:
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> import numpy as np
        >>> from glasshouse.evidence import PartLosses
        >>> parts = PartLosses(target=np.array([0.1, 0.2, 2.0], np.float32), offsets=np.array([0, 2, 3]),
        ...                    shadow=np.array([[0.5, 0.9, 1.0], [0.7, 0.8, 1.2]], np.float32))
        >>> evidence = Evidence(target_loss=[0.3, 2.0], shadow_loss=[[1.4, 1.0], [1.5, 1.2]],
        ...                     shadow_members=[[1, 0], [0, 1]], parts=parts)
        >>> PartsBASE().score(evidence).round(2)
        array([ 1.14, -0.9 ])
    """

    @property
    def single(self) -> Attack:
        """BASE, with log-odds as scores."""
        return _LogOdds(mode=self.mode)


@register("lira-parts")
@dataclass(frozen=True, kw_only=True)
class PartsLiRA(_Parts):
    """LiRA part by part, with the log ratios of all parts of a record summed.

    Args:
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> PartsLiRA().mode
        'online'
    """

    @property
    def single(self) -> Attack:
        """LiRA."""
        return LiRA(mode=self.mode)
