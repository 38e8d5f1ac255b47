"""Membership samplers: plausible training sets of the target, over which G-BASE averages (paper, App. B)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import BASE
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.graph.models.model import Model
from glasshouse.graph.sampling.chains import gibbs_masks, metropolis_masks
from glasshouse.graph.scene import Scene
from glasshouse.population import as_members
from glasshouse.randomness import generator, seed_for
from glasshouse.registry import Registry

__all__ = ["SAMPLERS", "Sampler", "Samples", "SamplingRequest", "draw"]


@dataclass(frozen=True, kw_only=True)
class SamplingRequest:
    """What G-BASE asks a sampler for.

    Args:
        samples: M, how many membership masks.
        prior: [n] λ of each node.
        mode: ``"online"``, or ``"offline"`` where only models without a node may speak about it.
        passes: how often a Gibbs chain visits every node.
        seed: of the draws.
        memory: where a sampler may keep what it learned, for the next target. It belongs to the attack that asks and is
            gone with it.
    """

    samples: int
    prior: FloatArray
    mode: Mode
    passes: int
    seed: int
    memory: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Samples:
    """Membership masks [M, n], and how they were come by.

    Args:
        masks: who is a member in each sample.
        acceptance: share of proposals that a chain took; None where nothing is proposed.
        precision: share of sampled members that are members in truth; None where that is not known.
        recall: share of true members that are sampled.
        queries: how often models were asked about a node, to draw them.
    """

    masks: BoolArray
    acceptance: float | None = None
    precision: float | None = None
    recall: float | None = None
    queries: int = 0


Sampler = Callable[[Scene, SamplingRequest], Samples]
SAMPLERS: Registry[Sampler] = Registry("a sampler")
_BURN_IN, _THINNING = 2000, 200  # steps of Metropolis-Hastings before the first sample, and from one to the next


def draw(
    sampler: str | Callable[[Scene, SamplingRequest], BoolArray], scene: Scene, request: SamplingRequest
) -> Samples:
    """Draw masks by a named sampler or the user's own function ``(scene, request) -> bool [M, n]``.

    Example:
        >>> SAMPLERS.names()
        ['independent', 'mia', 'metropolis', 'gibbs', 'truth', 'stacked']
    """
    if isinstance(sampler, str):
        found = SAMPLERS.find(sampler)(scene, request)
    else:
        shape = (request.samples, int(scene.data.num_nodes))
        found = Samples(as_members(sampler(scene, request), shape, place="sampler"))
    if scene.truth is None:
        return found
    hits = int((found.masks & scene.truth).sum())
    sampled, true = int(found.masks.sum()), len(found.masks) * int(scene.truth.sum())
    return Samples(
        found.masks,
        found.acceptance,
        precision=hits / sampled if sampled else float("nan"),
        recall=hits / true if true else float("nan"),
        queries=found.queries,
    )


def _independent(scene: Scene, request: SamplingRequest) -> Samples:
    """Every indicator by itself, by the prior: P(M | θ, G) taken as P(M | G)."""
    return Samples(_bernoulli(request.prior, request, "independent"))


def _mia(scene: Scene, request: SamplingRequest) -> Samples:
    """Every indicator by itself, by BASE's posterior from zero-hop queries."""
    posterior = BASE(mode=request.mode, prior=request.prior).score(scene.zero_hop)
    return Samples(_bernoulli(posterior, request, "mia"), queries=_answers(scene))


def _gibbs(scene: Scene, request: SamplingRequest) -> Samples:
    """One Gibbs chain a sample; its conditionals are the Bayes rule itself at the current mask."""
    masks, info = gibbs_masks(
        _on_cpu(scene.models),
        copy.copy(scene.data).cpu(),
        chains=request.samples,
        passes=request.passes,
        prior=request.prior,
        asked=None if request.mode == "online" else ~scene.shadow_members,
        seed=seed_for(request.seed, "gibbs"),
    )
    visits = request.samples * request.passes  # of every node, each with and without it
    return Samples(masks, info.acceptance_rate, queries=2 * visits * _answers(scene))


def _metropolis(scene: Scene, request: SamplingRequest) -> Samples:
    """Metropolis-Hastings over whole masks; it weighs all shadow models at once, so it has no offline form."""
    if request.mode == "offline":
        raise InputError(
            "sampler: metropolis weighs whole training sets, which no shadow model is outside of. Use gibbs."
        )
    masks, info = metropolis_masks(
        _on_cpu(scene.models),
        copy.copy(scene.data).cpu(),
        samples=request.samples,
        burn_in=_BURN_IN,
        thinning=_THINNING,
        prior=request.prior,
        seed=seed_for(request.seed, "metropolis"),
    )
    steps = _BURN_IN + request.samples * _THINNING  # each asks about the whole graph
    return Samples(masks, info.acceptance_rate, queries=steps * _answers(scene))


def _truth(scene: Scene, request: SamplingRequest) -> Samples:
    """The target's own training set: the limit that no attacker reaches, for comparison."""
    if scene.truth is None:
        raise InputError("sampler: truth needs the target's members; leave it to evaluations that know them.")
    return Samples(np.tile(scene.truth, (request.samples, 1)))


def _on_cpu(models: Sequence[Model]) -> list[Model]:
    """The models where the compiled chains run; modules on a GPU are copied, black boxes stay as they are."""
    return [
        copy.deepcopy(model).cpu()
        if isinstance(model, nn.Module) and any(part.is_cuda for part in model.parameters())
        else model
        for model in models
    ]


def _answers(scene: Scene) -> int:
    """QueryCount to ask every model about every node once."""
    return len(scene.models) * int(scene.data.num_nodes)


def _bernoulli(probability: FloatArray, request: SamplingRequest, purpose: str) -> BoolArray:
    uniform = generator(request.seed, purpose).random((request.samples, len(probability)))
    return np.asarray(uniform < probability)


SAMPLERS.add("independent", _independent)
SAMPLERS.add("mia", _mia)
SAMPLERS.add("metropolis", _metropolis)
SAMPLERS.add("gibbs", _gibbs)
SAMPLERS.add("truth", _truth)
