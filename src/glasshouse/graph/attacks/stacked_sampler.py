"""The stacked posterior as the sampling distribution of G-BASE: training sets from all that is known of a target."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from glasshouse.attacks.prior import with_prior
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.stacked import GStacked
from glasshouse.graph.attacks.stacking import Learned
from glasshouse.graph.sampling.samplers import SAMPLERS, Samples, SamplingRequest
from glasshouse.graph.scene import Scene
from glasshouse.randomness import generator

__all__ = ["stacked_samples"]


def stacked_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Every indicator by itself, by the stacked attack's posterior.

    The last round of the posterior samples from the one before, so the draws here are those of one round more. What is
    learned from a pool is kept in the request's memory, so that the next target with the same shadow models reuses it.

    Example:
        >>> SAMPLERS.find("stacked") is stacked_samples
        True
    """
    known = _learned(scene, request)
    odds = with_prior(known.posterior_of(scene.target).odds, share=known.share, prior=request.prior)
    uniform = generator(request.seed, "stacked").random((request.samples, len(odds)))
    return Samples(np.asarray(uniform < expit(odds)), queries=known.queries.total(len(odds)))


def _learned(scene: Scene, request: SamplingRequest) -> Learned:
    """What the scene's pool teaches, from memory where the last scene had the same pool."""
    key = ("stacked", request.mode, request.seed)
    known: Learned | None = request.memory.get(key)
    if known is None or not known.pool.is_of(scene.data, scene.shadows, scene.shadow_members):
        known = request.memory[key] = _attack(request.mode, request.seed).learned(scene)
    return known


def _attack(mode: Mode, seed: int) -> GStacked:
    return GStacked(mode=mode, seed=seed, jobs=-1)


SAMPLERS.add("stacked", stacked_samples)
