"""Whether a target on a graph answers like the simulated ones, query by query, and its answers on their scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks.stacking import Likeness
from glasshouse.graph.attacks.stacking.answers import Heard, Sampled
from glasshouse.numerics import loss_to_margin, margin_to_loss

__all__ = ["HeardLikeness", "SampledLikeness"]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeardLikeness:
    """How simulated targets answer when asked about nodes alone and about the whole graph.

    Example:
        >>> losses = np.random.default_rng(0).exponential(size=(4, 500))
        >>> like = HeardLikeness.of(Heard(losses, losses))
        >>> bool(like.distance(Heard(losses[:1], losses[:1])) < 5)
        True
    """

    alone: Likeness
    whole: Likeness

    @classmethod
    def of(cls, heard: Heard) -> HeardLikeness:
        """Of the answers [T, n] of T simulated targets."""
        return cls(alone=Likeness.of(loss_to_margin(heard.alone)), whole=Likeness.of(loss_to_margin(heard.whole)))

    def distance(self, heard: Heard) -> float:
        """How far a target's answers, [1, n] each, are from theirs: root mean square of both queries' distances."""
        alone = self.alone.distance(loss_to_margin(heard.alone[0]))
        whole = self.whole.distance(loss_to_margin(heard.whole[0]))
        return float(np.hypot(alone, whole) / np.sqrt(2))

    def matched(self, heard: Heard) -> Heard:
        """A target's answers, [1, n] each, on their scale."""
        return Heard(_matched(self.alone, heard.alone), _matched(self.whole, heard.whole))


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledLikeness:
    """How simulated targets answer under sampled training sets: the own loss, and the gain of the neighbours."""

    own: Likeness
    gain: Likeness

    @classmethod
    def of(cls, targets: Sequence[Sampled]) -> SampledLikeness:
        """Of the answers, [1, M, n] each, of simulated targets."""
        own = np.stack([loss_to_margin(one.own).ravel() for one in targets])
        return cls(own=Likeness.of(own), gain=Likeness.of(np.stack([_gains(one).ravel() for one in targets])))

    def matched(self, target: Sampled) -> Sampled:
        """A target's answers, [1, M, n] each, on their scale, sample by sample."""
        own = _matched(self.own, target.own[0])
        gain = np.stack([self.gain.matched(row) for row in _gains(target)[0]])
        return Sampled(own[None], (own - gain)[None])


def _gains(sampled: Sampled) -> FloatArray:
    return np.asarray(sampled.own - sampled.signal)


def _matched(like: Likeness, losses: FloatArray) -> FloatArray:
    return np.stack([margin_to_loss(like.matched(loss_to_margin(row))) for row in losses])
