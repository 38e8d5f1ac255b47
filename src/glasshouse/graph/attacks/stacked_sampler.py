"""The stacked posterior as the sampling distribution of G-BASE: training sets from all that is known about a target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from glasshouse.attacks.prior import with_prior
from glasshouse.graph.attacks.stacked import GStacked
from glasshouse.graph.sampling.sampler import SAMPLERS, Samples, SamplingRequest
from glasshouse.graph.scene import Scene
from glasshouse.randomness import generator

__all__ = ["StackedSampler"]


@dataclass(frozen=True)
class StackedSampler:
    """Every membership indicator drawn independently, from the stacked attack's posterior.

    The last round of the attack samples from the posterior of the round before, so this is like one more round.

    Args:
        attack: the attack that learned from the pool; None before `tuned`.

    Example:
        >>> SAMPLERS.find("stacked")
        StackedSampler(attack=None)
    """

    attack: GStacked | None = None

    def tuned(self, scene: Scene, request: SamplingRequest) -> StackedSampler:
        """The same sampler after it has learned from the scene's pool; it does not look at the target."""
        return StackedSampler(_attack(request).tuned(scene))

    def __call__(self, scene: Scene, request: SamplingRequest) -> Samples:
        """Masks [M, n]."""
        attack = self.attack or _attack(request).tuned(scene)
        known = attack.learned(scene)
        with scene.keeping():
            found = known.posterior_of(scene, request.prior)
        odds = with_prior(found.odds, share=known.share, prior=request.prior)
        uniform = generator(request.seed, "stacked").random((request.samples, len(odds)))
        return Samples(np.asarray(uniform < expit(odds)), queries=known.queries.total(len(odds)))


def _attack(request: SamplingRequest) -> GStacked:
    return GStacked(mode=request.mode, seed=request.seed, jobs=-1)


SAMPLERS.add("stacked", StackedSampler())
