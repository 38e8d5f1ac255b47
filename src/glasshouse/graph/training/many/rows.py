"""Row-wise operations of several models at once: values [K, m, width], and each model's own weights.

Linear maps are one batched product, BatchNorm keeps each model's statistics apart, dropout draws for each model, and
element-wise operations need no change. Everything else goes through ``torch.func.vmap``, one operation at a time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call, vmap
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch_geometric.nn import BatchNorm
from torch_geometric.nn.dense import Linear

from glasshouse.graph.programs.program import NoProgram, Program, RowStep
from glasshouse.graph.programs.rows import settings_of
from glasshouse.graph.programs.trace import Asked, traced
from glasshouse.graph.training.many.graph import BatchedGraph, SparseMatrix, share_dropped

Weights = Mapping[str, Tensor]  # a layer's parameters and buffers by name, each [K, ...]


def biased(hidden: Tensor, bias: Tensor | None) -> Tensor:
    """Hidden values [K, m, c] plus each model's own bias [K, c], if there is one.

    Example:
        >>> biased(torch.zeros(1, 2, 1), torch.ones(1, 1)).tolist()
        [[[1.0], [1.0]]]
    """
    return hidden if bias is None else hidden + bias[:, None]


def weights_of(weights: Weights, path: str) -> Weights:
    """The weights of one part of a traced model, by their names within that part.

    Example:
        >>> list(weights_of({"convs.0.bias": torch.ones(2, 1), "convs.1.bias": torch.ones(2, 1)}, "model.convs.1"))
        ['bias']
    """
    prefix = f"{path}.".removeprefix("model.")
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def batch_norm(hidden: Tensor, norm: nn.BatchNorm1d, weights: Mapping[str, Tensor], graph: BatchedGraph) -> Tensor:
    """Hidden values [K, m, c], normalised as ``norm`` does for one model; nodes that only fill a graph up do not count.

    Args:
        hidden: [K, m, c].
        norm: its options; its own weights are not used.
        weights: ``weight`` and ``bias`` [K, c] if it has them; its running statistics, which are brought up to date.
        graph: whose nodes count.

    Example:
        >>> from glasshouse.graph.data.subgraph import InducedGraph
        >>> one = InducedGraph(torch.eye(2), torch.empty(2, 0).long(), torch.tensor([0, 1]))
        >>> hidden = torch.cat([torch.tensor([[[1.0], [3.0]]]), torch.zeros(1, 62, 1)], dim=1)
        >>> norm = nn.BatchNorm1d(1, affine=False, track_running_stats=False)
        >>> batch_norm(hidden, norm, {}, BatchedGraph.of([one]))[0, :2].round().tolist()
        [[-1.0], [1.0]]
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
def _keep(
    mean: Tensor, variance: Tensor, norm: nn.BatchNorm1d, weights: Mapping[str, Tensor], graph: BatchedGraph
) -> None:
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


Values = dict[fx.Node, Any]
Call = Callable[[Values], Any]
_ELEMENTWISE_MODULES = (
    nn.ReLU,
    nn.ELU,
    nn.LeakyReLU,
    nn.GELU,
    nn.SELU,
    nn.CELU,
    nn.SiLU,
    nn.Mish,
    nn.ReLU6,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.LogSigmoid,
    nn.Hardtanh,
    nn.Hardswish,
)
_ELEMENTWISE = (
    torch.relu,
    torch.tanh,
    torch.sigmoid,
    torch.exp,
    functional.relu,
    functional.elu,
    functional.leaky_relu,
    functional.gelu,
    functional.selu,
    functional.silu,
    functional.softplus,
    functional.tanh,
    functional.sigmoid,
)
_ELEMENTWISE_METHODS = ("relu", "relu_", "tanh", "tanh_", "sigmoid", "sigmoid_", "exp", "float", "contiguous", "clone")
_PAIRWISE = (operator.add, operator.sub, operator.mul, operator.truediv, operator.iadd, operator.imul, torch.add)
_PAIRWISE_METHODS = ("add", "add_", "sub", "mul", "mul_")
_SOFTMAX = {
    functional.log_softmax: torch.log_softmax,
    torch.log_softmax: torch.log_softmax,
    Tensor.log_softmax: torch.log_softmax,
    functional.softmax: torch.softmax,
    torch.softmax: torch.softmax,
    Tensor.softmax: torch.softmax,
}
_ABOUT = ("size", "dim", "numel")  # these ask about the shape of one model's value


@dataclass(frozen=True)
class Deferred:
    """Rows that are not computed yet: a linear map of them may be cheaper than they are.

    Args:
        linear: from weights [K, out, in] to the map of the rows [K, m, out].
        rows: the rows themselves, [K, m, in].

    Example:
        >>> ones = torch.ones(1, 2, 3)
        >>> Deferred(linear=lambda weight: ones @ weight.mT, rows=lambda: ones).rows().shape
        torch.Size([1, 2, 3])
    """

    linear: Callable[[Tensor], Tensor]
    rows: Callable[[], Tensor]


def batched_rows(
    step: RowStep, root: nn.Module, graph: BatchedGraph, weights: Weights
) -> Callable[[Sequence[SparseMatrix | Tensor | Deferred]], Any]:
    """A row step for all models of a batch, from its inputs [K, m, ...] to its result [K, m, width].

    Args:
        step: the operations.
        root: the first model, whose modules show their options.
        graph: the models' graphs.
        weights: of the whole model, by name, each [K, ...]; buffers are changed in place.

    Example:
        >>> from glasshouse.graph.data.subgraph import InducedGraph
        >>> from glasshouse.graph.programs.trace import Asked
        >>> steps = fx.Graph()
        >>> _ = steps.output(steps.call_module("model", (steps.placeholder("x"),)))
        >>> one = InducedGraph(torch.eye(2), torch.empty(2, 0).long(), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> stacked = {"weight": torch.ones(2, 3, 2), "bias": torch.zeros(2, 3)}
        >>> step = RowStep(name="linear", inputs=("x",), graph=steps)
        >>> batched_rows(step, Asked(nn.Linear(2, 3)), graph, stacked)([graph.x]).shape
        torch.Size([2, 64, 3])
    """
    compiled = _Compiled(root, graph, weights)
    calls = [(node, compiled.call(node)) for node in step.graph.nodes if node.op not in ("placeholder", "output")]
    inputs = [node for node in step.graph.nodes if node.op == "placeholder"]
    (result,) = (node.args[0] for node in step.graph.nodes if node.op == "output")

    def run(given: Sequence[SparseMatrix | Tensor | Deferred]) -> Any:
        if step.changes_inputs:
            given = [compiled.filled(one).clone() for one in given]
        values: Values = dict(zip(inputs, given, strict=True))
        for node, call in calls:
            values[node] = call(values)
        found = values[result]
        return found.rows() if isinstance(found, Deferred) else found  # sparse features may stay sparse

    return run


class _Compiled:
    """Chooses for each operation how it is done for all models."""

    def __init__(self, root: nn.Module, graph: BatchedGraph, weights: Weights) -> None:
        self.root = root
        self.graph = graph
        self.weights = weights

    def filled(self, value: Any) -> Any:
        """A value as a tensor."""
        if isinstance(value, Deferred):
            return value.rows()
        return self.graph.dense(value) if isinstance(value, SparseMatrix) else value

    def call(self, node: fx.Node) -> Call:
        if node.op == "get_attr":
            tensor = self.weights[str(node.target).removeprefix("model.")]
            return lambda _: tensor
        if node.op == "call_module":
            return self._module(node)
        name = node.target if node.op == "call_method" else None
        function: Callable[..., Any] = getattr(Tensor, name) if isinstance(name, str) else node.target  # type: ignore[assignment]
        share = share_dropped(function, node.args, node.kwargs)
        if share is not None:
            return self._dropout(node, share)
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if function in _SOFTMAX and axis in (1, -1) and node.kwargs.get("dtype") is None:
            return self._softmax(node, _SOFTMAX[function])
        alone = function in _ELEMENTWISE or name in _ELEMENTWISE_METHODS
        paired = function in _PAIRWISE or name in _PAIRWISE_METHODS
        about = name in _ABOUT or (function is getattr and node.args[1:] == ("shape",))

        def run(values: Values) -> Any:
            args, kwargs = self._arguments(node, values)
            tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
            if not tensors or (alone and len(tensors) == 1):
                return function(*args, **kwargs)
            if about:
                return function(tensors[0][0], *args[1:], **kwargs)
            if paired and all(one.shape == tensors[0].shape for one in tensors):
                return function(*args, **kwargs)
            return _one_by_one(function, args, kwargs)

        return run

    def _arguments(self, node: fx.Node, values: Values) -> tuple[Any, Any]:
        return fx.node.map_arg((node.args, node.kwargs), lambda one: self.filled(values[one]))

    def _dropout(self, node: fx.Node, share: float) -> Call:
        source = node.all_input_nodes[0]

        def run(values: Values) -> Any:
            value = values[source]
            return self.graph.drop(value.rows() if isinstance(value, Deferred) else value, share)

        return run

    def _module(self, node: fx.Node) -> Call:
        path = str(node.target)
        module = self.root.get_submodule(path)
        own = weights_of(self.weights, path)
        if type(module) in (nn.Linear, Linear):
            return self._linear(node, own)
        norm = module.module if type(module) is BatchNorm else module
        if type(norm) is nn.BatchNorm1d:
            prefix = "module." if norm is not module else ""
            return self._norm(node, norm, {name.removeprefix(prefix): tensor for name, tensor in own.items()})
        if type(module) is nn.Dropout:
            return self._dropout(node, module.p if module.training else 0.0)
        if type(module) in (nn.LogSoftmax, nn.Softmax) and module.dim in (1, -1):
            return self._softmax(node, torch.softmax if type(module) is nn.Softmax else torch.log_softmax)
        direct = type(module) in _ELEMENTWISE_MODULES

        def run(values: Values) -> Any:
            args, kwargs = self._arguments(node, values)
            return module(*args, **kwargs) if direct else _one_by_one(module, args, kwargs, weights=own)

        return run

    def _softmax(self, node: fx.Node, function: Callable[[Tensor, int], Tensor]) -> Call:
        """Classes before nodes, [K, c, m]: four times faster on a CPU, which then takes many nodes at once."""
        source = node.all_input_nodes[0]
        return lambda values: function(self.filled(values[source]).transpose(1, 2), 1).transpose(1, 2)

    def _linear(self, node: fx.Node, own: Weights) -> Call:
        source = node.all_input_nodes[0]

        def run(values: Values) -> Tensor:
            x = values[source]
            mapped = x.linear(own["weight"]) if isinstance(x, Deferred) else self.graph.linear(x, own["weight"])
            return biased(mapped, own.get("bias"))

        return run

    def _norm(self, node: fx.Node, norm: nn.BatchNorm1d, own: Weights) -> Call:
        source = node.all_input_nodes[0]
        return lambda values: batch_norm(self.filled(values[source]), norm, own, self.graph)


def _one_by_one(function: Any, args: Any, kwargs: Any, *, weights: Mapping[str, Tensor] | None = None) -> Any:
    """One operation of every model on its own rows, mapped by torch over the first axis of all tensors."""
    parts, shape = tree_flatten((args, kwargs, dict(weights or {})))
    places = [place for place, part in enumerate(parts) if isinstance(part, Tensor)]

    def one(*tensors: Tensor) -> Any:
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        own_args, own_kwargs, own_weights = tree_unflatten(filled, shape)
        if isinstance(function, nn.Module):
            return functional_call(function, own_weights, own_args, own_kwargs)
        return function(*own_args, **own_kwargs)

    filled = list(parts)
    return vmap(one)(*[parts[place] for place in places])


_KEPT = 64  # programs
# By settings. Tracing changes torch's modules for a moment, so it must not happen while other threads train: the first
# step that is tried traces a perceptron, and the groups that are then trained at the same time find it here.
_TRACED: dict[Hashable, Program | None] = {}


class _Rows(nn.Module):
    """A module of rows as a module on a graph, under the name that it has in its layer."""

    def __init__(self, module: nn.Module, name: str) -> None:
        super().__init__()
        self.name = name
        self.add_module(name, module)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        """What it makes of the rows."""
        return self.get_submodule(self.name)(x)


def has_rows(module: Any) -> bool:
    """Whether a module can be traced into operations on rows.

    Example:
        >>> has_rows(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU()))
        True
    """
    return isinstance(module, nn.Module) and _program(module, "nn") is not None


def batched_perceptron(
    module: nn.Module, graph: BatchedGraph, *, name: str
) -> Callable[[SparseMatrix | Tensor | Deferred, Weights], Tensor]:
    """The module for all models of a batch, from rows [K, m, in] and its layer's weights [K, ...] to rows [K, m, out].

    Args:
        module: of the first model, in the same mode as when it was tried.
        graph: the models' graphs.
        name: its name in its layer.

    Example:
        >>> import torch
        >>> from glasshouse.graph.data.subgraph import InducedGraph
        >>> one = InducedGraph(torch.eye(2), torch.empty(2, 0).long(), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> weights = {"nn.weight": torch.ones(2, 3, 2), "nn.bias": torch.zeros(2, 3)}
        >>> batched_perceptron(nn.Linear(2, 3), graph, name="nn")(graph.x, weights).shape
        torch.Size([2, 64, 3])
    """
    program = _program(module, name)
    if program is None:
        raise TypeError("this module has no row-wise operations; ask has_rows first")
    root = Asked(_Rows(module, name))
    steps = [step for step in program.steps if isinstance(step, RowStep)]
    bound: list[Any] = [None, []]  # the weights of the last call, and the steps with them: in training always the same

    def run(x: SparseMatrix | Tensor | Deferred, weights: Weights) -> Tensor:
        if bound[0] is not weights:
            bound[:] = [weights, [batched_rows(step, root, graph, weights) for step in steps]]
        values: dict[str, Any] = {"x": x}
        for step, call in zip(steps, bound[1], strict=True):
            values[step.name] = call([values[given] for given in step.inputs])
        found = values[program.output]
        return found.rows() if isinstance(found, Deferred) else graph.dense(found)

    return run


def _program(module: nn.Module, name: str) -> Program | None:
    key = (name, settings_of(module))
    if key not in _TRACED:
        try:
            program: Program | None = traced(_Rows(module, name))
        except NoProgram:
            program = None
        if len(_TRACED) >= _KEPT:
            _TRACED.pop(next(iter(_TRACED)))
        _TRACED[key] = program if program is not None and not program.messages else None
    return _TRACED[key]
