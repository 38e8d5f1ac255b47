"""From any module to the two convolutions with a ReLU between them that the kernels understand, if it is that."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch_geometric.nn import BatchNorm, GCNConv, SAGEConv

from glasshouse.graph.layers.layer_type import is_altered
from glasshouse.graph.models.networks import GNN
from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.programs.program import MessageStep, Program, RowStep, Value, arguments_of
from glasshouse.graph.programs.rows import is_relu

_LAYERS = 2
_RELU, _LOG_SOFTMAX = "relu", "log_softmax"
_LOG_SOFTMAXES = (torch.log_softmax, nn.functional.log_softmax, torch.special.log_softmax)
_LAST_AXIS = (1, -1)  # of answers [n, classes]

_Operation = str | nn.BatchNorm1d


def reduced(model: Profiled) -> list[Any] | None:
    """The two convolutions to which a model reduces, or None; the model itself is not changed.

    Dropout is gone in evaluation. A BatchNorm is folded into a copy of the GCNConv or SAGEConv before it; GATConv's
    attention depends on its weights, so nothing is folded into it. A log_softmax at the end changes no loss.

    Args:
        model: our `GNN`, or a module in evaluation mode.

    Example:
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCN
        >>> from glasshouse.graph.models.profile import profile_models
        >>> model = GCN(3, 8, num_layers=2, out_channels=2, norm="batch").eval()
        >>> data = Data(x=torch.randn(3, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> reduced(profile_models([model], data)[0])
        [GCNConv(3, 8), GCNConv(8, 2)]
    """
    if type(model.model) is GNN:  # nothing to look for
        layers = list(model.model.convolutions)
        return layers if len(layers) == _LAYERS and not any(map(is_altered, layers)) else None
    profile = model.profile
    program = profile.program
    if program is None or profile.probabilities or profile.hops != _LAYERS or program.edge_values:
        return None
    return _read(program, model.root)


def _read(program: Program, root: nn.Module) -> list[Any] | None:
    """The convolutions of a program that is a chain of them and of operations that reduce."""
    layers: list[Any] = []
    after: list[list[_Operation]] = []  # the operations that follow each layer
    value = "x"
    for step in program.steps:
        if step.inputs != (value,):
            return None
        if isinstance(step, MessageStep):
            layer: Any = root.get_submodule(step.module)
            plain = {"x": Value(value), "edge_index": Value("edge_index")}
            if arguments_of(layer, step) != plain or is_altered(layer):
                return None
            layers.append(layer)
            after.append([])
        else:
            found = _operations(step, root)
            if found is None or not layers:
                return None
            after[-1] += found
        value = step.name
    if value != program.output or len(layers) != _LAYERS:
        return None
    for ends, place in (([_RELU], 0), ([_LOG_SOFTMAX], 1)):
        norms = [one for one in after[place] if isinstance(one, nn.BatchNorm1d)]
        rest = after[place][len(norms) :]
        if after[place][: len(norms)] != norms or (rest != ends and (place == 0 or rest)):
            return None
        if norms and not _folds(layers[place]):
            return None
        layers[place] = _folded(layers[place], norms)
    return layers


def _operations(step: RowStep, root: nn.Module) -> list[_Operation] | None:
    """The operations of a step in order, if each is a ReLU, a BatchNorm or a log_softmax of the one before."""
    found: list[_Operation] = []
    last: fx.Node | None = None
    for node in step.graph.nodes:
        if node.op == "placeholder" and last is None:
            last = node
            continue
        if node.op == "output":
            return found if node.args[0] is last else None
        operation = _operation(node, root) if node.all_input_nodes == [last] and node.args[:1] == (last,) else None
        if operation is None:
            return None
        found.append(operation)
        last = node
    return None


def _operation(node: fx.Node, root: nn.Module) -> _Operation | None:
    if is_relu(node, root):
        return _RELU
    if node.op == "call_module":
        module = root.get_submodule(str(node.target))
        if type(module) is nn.LogSoftmax and module.dim in _LAST_AXIS:
            return _LOG_SOFTMAX
        norm = module.module if type(module) is BatchNorm else module
        # without kept statistics it uses those of the rows that it is given
        return norm if type(norm) is nn.BatchNorm1d and norm.running_mean is not None and not norm.training else None
    given = [*node.args[1:], *(value for name, value in node.kwargs.items() if name == "dim")]
    named = node.op == "call_method" and node.target == _LOG_SOFTMAX
    if (named or node.target in _LOG_SOFTMAXES) and given[:1] and given[0] in _LAST_AXIS:
        return _LOG_SOFTMAX if node.kwargs.get("dtype") is None and len(node.args) < 3 else None
    return None


def _folds(layer: Any) -> bool:
    """Whether a layer's outputs are linear in its last weights, with nothing after them."""
    return type(layer) is GCNConv or (type(layer) is SAGEConv and not layer.normalize)


def _folded(layer: Any, norms: Sequence[nn.BatchNorm1d]) -> Any:
    """A copy of the layer that also does what the norms after it do; the layer itself if there are none."""
    for norm in norms:
        scale, shift = _affine(norm)
        layer = copy.deepcopy(layer)
        maps = [layer.lin] if type(layer) is GCNConv else [layer.lin_l, *([layer.lin_r] if layer.root_weight else [])]
        for one in maps:
            one.weight = _parameter(one.weight.double() * scale.unsqueeze(1), like=one.weight)
        holder = layer if type(layer) is GCNConv else layer.lin_l
        bias = shift if holder.bias is None else holder.bias.double() * scale + shift
        holder.bias = _parameter(bias, like=maps[0].weight)
    return layer


def _affine(norm: Any) -> tuple[Tensor, Tensor]:
    """Scale and shift [width] of a BatchNorm with kept statistics, in double precision."""
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    scale = scale if norm.weight is None else scale * norm.weight.double()
    shift = -norm.running_mean.double() * scale
    return scale.detach(), (shift if norm.bias is None else shift + norm.bias.double()).detach()


def _parameter(value: Tensor, *, like: Tensor) -> nn.Parameter:
    return nn.Parameter(value.detach().to(like.dtype), requires_grad=False)
