"""Membership samplers: plausible training sets of the target, over which G-BASE averages (paper, App. B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evidence import Mode
from glasshouse.graph.scene import Scene
from glasshouse.population import as_members
from glasshouse.randomness import generator
from glasshouse.registry import Registry

__all__ = [
    "SAMPLERS",
    "Sampler",
    "Samples",
    "SamplingRequest",
    "bernoulli",
    "draw",
    "one_query_each",
    "register_sampler",
]


@dataclass(frozen=True, kw_only=True)
class SamplingRequest:
    """What G-BASE asks a sampler for.

    Args:
        samples: M, how many membership masks.
        prior: [n] λ of each node.
        mode: ``"online"``, or ``"offline"``, where only models that were not trained on a node are used for it.
        passes: how often a Gibbs chain visits every node.
        seed: of the draws.
    """

    samples: int
    prior: FloatArray
    mode: Mode
    passes: int
    seed: int


@dataclass(frozen=True, eq=False)
class Samples:
    """Membership masks [M, n], and what it took to draw them.

    Args:
        masks: who is a member in each sample.
        acceptance: share of proposals that a chain accepted; None if nothing is proposed.
        queries: how often models were asked about a node in order to draw them.
    """

    masks: BoolArray
    acceptance: float | None = None
    queries: int = 0


# one that first learns from the pool also has ``tuned(scene, request) -> Sampler``, which never looks at the target
Sampler = Callable[[Scene, SamplingRequest], Samples | BoolArray]
SAMPLERS: Registry[Sampler] = Registry("a sampler")
SamplerType = TypeVar("SamplerType", bound=Sampler)


def register_sampler(name: str) -> Callable[[SamplerType], SamplerType]:
    """Decorator that makes a sampler known by name, to G-BASE and to audit files.

    Example:
        >>> sorted(SAMPLERS.names())
        ['gibbs', 'independent', 'metropolis', 'mia', 'stacked', 'truth']
    """

    def decorate(sampler: SamplerType) -> SamplerType:
        SAMPLERS.add(name, sampler)
        return sampler

    return decorate


def draw(sampler: Sampler, scene: Scene, request: SamplingRequest) -> Samples:
    """Draw masks with a sampler: one of ours, or the user's own function ``(scene, request) -> bool [M, n]``.

    Args:
        sampler: draws them.
        scene: the target, its shadow models and the graph.
        request: how many, and with which prior.
    """
    found = sampler(scene, request)
    if isinstance(found, Samples):
        return found
    return Samples(as_members(found, (request.samples, int(scene.data.num_nodes)), place="sampler"))


def bernoulli(probability: FloatArray, request: SamplingRequest, *, purpose: str) -> BoolArray:
    """Masks [M, n] in which every node is drawn independently.

    Args:
        probability: [n] of being a member.
        request: how many masks, and the seed.
        purpose: names the stream of random numbers.

    Example:
        >>> request = SamplingRequest(samples=2, prior=np.ones(3), mode="online", passes=1, seed=0)
        >>> bernoulli(request.prior, request, purpose="doctest").all()
        np.True_
    """
    uniform = generator(request.seed, purpose).random((request.samples, len(probability)))
    return np.asarray(uniform < probability)


def one_query_each(scene: Scene) -> int:
    """How many queries it takes to ask every model about every node once."""
    return len(scene.models) * int(scene.data.num_nodes)
