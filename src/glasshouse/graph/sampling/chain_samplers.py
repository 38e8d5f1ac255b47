"""The samplers that walk from training set to training set: Metropolis-Hastings and Gibbs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import nn

from glasshouse.errors import InputError
from glasshouse.graph.models.model import Model
from glasshouse.graph.sampling.chains import gibbs_masks, metropolis_masks
from glasshouse.graph.sampling.sampler import Samples, SamplingRequest, one_query_each, register_sampler
from glasshouse.graph.scene import Scene
from glasshouse.randomness import seed_for

__all__ = ["gibbs_samples", "metropolis_samples"]

_BURN_IN, _THINNING = 2000, 200  # steps of Metropolis-Hastings before the first sample, and from one to the next


@register_sampler("metropolis")
def metropolis_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """Metropolis-Hastings over whole masks; it uses all shadow models at once, so it has no offline form."""
    if request.mode == "offline":
        raise InputError("sampler: metropolis judges whole training sets, so it has no offline form. Use gibbs.")
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
    return Samples(masks, info.acceptance_rate, queries=steps * one_query_each(scene))


@register_sampler("gibbs")
def gibbs_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """One Gibbs chain per sample; its conditionals are the Bayes rule itself at the current mask."""
    masks, info = gibbs_masks(
        _on_cpu(scene.models),
        copy.copy(scene.data).cpu(),
        chains=request.samples,
        passes=request.passes,
        prior=request.prior,
        asked=None if request.mode == "online" else ~scene.shadow_members,
        seed=seed_for(request.seed, "gibbs"),
    )
    visits = request.samples * request.passes  # of every node, each asked with and without it
    return Samples(masks, info.acceptance_rate, queries=2 * visits * one_query_each(scene))


def _on_cpu(models: Sequence[Model]) -> list[Model]:
    """The models on the CPU, where the chains run; modules on a GPU are copied, black boxes stay as they are."""
    return [
        copy.deepcopy(model).cpu()
        if isinstance(model, nn.Module) and any(part.is_cuda for part in model.parameters())
        else model
        for model in models
    ]
