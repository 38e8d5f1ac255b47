"""PyTorch Geometric's layers for several models at once: each model's own weights over its own graph.

A linear map and a sum over neighbours can be swapped. So the weights [features, hidden] are applied first, to features
that are sparse and constant, and the sum over neighbours then runs over the narrower result. Of row-wise operations,
BatchNorm keeps each model's statistics apart, and dropout draws for each model; all others are those of evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, remove_self_loops, scatter, segment, softmax

from glasshouse.graph.layers.layer_type import LAYER_TYPES
from glasshouse.graph.models.tensor_cache import once
from glasshouse.graph.programs.program import RowStep
from glasshouse.graph.programs.rows import RowOperations, Weights, weights_of
from glasshouse.graph.programs.trace import settings_of, traced_rows
from glasshouse.graph.training.many.graph import BatchedGraph, Deferred, SparseMatrix, side_by_side


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
    found = once(_TRACED, settings_of(module), lambda: traced_rows(module))
    while len(_TRACED) > _KEPT:
        del _TRACED[next(iter(_TRACED))]
    return found


def batched_layer(
    layer: nn.Module, graph: BatchedGraph, weights: Weights, **edge_values: Tensor
) -> Callable[..., Tensor]:
    """The layer for all models of a batch: from its values of nodes, by the names of its arguments, to [K, m, out].

    What is constant in training is computed once and kept with the graph. Edge values are numbers, [E].
    """
    formula, operations = LAYER_TYPES[type(layer)].formula, _Training(layer, graph, weights)
    return lambda **values: graph.dense(formula(operations, layer, **values, **edge_values))


class _Training:
    """`glasshouse.graph.layers.layer_type.Operations` on values [K, m, width]; features may be sparse."""

    def __init__(self, layer: Any, graph: BatchedGraph, weights: Weights) -> None:
        self.layer, self.graph, self.weights = layer, graph, weights
        self._modules: dict[str, Callable[..., Tensor]] = {}

    def found(self, name: str | None) -> Tensor | None:
        """A parameter or a buffer of all models, [K, ...]; numbers at the end of a name pick an entry."""
        if name is None:
            return None
        owner, _, last = name.rpartition(".")
        if name in self.weights or not last.isdigit():
            return self.weights.get(name)
        whole = self.found(owner)
        return None if whole is None else whole[:, int(last)]

    def _vector(self, name: str | None) -> Tensor | None:
        found = self.found(name)
        return None if found is None else found.flatten(1)

    def linear(self, x: Any, name: str, *, bias: bool = True, towards: str | None = None) -> Tensor:
        weight = self.weights.get(f"{name}.weight")
        if weight is None:
            weight = self.found(name).transpose(1, 2)  # type: ignore[union-attr]
        if towards is not None:
            vector = self.weights[towards].squeeze(1)  # [K, heads, columns]
            weight = (weight.unflatten(1, vector.shape[1:]) * vector.unsqueeze(3)).sum(2)
        return biased(self.graph.linear(x, weight), self._vector(f"{name}.bias") if bias else None)

    def rows(self, function: Callable[..., Tensor], *values: Any, weights: Sequence[str] = ()) -> Tensor:
        own = [self.weights[name].flatten(1)[:, None] for name in weights]
        return function(*map(self.graph.dense, values), *own)

    def add(self, *values: Any, factors: Sequence[float] | None = None, bias: str | None = None) -> Tensor:
        rows, factors = map(self.graph.dense, values), factors or [1.0] * len(values)
        total: Any = sum(row if factor == 1 else factor * row for row, factor in zip(rows, factors, strict=True))
        return biased(total, self._vector(bias))

    def module(self, x: Any, name: str) -> Tensor:
        if name not in self._modules:
            module, own = getattr(self.layer, name), weights_of(self.weights, name)
            step: Any = rows_of(module)  # there is one, or the layer would have an obstacle
            self._modules[name] = BatchedRows(module, own, self.graph).compiled(step)
        return self.graph.dense(self._modules[name](x))

    def sum(
        self,
        x: Any,
        *,
        linear: str | None = None,
        bias: str | None = None,
        root: str | None = None,
        sums_first: bool = False,
        **how: Any,
    ) -> Tensor:
        graph, matrix = self.graph, _matrix(self.graph, self.layer, **how)
        if linear is None:
            made = graph.spread(matrix, graph.dense(x))
        elif sums_first and (x is graph.x or isinstance(x, Tensor)):
            aggr = "mean" if how.get("norm") == "mean" else "sum"
            made = self.linear(_received(graph, x, matrix, aggr), linear, bias=False)
        else:
            made = graph.spread(matrix, self.linear(x, linear, bias=False))
        made = biased(made, self._vector(bias))
        return made if root is None else made + self.linear(x, root, bias=False)

    def max(
        self, x: Any, *, linear: str, bias: str | None = None, root: str | None = None, weight: Tensor | None = None
    ) -> Tensor:
        graph = self.graph
        sent = _received(graph, x, None, "max") if weight is None else _largest(graph.dense(x), graph, weight)
        made = biased(self.linear(sent, linear, bias=False), self._vector(bias))
        return made if root is None else made + self.linear(x, root, bias=False)

    def module_of_sum(self, x: Any, name: str, *, own: str) -> Tensor:
        share, graph, sums = self.weights[own][:, :, None], self.graph, _matrix(self.graph, self.layer)

        def added(rows: Tensor) -> Tensor:
            return (1 + share) * rows + graph.spread(sums, rows)

        # a linear map, which most perceptrons start with, can be swapped with the sum
        sent = Deferred(linear=lambda weight: added(graph.linear(x, weight)), rows=lambda: added(graph.dense(x)))
        return self.module(sent, name)

    def attend(
        self,
        x: Any,
        ends: Callable[[Any, Any], tuple[Any, Any, Any]],
        *,
        score: Callable[..., Tensor] | None = None,
        message: Callable[..., Tensor] | None = None,
        weights: Sequence[str] = (),
        heads: int = 1,
        concat: bool = True,
        mean: bool = True,
        loops: Any = None,
        edges: None = None,
        edge: Any = None,
        dropout: float = 0.0,
        bias: str | None = None,
    ) -> Tensor:
        graph, pairs = self.graph, _pairs(self.graph, loops=loops is not None)
        parts = [None if one is None else graph.dense(one).unflatten(2, (heads, -1)) for one in ends(self, x)]
        shown, sent, asked = (None if one is None else one.flatten(0, 1) for one in parts)  # [K m, heads, columns]
        shown = None if shown is None else shown[pairs.source]
        asked = None if asked is None else asked[pairs.target]
        values = sent[pairs.source]  # type: ignore[index]
        values = values if message is None else message(shown, values, asked, None)
        share = values.new_ones(len(values), 1)
        if score is not None:
            share = softmax(self._scores(score, weights, shown, asked, pairs), pairs.target, num_nodes=graph.nodes)
        elif mean:
            share = (1 / torch.bincount(pairs.target, minlength=graph.nodes).to(values.dtype))[pairs.target, None]
        share = graph.drop_edges(share, pairs.counts, dropout) if dropout else share
        empty = values.new_zeros(graph.nodes, *values.shape[1:])
        made = graph.by_graph(empty.index_add(0, pairs.target, share[:, :, None] * values))
        return biased(made.flatten(2) if concat else made.mean(2), self._vector(bias))

    def _scores(
        self, score: Callable[..., Tensor], names: Sequence[str], shown: Any, asked: Any, pairs: _Pairs
    ) -> Tensor:
        """[E, heads]; if the score has weights, the edges of each model with its own."""
        if not names:
            return score(shown, asked, None)
        ends = zip(shown.split(pairs.counts), asked.split(pairs.counts), strict=True)
        own = zip(*[self.weights[name].squeeze(1).unbind(0) for name in names], strict=True)
        return torch.cat([score(*both, None, *vectors) for both, vectors in zip(ends, own, strict=True)])


def _matrix(
    graph: BatchedGraph,
    layer: Any,
    *,
    norm: str = "none",
    loops: str = "listed",
    fill: float = 1.0,
    own: float = 1.0,
    weight: Tensor | None = None,
    only: int | None = None,
) -> SparseMatrix:
    """The matrix [K m, K m] that sums over neighbours, as `glasshouse.graph.layers.layer_type.Operations.sum` says."""

    def make() -> SparseMatrix:
        edges, target = graph.edge_index, graph.edge_index[1]
        if norm == "laplacian":
            return _laplacian(layer, graph)
        if norm == "symmetric":
            edges, values = gcn_norm(edges, weight, graph.nodes, fill == 2, loops == "added", dtype=torch.float32)
            return SparseMatrix.of_edges(edges, values, nodes=graph.nodes)
        values = torch.ones_like(target, dtype=torch.float32) if weight is None else weight
        if weight is not None and only is not None:
            edges, values = edges[:, weight == only], values.new_ones(int((weight == only).sum()), dtype=torch.float32)
        elif loops == "added" and weight is None:
            edges = add_self_loops(remove_self_loops(edges)[0], num_nodes=graph.nodes)[0]
            values = torch.where(edges[0] == edges[1], own, torch.ones_like(edges[0], dtype=torch.float32))
        if norm == "mean":
            values = values * (1 / torch.bincount(edges[1], minlength=graph.nodes).clamp(min=1).float())[edges[1]]
        return SparseMatrix.of_edges(edges, values, nodes=graph.nodes)

    options = getattr(layer, "normalization", None) if norm == "laplacian" else (loops, fill, own, only)
    return graph.kept(("matrix", norm, options, weight), make)


def _laplacian(layer: Any, graph: BatchedGraph) -> SparseMatrix:
    """I less the Laplacian, scaled by the largest entry of each graph's own Laplacian, so one graph at a time."""
    edges, weight = [], []
    for k, one in enumerate(graph.own):
        found, values = layer.__norm__(one.edge_index, len(one.x), None, layer.normalization, dtype=torch.float32)
        edges.append(found + k * graph.size)
        weight.append(-values)
    return SparseMatrix.of_edges(torch.cat(edges, dim=1), torch.cat(weight), nodes=graph.nodes)


def _received(graph: BatchedGraph, x: Any, matrix: SparseMatrix | None, aggr: str) -> SparseMatrix | Tensor:
    """Sums or maxima of the neighbours' values; those of the features are taken once, in their layout."""
    if x is graph.x:
        return graph.kept(("received", aggr), lambda: _features_of_neighbours(graph, matrix, aggr))
    return graph.spread(matrix, graph.dense(x)) if matrix else _largest(graph.dense(x), graph)


def _features_of_neighbours(graph: BatchedGraph, matrix: SparseMatrix | None, aggr: str) -> SparseMatrix | Tensor:
    if isinstance(graph.x, Tensor):
        return graph.spread(matrix, graph.x) if matrix else _largest(graph.x, graph)
    found = []
    for k in range(graph.count):  # one graph at a time: the dense features of all might not fit
        within = (graph.edge_index[1] // graph.size) == k
        source, target = graph.edge_index[:, within] - k * graph.size
        values = graph.features_of(k)[source]
        found.append(scatter(values, target, dim=0, dim_size=graph.size, reduce=aggr))
    return side_by_side(found, graph.size, sparse=True)


def _largest(hidden: Tensor, graph: BatchedGraph, weight: Tensor | None = None) -> Tensor:
    """The largest of the neighbours' values, [K, m, c]; 0 without neighbours. Ties share the gradient, as in PyG."""
    order, counts, starts = graph.kept("by target", lambda: _by_target(graph))
    sent = hidden.flatten(0, 1)[graph.edge_index[0, order]]
    if weight is not None:
        sent = weight[order, None] * sent
    return graph.by_graph(_Largest.apply(sent, counts, starts))  # type: ignore[no-untyped-call]


def _by_target(graph: BatchedGraph) -> tuple[Tensor, Tensor, Tensor]:
    """The edges in the order of their targets, [E]; how many each target has, [K m]; where they begin, [K m + 1]."""
    order = graph.edge_index[1].argsort(stable=True)
    counts = torch.bincount(graph.edge_index[1], minlength=graph.nodes)
    return order, counts, nn.functional.pad(counts.cumsum(0), (1, 0))


class _Largest(torch.autograd.Function):
    """Maxima [n, c] of consecutive rows [E, c], without the atomic operations that a scattered maximum needs."""

    @staticmethod
    def forward(context: Any, sent: Tensor, counts: Tensor, starts: Tensor) -> Tensor:
        found: Tensor = segment(sent, starts, reduce="max")
        context.save_for_backward(sent, counts, starts, found)
        return found

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        sent, counts, starts, found = context.saved_tensors
        tied = (sent == found.repeat_interleave(counts, dim=0, output_size=len(sent))).to(sent.dtype)
        # PyG takes the maximum with 0 as a further value that counts where it is tied
        shared = gradients[0] / (segment(tied, starts, reduce="sum") + (found == 0)).clamp(min=1)
        return tied * shared.repeat_interleave(counts, dim=0, output_size=len(sent)), None, None


class _Pairs(NamedTuple):
    """The edges that carry attention, model by model, so that each model draws its own dropout of them."""

    source: Tensor  # [E]
    target: Tensor  # [E]
    counts: list[int]  # [K] edges per model


def _pairs(graph: BatchedGraph, *, loops: bool) -> _Pairs:
    """The edges of all graphs; with ``loops``, one self-loop per node in place of those of the graphs."""

    def make() -> _Pairs:
        edges = graph.edge_index
        if loops:
            edges = add_self_loops(remove_self_loops(edges)[0], num_nodes=graph.nodes)[0]
            edges = edges[:, (edges[0] // graph.size).argsort(stable=True)]
        owner = edges[0] // graph.size
        return _Pairs(edges[0], edges[1], torch.bincount(owner, minlength=graph.count).tolist())

    return graph.kept(("attention", loops), make)
