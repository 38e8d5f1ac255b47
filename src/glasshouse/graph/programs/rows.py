"""The row-wise operations of several models at once: rows [rows, models, width], each model with its own weights.

Models can share a program if they are the same up to their weights.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call, stack_module_state, vmap
from torch_geometric.nn import BatchNorm, LayerNorm

from glasshouse.graph.programs.program import RowStep
from glasshouse.graph.programs.trace import works_in_place

RowFunction = Callable[..., Tensor]  # rows [rows, models or 1, width] of each input -> rows [rows, models or 1, width]

_SAMPLE = 5  # rows on which two ways to compute are compared
_CLOSE = 1e-4
_ENTRYWISE: tuple[Any, ...] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
    *(torch.relu, torch.tanh, torch.sigmoid, torch.exp, torch.add, torch.sub, torch.mul, torch.div, torch.abs),
    *(nn.functional.relu, nn.functional.elu, nn.functional.leaky_relu, nn.functional.gelu, nn.functional.silu),
    *(nn.functional.selu, nn.functional.softplus, nn.functional.relu6, torch.clamp, nn.functional.mish),
)
_ENTRYWISE_METHODS = ("relu", "tanh", "sigmoid", "exp", "add", "sub", "mul", "div", "abs", "clamp", "neg", "relu_")
_OVER_CLASSES = (nn.functional.log_softmax, nn.functional.softmax, torch.log_softmax, torch.softmax)
_NAMED = ("log_softmax", "softmax")
_ENTRYWISE_MODULES: tuple[type[nn.Module], ...] = (
    *(nn.ReLU, nn.ELU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.SELU, nn.Softplus, nn.ReLU6, nn.Tanh, nn.Sigmoid),
    *(nn.Identity, nn.Mish, nn.CELU, nn.Hardtanh),
)


@torch.no_grad()
def stacked_rows(step: RowStep, roots: Sequence[nn.Module], sample: Sequence[Tensor]) -> RowFunction:
    """One function for all models: rows [rows, models, width] in and out, or [rows, 1, width] if models share them.

    Linear maps, norms and activations act on all models in one call. Other operations run through ``torch.func.vmap``,
    or, where that gives other numbers or fails, one model at a time.

    Args:
        step: the operations.
        roots: the traced modules (`glasshouse.graph.programs.trace.Asked`) of all models.
        sample: for each input a few rows [rows, models or 1, width], to compare ways to compute.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> from glasshouse.graph.programs.trace import Asked, traced
        >>> models = [GCN(3, 4, num_layers=2, out_channels=2).eval() for _ in range(5)]
        >>> step = traced(models[0]).steps[1]
        >>> stacked_rows(step, [Asked(model) for model in models], [torch.randn(7, 5, 4)])(torch.randn(9, 5, 4)).shape
        torch.Size([9, 5, 4])
    """
    one_by_one = _OneByOne(step, roots)
    wanted = one_by_one(*sample)
    for make in (_Direct, _Mapped):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # vmap warns where it is slow or unsure
                quick = make(step, roots)
                found = quick(*sample)
        except (_Unknown, RuntimeError, TypeError, ValueError, Warning):
            continue
        scale = float(wanted.detach().abs().max()) if wanted.numel() else 0.0
        same = found.expand(wanted.shape) if found.shape[1] == 1 else found
        if found.shape[1:] == wanted.shape[1:] and torch.allclose(same, wanted, rtol=0, atol=_CLOSE * max(scale, 1e-6)):
            return quick
    return one_by_one


def stacked_modules(modules: Sequence[nn.Module], sample: Tensor) -> RowFunction:
    """The same module of all models, such as GIN's perceptron, as one function of rows.

    Example:
        >>> modules = [nn.Sequential(nn.ReLU(), nn.Linear(4, 2)) for _ in range(3)]
        >>> stacked_modules(modules, torch.randn(5, 3, 4))(torch.randn(8, 3, 4)).shape
        torch.Size([8, 3, 2])
    """
    try:
        graph = fx.Tracer().trace(modules[0])
        roots = list(modules)
    except Exception:  # what cannot be traced is one call
        graph = fx.Graph()
        graph.output(graph.call_module("0", (graph.placeholder("rows"),)))
        roots = [nn.ModuleList([module]) for module in modules]
    changes = any(works_in_place(node, roots[0]) for node in graph.nodes)
    return stacked_rows(RowStep(name="rows", inputs=("rows",), graph=graph, changes_inputs=changes), roots, [sample])


def is_direct(function: RowFunction) -> bool:
    """Whether a function works on tensors alone, without a module whose weights are exchanged while it runs.

    Example:
        >>> is_direct(torch.relu)
        True
    """
    owner = getattr(function, "__self__", function)
    return not isinstance(owner, _Mapped | _OneByOne)


class _Unknown(Exception):  # noqa: N818 (it is an answer, not a fault)
    """An operation that has no form for all models at once."""


class _OneByOne:
    """Each model in turn; right for every operation."""

    def __init__(self, step: RowStep, roots: Sequence[nn.Module]) -> None:
        self.functions = [step.call(root) for root in roots]
        self.copies = step.changes_inputs
        self.shared = not any(_has_weights(node, roots[0]) for node in step.graph.nodes)

    def __call__(self, *inputs: Tensor) -> Tensor:
        models = max(one.shape[1] for one in inputs)
        models = models if self.shared else len(self.functions)
        answers = []
        for number in range(models):
            own = [one[:, number if one.shape[1] > 1 else 0] for one in inputs]
            answers.append(self.functions[number](*[one.clone() if self.copies else one for one in own]))
        return torch.stack(answers, dim=1)


def _has_weights(node: fx.Node, root: nn.Module) -> bool:
    """Whether a call uses something that each model has of its own."""
    if node.op == "call_module":
        return any(True for _ in root.get_submodule(str(node.target)).state_dict())
    return node.op == "get_attr"


class _Mapped:
    """All models through ``vmap``, their weights stacked."""

    def __init__(self, step: RowStep, roots: Sequence[nn.Module]) -> None:
        functions = [step.function(root).eval() for root in roots]
        self.function, self.copies = functions[0], step.changes_inputs
        parameters, buffers = stack_module_state(functions)
        self.weights = {name: value.detach() for name, value in {**parameters, **buffers}.items()}

    def __call__(self, *inputs: Tensor) -> Tensor:
        shared = [one.shape[1] == 1 for one in inputs]
        given = [one.squeeze(1) if alone else one for one, alone in zip(inputs, shared, strict=True)]
        given = [one.clone() if self.copies else one for one in given]
        if all(shared) and not self.weights:
            return self.function(*given).unsqueeze(1)  # type: ignore[no-any-return]
        places = tuple(None if alone else 1 for alone in shared)

        def ask(weights: dict[str, Tensor], *rows: Tensor) -> Any:
            return functional_call(self.function, weights, rows)

        if not self.weights:
            return vmap(self.function, in_dims=places, out_dims=1)(*given)  # type: ignore[no-any-return]
        return vmap(ask, in_dims=(0, *places), out_dims=1)(self.weights, *given)  # type: ignore[no-any-return]


class _Direct:
    """All models in one call per operation, for those that are known."""

    def __init__(self, step: RowStep, roots: Sequence[nn.Module]) -> None:
        if step.changes_inputs and any(node.op == "call_function" for node in step.graph.nodes):
            raise _Unknown
        self.calls: list[tuple[fx.Node, Callable[..., Tensor]]] = []
        for node in step.graph.nodes:
            if node.op not in ("placeholder", "output"):
                self.calls.append((node, _operation(node, roots)))
        self.inputs = [node for node in step.graph.nodes if node.op == "placeholder"]
        (self.output,) = next(iter(reversed(step.graph.nodes))).args

    def __call__(self, *inputs: Tensor) -> Tensor:
        return self._from(self.calls, dict(zip(self.inputs, inputs, strict=True)))

    def overwriting(self, rows: Tensor) -> Tensor:
        """The same for one input that nobody needs afterwards: a leading ReLU then writes into it."""
        (node, call), *rest = self.calls
        if not _is_relu(call):
            return self(rows)
        return self._from(rest, {self.inputs[0]: rows, node: rows.relu_()})

    def _from(self, calls: Sequence[tuple[fx.Node, Callable[..., Tensor]]], values: dict[fx.Node, Tensor]) -> Tensor:
        for node, call in calls:
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = call(*args, **kwargs)
        return values[self.output]


def _is_relu(call: Callable[..., Tensor]) -> bool:
    return call in (torch.relu, nn.functional.relu, _relu) or type(call) is nn.ReLU


def _relu(rows: Tensor) -> Tensor:
    return rows.relu()


def _over_classes(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A softmax of each row; an axis that is the last one of [rows, width] is the last one of stacked rows too."""

    def apply(rows: Tensor, dim: int | None = None, *_: Any, **options: Any) -> Tensor:
        if dim not in (1, -1) or options.get("dtype") is not None:
            raise _Unknown
        return function(rows, dim=-1)

    return apply


def _operation(node: fx.Node, roots: Sequence[nn.Module]) -> Callable[..., Any]:
    """What a call does to rows [rows, models, width]."""
    if node.op == "call_function" and node.target in _ENTRYWISE and not node.kwargs.get("inplace"):
        return node.target  # type: ignore[return-value]
    if node.op == "call_method" and node.target in _ENTRYWISE_METHODS:
        name = str(node.target).removesuffix("_")
        if name == "relu":
            return _relu
        return lambda rows, *args, **kwargs: getattr(rows, name)(*args, **kwargs)
    if (node.op == "call_function" and node.target in _OVER_CLASSES) or (
        node.op == "call_method" and node.target in _NAMED
    ):
        return _over_classes(getattr(torch, str(getattr(node.target, "__name__", node.target))))
    if node.op == "call_module":
        layers: list[Any] = [root.get_submodule(str(node.target)) for root in roots]
        for kinds, make in _MODULES:
            if type(layers[0]) in kinds:
                return make(layers)
    raise _Unknown


def _activation(layers: Sequence[Any]) -> Callable[..., Tensor]:
    if not getattr(layers[0], "inplace", False):
        return layers[0]  # type: ignore[no-any-return]
    return lambda rows: layers[0](rows.clone())


def _prelu(layers: Sequence[nn.PReLU]) -> Callable[..., Tensor]:
    slope = torch.stack([layer.weight.detach() for layer in layers])  # [models, 1 or width]
    return lambda rows: torch.where(rows > 0, rows, slope * rows)


def _stack(tensors: Sequence[Tensor | None]) -> Tensor | None:
    return None if tensors[0] is None else torch.stack([tensor.detach() for tensor in tensors if tensor is not None])


def _linear(layers: Sequence[nn.Linear]) -> Callable[..., Tensor]:
    weight = torch.stack([layer.weight.detach().T for layer in layers]).contiguous()  # [models, width, out]
    bias = _stack([layer.bias for layer in layers])

    def apply(rows: Tensor) -> Tensor:
        if rows.shape[1] == 1:
            models, width, out = weight.shape
            mapped = (rows[:, 0] @ weight.transpose(0, 1).reshape(width, models * out)).view(-1, models, out)
        else:
            mapped = torch.bmm(rows.transpose(0, 1), weight).transpose(0, 1)
        return mapped if bias is None else mapped + bias

    return apply


def _batch_norm(layers: Sequence[Any]) -> Callable[..., Tensor]:
    """In evaluation it scales and shifts every column by kept statistics."""
    plain: list[nn.BatchNorm1d] = [getattr(layer, "module", layer) for layer in layers]
    if any(layer.running_mean is None or layer.training for layer in plain):
        raise _Unknown
    scale = torch.stack([(layer.running_var.detach() + layer.eps).rsqrt() for layer in plain])  # type: ignore[union-attr]
    mean = torch.stack([layer.running_mean.detach() for layer in plain])  # type: ignore[union-attr]
    weight, shift = _stack([layer.weight for layer in plain]), _stack([layer.bias for layer in plain])
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if shift is None else shift - mean * scale
    return lambda rows, *_, **__: torch.addcmul(shift, rows, scale)


def _layer_norm(layers: Sequence[Any]) -> Callable[..., Tensor]:
    if getattr(layers[0], "mode", "node") != "node" or len(getattr(layers[0], "normalized_shape", (1,))) != 1:
        raise _Unknown
    weight, bias, eps = _stack([one.weight for one in layers]), _stack([one.bias for one in layers]), layers[0].eps

    def apply(rows: Tensor, *_: Any, **__: Any) -> Tensor:
        rows = nn.functional.layer_norm(rows, rows.shape[-1:], eps=eps)
        rows = rows if weight is None else rows * weight
        return rows if bias is None else rows + bias

    return apply


_MODULES: tuple[tuple[tuple[type, ...], Callable[[Sequence[Any]], Callable[..., Tensor]]], ...] = (
    (_ENTRYWISE_MODULES, _activation),
    ((nn.PReLU,), _prelu),
    ((nn.Linear,), _linear),
    ((nn.BatchNorm1d, BatchNorm), _batch_norm),
    ((nn.LayerNorm, LayerNorm), _layer_norm),
)


_PLAIN = (bool, int, float, str, type(None))


def same_settings(models: Sequence[nn.Module]) -> bool:
    """Whether models have the same parts with the same settings.

    Example:
        >>> same_settings([nn.Dropout(0.5), nn.Dropout(0.5)]), same_settings([nn.Dropout(0.5), nn.Dropout(0.6)])
        (True, False)
    """
    return len({settings_of(model) for model in models}) <= 1


def settings_of(model: nn.Module) -> Hashable:
    """The parts of a model by their paths, with their types and settings; weights are not among them.

    Example:
        >>> settings_of(nn.Linear(2, 3)) == settings_of(nn.Linear(2, 3))
        True
    """
    return tuple((path, type(part), _attributes(part)) for path, part in model.named_modules())


def _attributes(part: nn.Module) -> Hashable:
    return tuple(sorted((name, _setting(value)) for name, value in vars(part).items() if not name.startswith("_")))


def _setting(value: Any) -> str:
    """Numbers, words and containers of them as they are; of anything else, its name or type."""
    if isinstance(value, list | tuple | set):
        return f"{type(value).__name__}({', '.join(map(_setting, value))})"
    if isinstance(value, dict):
        return repr({str(name): _setting(one) for name, one in value.items()})
    return repr(value) if isinstance(value, _PLAIN) else str(getattr(value, "__qualname__", type(value)))
