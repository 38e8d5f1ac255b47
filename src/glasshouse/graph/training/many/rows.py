"""Row-wise operations of several models in training: values [K, m, width], features perhaps sparse or deferred.

BatchNorm keeps each model's statistics apart, and dropout draws for each model; the table of all other operations is
that of evaluation (`glasshouse.graph.programs.rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.graph.programs.program import RowStep
from glasshouse.graph.programs.rows import RowOperations, Weights
from glasshouse.graph.programs.trace import settings_of, traced_rows
from glasshouse.graph.training.many.graph import BatchedGraph, Deferred, SparseMatrix


def biased(hidden: Tensor, bias: Tensor | None) -> Tensor:
    """Hidden values [K, m, c] plus each model's own bias [K, c], if there is one."""
    return hidden if bias is None else hidden + bias[:, None]


class BatchedRows(RowOperations):
    """The operations of a batch of models in training; buffers among the weights are changed in place."""

    def __init__(self, root: nn.Module, weights: Weights, graph: BatchedGraph) -> None:
        super().__init__(root, weights)
        self.graph = graph

    def filled(self, value: Any) -> Any:
        """A value as a tensor."""
        return self.graph.dense(value) if isinstance(value, SparseMatrix | Deferred) else value

    def linear(self, own: Weights) -> Callable[[Any], Tensor]:
        """A linear map, of sparse features too."""
        return lambda x: biased(self.graph.linear(x, own["weight"]), own.get("bias"))

    def norm(self, norm: nn.BatchNorm1d, own: Weights) -> Callable[[Any], Tensor]:
        """A normalisation of each model's own nodes."""
        return lambda x: batch_norm(self.filled(x), norm, own, self.graph)

    def drop(self, x: Any, share: float) -> Any:
        """Dropout with each model's own random numbers."""
        return self.graph.drop(x, share)


def batch_norm(hidden: Tensor, norm: nn.BatchNorm1d, weights: Weights, graph: BatchedGraph) -> Tensor:
    """Hidden values [K, m, c], normalised as ``norm`` does for one model; nodes that only fill a graph up do not count.

    The ``weights`` are those of each model, [K, c]; running statistics among them are brought up to date.
    """
    mean, variance = weights.get("running_mean"), weights.get("running_var")
    size = (len(hidden), hidden.shape[2])
    weight, bias = weights.get("weight", hidden.new_ones(size)), weights.get("bias", hidden.new_zeros(size))
    found: Tensor
    if norm.training or mean is None or variance is None:
        found, mean, variance = _Normal.apply(hidden, weight, bias, graph.real, norm.eps)  # type: ignore[no-untyped-call]
        if norm.training and norm.track_running_stats:
            _keep(mean, variance, norm, weights, graph)
        return found
    scale = weight * (variance + norm.eps).rsqrt()
    return torch.addcmul(bias[:, None], hidden - mean[:, None], scale[:, None])


@torch.no_grad()
def _keep(mean: Tensor, variance: Tensor, norm: nn.BatchNorm1d, weights: Weights, graph: BatchedGraph) -> None:
    """Move the running statistics towards those of this step; the variance as of a sample, as torch does."""
    weights["num_batches_tracked"].add_(1)
    if norm.momentum is None:  # the mean over all steps
        rate = 1 / weights["num_batches_tracked"].to(mean.dtype)[:, None]
    else:
        rate = mean.new_tensor(norm.momentum)
    nodes = mean.new_tensor([len(one.x) for one in graph.own])[:, None]
    weights["running_mean"].lerp_(mean, rate)
    weights["running_var"].lerp_(variance * nodes / (nodes - 1), rate)


class _Normal(torch.autograd.Function):
    """The values less their mean over some of the rows, scaled; in few passes over memory, which is what it costs."""

    @staticmethod
    def forward(
        context: Any, hidden: Tensor, weight: Tensor, bias: Tensor, shares: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = torch.bmm(shares, hidden)  # [K, 1, c]
        centred = hidden - mean
        variance = torch.bmm(shares, centred.square())
        root = (variance + eps).rsqrt()
        scale = root * weight[:, None]
        context.save_for_backward(centred, shares, root, scale)
        mean, variance = mean.squeeze(1), variance.squeeze(1)
        context.mark_non_differentiable(mean, variance)
        return torch.addcmul(bias[:, None], centred, scale), mean, variance

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        centred, shares, root, scale = context.saved_tensors
        (gradient, *_) = gradients
        total = gradient.sum(1, keepdim=True)  # nodes that fill a graph up have no gradient
        along = (gradient * centred).sum(1, keepdim=True)
        # through the mean and the variance; only nodes that counted in them get this part
        through = torch.addcmul(scale * total, centred, scale * along * root.square()).mul_(shares.transpose(1, 2))
        return torch.addcmul(through.neg_(), gradient, scale), (along * root).squeeze(1), total.squeeze(1), None, None


_KEPT = 64  # perceptrons
# By settings. Tracing changes torch's modules for a moment, so it must not happen while other threads train: the first
# step that is tried traces a perceptron, and the groups that are then trained at the same time find it here.
_TRACED: dict[Hashable, RowStep | None] = {}


def rows_of(module: Any) -> RowStep | None:
    """A part of a layer as operations on rows, such as GIN's perceptron; None if it cannot be traced."""
    if not isinstance(module, nn.Module):
        return None
    key = settings_of(module)
    if key not in _TRACED:
        _TRACED[key] = traced_rows(module)
        while len(_TRACED) > _KEPT:
            del _TRACED[next(iter(_TRACED))]
    return _TRACED[key]
