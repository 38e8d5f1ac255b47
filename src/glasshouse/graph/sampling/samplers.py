"""Membership samplers: plausible training sets of the target, over which G-BASE averages (paper, App. B).

Every node drawn independently, chains that walk from training set to training set, and the true one as a limit.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, seed_for
from glasshouse.core.registry import Registry
from glasshouse.data import as_members
from glasshouse.evidence import Mode
from glasshouse.graph.data.checking import with_context
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks
from glasshouse.graph.scene import Scene


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
    """Membership masks [M, n], and what it took to draw them."""

    masks: BoolArray  # who is a member in each sample
    acceptance: float | None = None  # share of proposals that a chain accepted; None if nothing is proposed
    queries: int = 0  # how often models were asked about a node in order to draw them


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
    return functools.partial(cast("Callable[[str, SamplerType], SamplerType]", SAMPLERS.add), name)


def draw(sampler: Sampler, scene: Scene, request: SamplingRequest) -> Samples:
    """Draw masks with a sampler: one of ours, or the user's own function ``(scene, request) -> bool [M, n]``."""
    found = sampler(scene, request)
    if not isinstance(found, Samples):
        found = Samples(as_members(found, (request.samples, len(request.prior)), place="sampler"))
    if isinstance(scene.labelled, slice):
        return found
    chances = [with_context(mask.astype(np.float64), scene.data, scene.shadow_members) for mask in found.masks]
    return dataclasses.replace(found, masks=np.stack(chances) > 0)


def _bernoulli(probability: FloatArray, request: SamplingRequest, *, purpose: str) -> BoolArray:
    """Masks [M, n] in which every node is drawn independently, by chances [n]; ``purpose`` names the random stream."""
    uniform = generator(request.seed, purpose).random((request.samples, len(probability)))
    return np.asarray(uniform < probability)


def _one_query_each(scene: Scene) -> int:
    """How many queries it takes to ask every model about every node once."""
    return len(scene.models) * int(scene.data.num_nodes)


@register_sampler("independent")
def prior_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Draw every indicator from the prior: P(M | θ, G) is taken as P(M | G)."""
    return Samples(_bernoulli(request.prior, request, purpose="independent"))


@register_sampler("mia")
def base_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Draw every indicator from BASE's posterior, by zero-hop queries."""
    at, posterior = scene.labelled, request.prior.copy()
    evidence = scene.of_nodes(scene.zero_hop, at)
    posterior[at] = BASE(mode=request.mode, prior=request.prior[at]).score(evidence)
    return Samples(_bernoulli(posterior, request, purpose="mia"), queries=_one_query_each(scene))


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Returns the given members of the target; G-BASE with it is never the strongest attack.

    Args:
        members: [n] who trained the target. A scene does not hold it.

    Example:
        >>> GroundTruth([True, False]).name
        'truth'
    """

    name: ClassVar[str] = "truth"

    members: ArrayLike = field(repr=False)

    def __call__(self, scene: Scene, request: SamplingRequest) -> Samples:
        """The same mask M times."""
        known = as_members(self.members, (len(request.prior),), place="members")
        return Samples(np.tile(known, (request.samples, 1)))


@register_sampler("truth")
def _untold(scene: Scene, request: SamplingRequest) -> NoReturn:
    """The name that audits replace by `GroundTruth`, because they know the members."""
    raise InputError(
        "sampler: truth needs the target's members, which an attack does not know. Pass sampler=GroundTruth(members)."
    )


_BURN_IN, _AFTER = 1000, 100  # steps of a chain of Metropolis-Hastings, while its proposals are tuned and after that


@register_sampler("metropolis")
def metropolis_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """One chain of Metropolis-Hastings over whole masks per sample.

    Samples of one chain, some hundred steps apart, are nearly the same mask, and a mean over them is the mean over one.
    Offline, a member is judged by the shadow models that were not trained on it.
    """
    masks, info = metropolis_masks(
        scene.profiled(),
        scene.data,
        samples=request.samples,
        burn_in=_BURN_IN,
        thinning=_AFTER,
        chains=request.samples,
        prior=request.prior,
        usable_shadows=None if request.mode == "online" else scene.outside,
        seed=seed_for(request.seed, "metropolis"),
    )
    steps = request.samples * (_BURN_IN + _AFTER)  # each asks about the whole graph
    return Samples(masks, info.acceptance_rate, queries=steps * _one_query_each(scene))


@register_sampler("gibbs")
def gibbs_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """One Gibbs chain per sample; its conditionals are the Bayes rule itself at the current mask."""
    masks, info = gibbs_masks(
        scene.profiled(),
        scene.data,
        chains=request.samples,
        passes=request.passes,
        prior=request.prior,
        usable_shadows=None if request.mode == "online" else scene.outside,
        seed=seed_for(request.seed, "gibbs"),
    )
    visits = request.samples * request.passes  # of every node, each asked with and without it
    return Samples(masks, info.acceptance_rate, queries=2 * visits * _one_query_each(scene))
