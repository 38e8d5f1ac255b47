"""Whether a target on a graph answers like the simulated ones, query by query, and its answers on their scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.attacks.stacking.likeness import Likeness
from glasshouse.graph.attacks.stacking.answers import PlainAnswers, SampledAnswers
from glasshouse.numerics import loss_to_margin, margin_to_loss

__all__ = ["PlainLikeness", "SampledLikeness"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainLikeness:
    """How simulated targets answer about nodes alone and in the whole graph.

    Example:
        >>> losses = np.random.default_rng(0).exponential(size=(4, 500))
        >>> like = PlainLikeness.of(PlainAnswers(losses, losses))
        >>> bool(like.unlikeness(PlainAnswers(losses[:1], losses[:1])) < 5)
        True
    """

    alone: Likeness
    whole: Likeness

    @classmethod
    def of(cls, plain: PlainAnswers, weights: FloatArray | None = None) -> PlainLikeness:
        """From the losses of T simulated targets, [T, n] each, with weights [T, n]; all equal by default."""
        alone, whole = (Likeness.of(loss_to_margin(losses), weights) for losses in plain)
        return cls(alone=alone, whole=whole)

    def unlikeness(self, plain: PlainAnswers) -> float:
        """How far a target's losses, [1, n] each, are from theirs: root mean square over both queries."""
        alone = self.alone.unlikeness(loss_to_margin(plain.alone[0]))
        whole = self.whole.unlikeness(loss_to_margin(plain.whole[0]))
        return float(np.hypot(alone, whole) / np.sqrt(2))

    def matched(self, plain: PlainAnswers) -> PlainAnswers:
        """A target's losses, [1, n] each, on their scale."""
        return PlainAnswers(_matched(self.alone, plain.alone), _matched(self.whole, plain.whole))


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledLikeness:
    """How simulated targets answer under sampled training sets: the own loss, and the gain of the neighbours."""

    own: Likeness
    gain: Likeness

    @classmethod
    def of(cls, targets: Sequence[SampledAnswers], weights: FloatArray | None = None) -> SampledLikeness:
        """From the answers of T simulated targets, [1, M, n] each, with weights [T, n]; all equal by default."""
        own = np.stack([loss_to_margin(one.own).ravel() for one in targets])
        gain = np.stack([_gains(one).ravel() for one in targets])
        each = None if weights is None else np.tile(weights, targets[0].own.shape[1])  # [T, M * n]
        return cls(own=Likeness.of(own, each), gain=Likeness.of(gain, each))

    def matched(self, target: SampledAnswers) -> SampledAnswers:
        """A target's answers, [1, M, n] each, on their scale, sample by sample."""
        own = _matched(self.own, target.own[0])
        gain = np.stack([self.gain.matched(row) for row in _gains(target)[0]])
        return SampledAnswers(own[None], (own - gain)[None])


def _gains(answers: SampledAnswers) -> FloatArray:
    return np.asarray(answers.own - answers.signal)


def _matched(like: Likeness, losses: FloatArray) -> FloatArray:
    return np.stack([margin_to_loss(like.matched(loss_to_margin(row))) for row in losses])
