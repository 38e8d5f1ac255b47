"""The samplers that walk from training set to training set: Metropolis-Hastings and Gibbs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse.graph.models.model import Model, model_device
from glasshouse.graph.sampling.chains import gibbs_masks, metropolis_masks
from glasshouse.graph.sampling.chains.proposal import Block, changed_rows
from glasshouse.graph.sampling.sampler import Samples, SamplingRequest, one_query_each, register_sampler
from glasshouse.graph.scene import Scene
from glasshouse.randomness import seed_for

__all__ = ["gibbs_samples", "metropolis_samples"]

_BURN_IN, _AFTER = 1000, 100  # steps of a chain of Metropolis-Hastings, while its proposals are tuned and after that
_FLIP_SHARE = 0.01  # of the nodes, in its first proposals


@register_sampler("metropolis")
def metropolis_samples(scene: Scene, request: SamplingRequest) -> Samples:
    """One chain of Metropolis-Hastings over whole masks per sample.

    Samples of one chain, some hundred steps apart, are nearly the same mask, and a mean over them is the mean over one.
    Offline, a member is judged by the shadow models that were not trained on it.
    """
    models = scene.models if _are_on_gpu(scene.models) and _is_dense(scene.data) else _on_cpu(scene.models)
    masks, info = metropolis_masks(
        models,
        copy.copy(scene.data).to(str(model_device(models) or "cpu")),
        samples=request.samples,
        burn_in=_BURN_IN,
        thinning=_AFTER,
        chains=request.samples,
        flip_share=_FLIP_SHARE,
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


def _are_on_gpu(models: Sequence[Model]) -> bool:
    """Whether all models are modules on a GPU, and so can be asked there."""
    return all(isinstance(model, nn.Module) and _on_gpu(model) for model in models)


def _is_dense(data: Data) -> bool:
    """Whether a first proposal of Metropolis-Hastings changes about every row, so that a forward pass costs no more."""
    n, degree = int(data.num_nodes), torch.bincount(data.edge_index[1], minlength=int(data.num_nodes))
    first = Block(np.array([0, 1]), np.arange(max(round(_FLIP_SHARE * n), 1)), np.zeros(1))
    return changed_rows(first, np.concatenate([[0], degree.cumsum(0).cpu().numpy()])) > n


def _on_gpu(model: nn.Module) -> bool:
    return any(part.is_cuda for part in model.parameters())


def _on_cpu(models: Sequence[Model]) -> list[Model]:
    """The models on the CPU, where the chains run; modules on a GPU are copied, black boxes stay as they are."""
    return [
        copy.deepcopy(model).cpu() if isinstance(model, nn.Module) and _on_gpu(model) else model for model in models
    ]
