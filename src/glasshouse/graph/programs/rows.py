"""Operations on single rows for several models at once: one table, read in evaluation and in training.

Values are [K, m, width], or [1, m, width] where all models share them; each of the K models has its own weights. What
the table does not know goes through ``torch.func.vmap``, one operation at a time.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call, vmap
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch_geometric.nn import BatchNorm, LayerNorm
from torch_geometric.nn.dense import Linear

from glasshouse.graph.programs.program import RowStep
from glasshouse.graph.programs.trace import ABOUT_ATTRIBUTES, traced_rows

RowFunction = Callable[..., Tensor]  # rows [rows, models or 1, width] of each input -> rows [rows, models or 1, width]
Weights = Mapping[str, Tensor]  # parameters and buffers by name, each [K, ...]
Values = dict[fx.Node, Any]

_CLOSE = 1e-4  # up to which two ways to compute are the same, as a share of the largest value
_ENTRYWISE: tuple[Any, ...] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
    *(operator.iadd, operator.isub, operator.imul, operator.itruediv),
    *(torch.relu, torch.tanh, torch.sigmoid, torch.exp, torch.add, torch.sub, torch.mul, torch.div, torch.abs),
    *(torch.clamp, functional.relu, functional.elu, functional.leaky_relu, functional.gelu, functional.silu),
    *(functional.selu, functional.softplus, functional.relu6, functional.mish, functional.tanh, functional.sigmoid),
    *(Tensor.relu, Tensor.relu_, Tensor.tanh, Tensor.tanh_, Tensor.sigmoid, Tensor.sigmoid_, Tensor.exp, Tensor.abs),
    *(Tensor.neg, Tensor.clamp, Tensor.add, Tensor.add_, Tensor.sub, Tensor.mul, Tensor.mul_, Tensor.div, Tensor.float),
    *(Tensor.contiguous, Tensor.clone),
)
_ENTRYWISE_MODULES: tuple[type[nn.Module], ...] = (
    *(nn.ReLU, nn.ELU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.SELU, nn.CELU, nn.ReLU6, nn.Softplus, nn.Softsign, nn.Mish),
    *(nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.Hardtanh, nn.Hardswish, nn.Identity),
)
_SOFTMAX: dict[Any, Callable[[Tensor, int], Tensor]] = {
    **dict.fromkeys((functional.log_softmax, torch.log_softmax, Tensor.log_softmax, nn.LogSoftmax), torch.log_softmax),
    **dict.fromkeys((functional.softmax, torch.softmax, Tensor.softmax, nn.Softmax), torch.softmax),
}
_ABOUT = (Tensor.size, Tensor.dim, Tensor.numel)  # these ask about the shape of one model's value


class RowOperations:
    """How the calls of a row step are done for all models; those of evaluation, which training replaces in part."""

    def __init__(self, root: nn.Module, weights: Weights) -> None:
        self.root, self.weights = root, weights  # the first model's modules show their options
        self.direct = True  # whether no call goes through ``vmap``

    def compiled(self, step: RowStep, after: fx.Node | None = None) -> Callable[..., Any]:
        """The step as a function of its inputs; or what is left of it after its first call, of that call's result."""
        inputs = [node for node in step.graph.nodes if node.op == "placeholder"] if after is None else [after]
        others = [node for node in step.graph.nodes if node.op not in ("placeholder", "output") and node is not after]
        calls = [(node, self._call(node)) for node in others]
        (result,) = next(iter(reversed(step.graph.nodes))).args

        def run(*given: Any) -> Any:
            if step.changes_inputs and after is None:
                given = tuple(self.filled(one).clone() for one in given)
            values: Values = dict(zip(inputs, given, strict=False))  # inputs with a default may be left out
            for node, call in calls:
                values[node] = call(values)
            return values[result]

        return run

    def filled(self, value: Any) -> Any:
        """A value as a tensor."""
        return value

    def linear(self, own: Weights) -> Callable[[Any], Tensor]:
        """A linear map."""
        columns, bias = own["weight"].transpose(1, 2).contiguous(), own.get("bias")

        def apply(x: Tensor) -> Tensor:
            made = project(x.transpose(0, 1), columns).transpose(0, 1)
            return made if bias is None else made + bias[:, None]

        return apply

    def norm(self, norm: nn.BatchNorm1d, own: Weights) -> Callable[[Any], Tensor] | None:
        """A normalisation by kept statistics."""
        if norm.training or "running_mean" not in own:
            return None
        scale = (own["running_var"] + norm.eps).rsqrt()
        scale = scale * own["weight"] if "weight" in own else scale
        shift = own["bias"] - own["running_mean"] * scale if "bias" in own else -own["running_mean"] * scale
        return lambda x: torch.addcmul(shift[:, None], x, scale[:, None])

    def drop(self, x: Any, share: float) -> Any:
        """Dropout; it is idle in evaluation."""
        return functional.dropout(x, share) if share else x

    def _module(self, module: Any, own: Weights) -> Callable[[Any], Any] | None:
        """What a known module makes of the one value that it reads."""
        kind, norm = type(module), module.module if type(module) is BatchNorm else module
        if kind in (nn.Linear, Linear):
            return self.linear(own)
        if type(norm) is nn.BatchNorm1d:
            return self.norm(norm, {name.removeprefix("module."): tensor for name, tensor in own.items()})
        if kind is nn.Dropout:
            return lambda x: self.drop(x, module.p if module.training else 0.0)
        if kind in _SOFTMAX and module.dim in (1, -1):
            return lambda x: self._softmax(_SOFTMAX[kind], x)
        if kind is nn.LayerNorm or (kind is LayerNorm and module.mode == "node"):
            return self._layer_norm(module, own) if len(getattr(module, "normalized_shape", (1,))) == 1 else None
        if kind is nn.PReLU:
            return lambda x: _prelu(self.filled(x), own["weight"][:, None])
        return (lambda x: module(self.filled(x))) if kind in _ENTRYWISE_MODULES else None

    def _softmax(self, function: Callable[[Tensor, int], Tensor], x: Any) -> Tensor:
        """Classes before nodes, [K, c, m]: four times faster on a CPU, which then takes many nodes at once."""
        return function(self.filled(x).transpose(1, 2), 1).transpose(1, 2)

    def _layer_norm(self, norm: Any, own: Weights) -> Callable[[Any], Tensor]:
        def apply(x: Any) -> Tensor:
            rows = self.filled(x)
            rows = functional.layer_norm(rows, rows.shape[-1:], eps=norm.eps)
            rows = rows * own["weight"][:, None] if "weight" in own else rows
            return rows + own["bias"][:, None] if "bias" in own else rows

        return apply

    def _function(self, function: Any, node: fx.Node) -> Callable[[Any], Any] | None:
        """What a known function or method makes of the one value that it reads."""
        share = share_dropped(function, node.args, node.kwargs)
        if share is not None:
            return lambda x: self.drop(x, share)
        axis = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if function in _SOFTMAX and axis in (1, -1) and node.kwargs.get("dtype") is None:
            return functools.partial(self._softmax, _SOFTMAX[function])
        if function in _ABOUT or (function is getattr and axis in ABOUT_ATTRIBUTES):
            return lambda x: function(self.filled(x)[0], *node.args[1:], **node.kwargs)
        return None

    def _call(self, node: fx.Node) -> Callable[[Values], Any]:
        """From the values before a call to its own."""
        path, function = str(node.target), node.target
        own: Weights = {}
        if node.op == "get_attr":
            return lambda _: self.weights[path]
        if node.op == "call_module":
            function, own = self.root.get_submodule(path), weights_of(self.weights, path)
            made = self._module(function, own)
        else:
            function = function if node.op == "call_function" else getattr(Tensor, path)
            made = self._function(function, node)
        if made is None:
            return self._each(node, function, own)
        return lambda values: made(values[node.all_input_nodes[0]])

    def _each(self, node: fx.Node, function: Any, own: Weights) -> Callable[[Values], Any]:
        """A call for each model; one for all where nothing but numbers on the same axes are combined."""
        entrywise = function in _ENTRYWISE
        self.direct = self.direct and entrywise

        def run(values: Values) -> Any:
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda one: self.filled(values[one]))
            axes = [one.ndim for one in tree_flatten((args, kwargs))[0] if isinstance(one, Tensor)]
            if not own and (not axes or (entrywise and len(set(axes)) == 1)):
                return function(*args, **kwargs)
            return _mapped(function, args, kwargs, own)

        return run


def _prelu(rows: Tensor, slope: Tensor) -> Tensor:
    return torch.where(rows > 0, rows, slope * rows)


def _mapped(function: Any, args: Any, kwargs: Any, weights: Weights) -> Any:
    """A call for every model on its own rows, mapped by torch over the first axis of all tensors."""
    parts, shape = tree_flatten((args, kwargs, dict(weights)))
    places = [place for place, part in enumerate(parts) if isinstance(part, Tensor)]
    count = max(len(parts[place]) for place in places)
    axes = tuple(0 if len(parts[place]) == count else None for place in places)  # of 1 where models share a value

    def one(*tensors: Tensor) -> Any:
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        own_args, own_kwargs, own_weights = tree_unflatten(filled, shape)
        if isinstance(function, nn.Module):
            return functional_call(function, own_weights, own_args, own_kwargs)
        return function(*own_args, **own_kwargs)

    filled = list(parts)
    given = [parts[place][0] if axis is None else parts[place] for place, axis in zip(places, axes, strict=True)]
    return vmap(one, in_dims=axes)(*given)


def weights_of(weights: Weights, path: str) -> Weights:
    """The weights of one part of a model, by their names within that part."""
    prefix = f"{path}." if path else ""
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}


def share_dropped(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> float | None:
    """The share that a call of torch's dropout drops; None if it is a call of something else."""
    if function is not functional.dropout and function is not torch.dropout:
        return None
    given = {"p": 0.5, "training": True, **dict(zip(("input", "p", "training"), args, strict=False)), **kwargs}
    return float(given["p"]) if given.get("train", given["training"]) else 0.0


_COLUMNS = 16  # a product with fewer columns takes MKL three times as long as its transpose with as few rows


def project(inputs: Tensor, weight: Tensor) -> Tensor:
    """Each model's own linear map: inputs [rows, models or 1, width] by weight [models, width, out]."""
    models, width, out = weight.shape
    if inputs.shape[1] == 1:
        return (inputs[:, 0] @ weight.transpose(0, 1).reshape(width, models * out)).view(-1, models, out)
    if out < _COLUMNS and not weight.is_cuda:
        return torch.bmm(weight.transpose(1, 2), inputs.permute(1, 2, 0)).permute(2, 0, 1)
    return torch.bmm(inputs.transpose(0, 1), weight).transpose(0, 1)


@torch.no_grad()
def stacked_rows(step: RowStep, roots: Sequence[nn.Module], sample: Sequence[Tensor]) -> RowFunction:
    """One function for all models: rows [rows, models, width] in and out, or [rows, 1, width] if models share them.

    Where the table of operations gives other numbers or fails, it is one model at a time. The traced modules of all
    models, ``roots``, are in evaluation mode; a few rows of each input, ``sample``, are there to compare both ways.
    """
    one_by_one = _OneByOne(step, roots)
    wanted = one_by_one(*sample)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # vmap warns where it is slow or unsure
            quick = _AllAtOnce(step, roots)
            found = quick(*sample)
    except (RuntimeError, TypeError, ValueError, KeyError, AttributeError, IndexError, Warning):
        return one_by_one
    scale = float(wanted.abs().max()) if wanted.numel() else 0.0
    same = found.expand(wanted.shape) if found.shape[1] == 1 else found
    right = found.shape[1:] == wanted.shape[1:]
    return quick if right and torch.allclose(same, wanted, rtol=0, atol=_CLOSE * max(scale, 1e-6)) else one_by_one


def stacked_modules(modules: Sequence[nn.Module], sample: Tensor) -> RowFunction:
    """The same module of all models, such as GIN's perceptron, as one function of rows."""
    step = traced_rows(modules[0])
    if step is None:  # what cannot be traced is one call
        graph = fx.Graph()
        graph.output(graph.call_module("", (graph.placeholder("rows"),)))
        step = RowStep(name="rows", inputs=("rows",), graph=graph, changes_inputs=True)
    return stacked_rows(step, modules, [sample])


def is_direct(function: RowFunction) -> bool:
    """Whether a function works on tensors alone, without a module whose weights are exchanged while it runs."""
    return bool(getattr(getattr(function, "__self__", function), "direct", True))


class _OneByOne:
    """Each model in turn; right for every operation."""

    direct = False

    def __init__(self, step: RowStep, roots: Sequence[nn.Module]) -> None:
        self.functions = [step.call(root) for root in roots]
        self.copies = step.changes_inputs
        self.shared = not _stacked_weights(step, roots[:1])

    def __call__(self, *inputs: Tensor) -> Tensor:
        models = max(one.shape[1] for one in inputs) if self.shared else len(self.functions)
        answers = []
        for number in range(models):
            own = [one[:, number if one.shape[1] > 1 else 0] for one in inputs]
            answers.append(self.functions[number](*[one.clone() if self.copies else one for one in own]))
        return torch.stack(answers, dim=1)


class _AllAtOnce:
    """All models by the table."""

    def __init__(self, step: RowStep, roots: Sequence[nn.Module]) -> None:
        operations = RowOperations(roots[0], _stacked_weights(step, roots))
        first = next(node for node in step.graph.nodes if node.op != "placeholder")
        alone = is_relu(first, roots[0]) and len(first.all_input_nodes[0].users) == 1
        self.run, self.after_relu = operations.compiled(step), operations.compiled(step, first) if alone else None
        self.direct = operations.direct

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self.run(*[one.transpose(0, 1) for one in inputs]).transpose(0, 1)  # type: ignore[no-any-return]

    def overwriting(self, rows: Tensor) -> Tensor:
        """The same for one input that nobody needs afterwards: a leading ReLU then writes into it."""
        if self.after_relu is None:
            return self(rows)
        return self.after_relu(rows.relu_().transpose(0, 1)).transpose(0, 1)  # type: ignore[no-any-return]


def is_relu(node: fx.Node, root: nn.Module) -> bool:
    """Whether a call of a value is a ReLU."""
    if node.op == "call_module":
        return type(root.get_submodule(str(node.target))) is nn.ReLU
    return node.target in (torch.relu, torch.relu_, functional.relu, functional.relu_, "relu", "relu_")


def _stacked_weights(step: RowStep, roots: Sequence[nn.Module]) -> dict[str, Tensor]:
    """All that the operations use of the models, by name, each [K, ...]."""
    found: dict[str, list[Tensor]] = {}
    for node in step.graph.nodes:
        path = str(node.target)
        for root in roots if path not in found else ():
            if node.op == "get_attr":
                found.setdefault(path, []).append(functools.reduce(getattr, path.split("."), root))  # type: ignore[arg-type]
            elif node.op == "call_module":
                part = root.get_submodule(path)
                for name, tensor in (*part.named_parameters(path), *part.named_buffers(path)):
                    found.setdefault(name, []).append(tensor)
    return {name: torch.stack([one.detach() for one in tensors]) for name, tensors in found.items()}
