"""The stacked posterior as the sampling distribution of G-BASE: training sets from all that is known of a target."""

from __future__ import annotations

import functools

import numpy as np
from scipy.special import expit

from glasshouse.attacks.prior import with_prior
from glasshouse.evidence import Mode
from glasshouse.graph.samplers import SAMPLERS, Request, Samples
from glasshouse.graph.scene import Scene
from glasshouse.graph.stacked_attack import GStacked
from glasshouse.randomness import generator

__all__ = ["stacked_samples"]


def stacked_samples(scene: Scene, request: Request) -> Samples:
    """Every indicator by itself, by the stacked attack's posterior; the pool is learned once for all targets.

    The posterior's own last round samples from the one before, so the draws here are those of one round more.

    Example:
        >>> SAMPLERS.find("stacked") is stacked_samples
        True
    """
    known = _attack(request.mode, request.seed).learned(scene)
    odds = with_prior(known.opinion(scene.target).odds, share=known.share, prior=request.prior)
    uniform = generator(request.seed, "stacked").random((request.samples, len(odds)))
    return Samples(np.asarray(uniform < expit(odds)), queries=known.queries.total(len(odds)))


@functools.lru_cache(maxsize=2)
def _attack(mode: Mode, seed: int) -> GStacked:
    """Kept, because it keeps what it learned from the last pool."""
    return GStacked(mode=mode, seed=seed, jobs=-1)


SAMPLERS.add("stacked", stacked_samples)
