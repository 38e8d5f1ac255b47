"""The samplers that walk from training set to training set: Metropolis-Hastings and Gibbs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import nn

from glasshouse.graph.models.model import Model, model_device
from glasshouse.graph.sampling.chains import gibbs_masks, metropolis_masks
from glasshouse.graph.sampling.sampler import Samples, SamplingRequest, one_query_each, register_sampler
from glasshouse.graph.scene import Scene
from glasshouse.randomness import seed_for

__all__ = ["gibbs_samples", "metropolis_samples"]

_BURN_IN, _AFTER = 1000, 100  # steps of a chain of Metropolis-Hastings, while its proposals are tuned and after that


@register_sampler("metropolis")
def metropolis_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """One chain of Metropolis-Hastings over whole masks per sample.

    Samples of one chain, some hundred steps apart, are nearly the same mask, and a mean over them is the mean over one.
    Offline, a member is judged by the shadow models that were not trained on it.
    """
    masks, info = metropolis_masks(
        scene.models,
        copy.copy(scene.data).to(str(model_device(scene.models) or "cpu")),
        samples=request.samples,
        burn_in=_BURN_IN,
        thinning=_AFTER,
        chains=request.samples,
        prior=request.prior,
        asked=None if request.mode == "online" else ~scene.shadow_members,
        seed=seed_for(request.seed, "metropolis"),
    )
    steps = request.samples * (_BURN_IN + _AFTER)  # each asks about the whole graph
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


def _on_gpu(model: nn.Module) -> bool:
    return any(part.is_cuda for part in model.parameters())


def _on_cpu(models: Sequence[Model]) -> list[Model]:
    """The models on the CPU, where Gibbs chains run; modules on a GPU are copied, black boxes stay as they are."""
    return [
        copy.deepcopy(model).cpu() if isinstance(model, nn.Module) and _on_gpu(model) else model for model in models
    ]
