"""From a module to its program: ``torch.fx`` records the calls, with every layer, norm and activation as one call.

The calls are then divided into steps: message passing, and operations on rows between two of them.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch_geometric.data import Data
from torch_geometric.nn import JumpingKnowledge, MessagePassing

from glasshouse.core.errors import first_line
from glasshouse.graph.programs.program import MessageStep, NoProgram, Program, RowStep, Step, Value

_ABOUT = ("size", "dim", "numel", "new_zeros", "new_ones")  # methods that ask about a tensor or make one like it
_ABOUT_FUNCTIONS = (torch.zeros_like, torch.ones_like)
ABOUT_ATTRIBUTES = ("shape", "dtype", "device", "ndim")
_IDENTITIES = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_DROPOUTS = (nn.functional.dropout, nn.functional.alpha_dropout, nn.functional.feature_alpha_dropout)
_IN_PLACE = (operator.iadd, operator.isub, operator.imul, operator.itruediv)
_NODES, _EDGES, _INDEX, _CONSTANT = "nodes", "edges", "edge_index", "constant"
_KINDS = {"x": _NODES, "edge_index": _INDEX, "edge_weight": _EDGES, "edge_attr": _EDGES, "edge_type": _EDGES}


def _works_in_place(node: fx.Node, root: nn.Module) -> bool:
    """Whether a call changes one of its inputs, as ``x.relu_()`` or ``x += y``."""
    if node.op == "call_module":
        return bool(getattr(root.get_submodule(str(node.target)), "inplace", False))
    if node.op == "call_method":
        return str(node.target).endswith("_") and not str(node.target).endswith("__")
    if node.op != "call_function":
        return False
    name = str(getattr(node.target, "__name__", ""))
    by_name = name.endswith("_") and not name.endswith("__")
    return node.target in _IN_PLACE or by_name or bool(node.kwargs.get("inplace"))


@dataclass(kw_only=True)
class _Rows:
    """A row-wise step while it grows."""

    nodes: list[fx.Node]
    inputs: list[fx.Node]
    on: str
    in_place: bool = False


@dataclass(kw_only=True)
class _Partition:
    root: nn.Module
    kinds: dict[fx.Node, str] = field(default_factory=dict)
    parts: list[_Rows | MessageStep] = field(default_factory=list)
    made: dict[fx.Node, _Rows] = field(default_factory=dict)  # the row step whose last value is this

    def add(self, node: fx.Node) -> None:
        """Take the next call."""
        if node.op == "placeholder":
            self.kinds[node] = _KINDS[node.name]
        elif node.op == "output":
            return
        elif node.op == "call_module" and any(self.kinds[given] == _INDEX for given in node.all_input_nodes):
            self.kinds[node] = _NODES
            self.parts.append(self._message(node))
        else:
            self._add_rows(node)

    def _values(self, node: fx.Node) -> list[fx.Node]:
        """The values of nodes or edges that a call depends on, through constants and questions about tensors."""
        found: dict[fx.Node, None] = {}
        for given in node.all_input_nodes:
            if self.inlined(given):
                found.update(dict.fromkeys(self._values(given)))
            elif self.kinds[given] != _CONSTANT:
                found[given] = None
        return list(found)

    def inlined(self, node: fx.Node) -> bool:
        """Whether a call is repeated in each step that needs it: weights, constants, and sizes of tensors."""
        if node.op == "get_attr":
            return True
        if node.op == "placeholder":
            return False
        if self.kinds.get(node) == _CONSTANT:
            return True
        about = node.op == "call_method" and node.target in _ABOUT
        return about or (node.op == "call_function" and (node.target in _ABOUT_FUNCTIONS or self._describes(node)))

    def _describes(self, node: fx.Node) -> bool:
        """``x.shape``, ``x.shape[0]``, ``x.size()[0]`` or ``x.dtype``."""
        if node.target is getattr:
            return node.args[1] in ABOUT_ATTRIBUTES
        if node.target is not operator.getitem or not isinstance(node.args[0], fx.Node):
            return False
        return node.args[0].target == "size" or (node.args[0].target is getattr and node.args[0].args[1] == "shape")

    def _add_rows(self, node: fx.Node) -> None:
        if node.op == "get_attr":
            self.kinds[node] = _CONSTANT
            return
        values = self._values(node)
        kinds = {self.kinds[value] for value in values}
        if _INDEX in kinds or len(kinds) > 1:
            raise NoProgram(f"it mixes values of nodes and edges outside a layer ({_name(node)})")
        self.kinds[node] = kinds.pop() if kinds else _CONSTANT
        if self.inlined(node):
            return
        in_place = _works_in_place(node, self.root)
        before = self.made.get(values[0]) if len(values) == 1 else None
        if before is not None and set(values[0].users) == {node}:
            before.nodes.append(node)
            del self.made[values[0]]
        else:
            before = _Rows(nodes=[node], inputs=values, on=self.kinds[node])
            self.parts.append(before)
        before.in_place |= in_place
        self.made[node] = before

    def _message(self, node: fx.Node) -> MessageStep:
        given = node.all_input_nodes
        constant = [one for one in given if self.inlined(one)]
        if constant:
            raise NoProgram(f"it gives a layer a value that is not one per node or edge ({_name(constant[0])})")
        derived = [one for one in given if self.kinds[one] == _INDEX and one.op != "placeholder"]
        if derived:
            raise NoProgram(f"it changes edge_index by itself ({_name(derived[0])})")
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), _value)
        return MessageStep(
            name=node.name,
            module=str(node.target),
            inputs=tuple(one.name for one in given if self.kinds[one] == _NODES),
            edges=tuple(one.name for one in given if self.kinds[one] == _EDGES),
            args=args,
            kwargs=kwargs,
        )

    def finished(self, part: _Rows) -> RowStep:
        """A row step with its own graph."""
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {value: graph.placeholder(value.name) for value in part.inputs}

        def copied(node: fx.Node) -> fx.Node:
            if node not in copies:
                copies[node] = graph.node_copy(node, copied)
            return copies[node]

        for node in part.nodes:
            copied(node)
        graph.output(copies[part.nodes[-1]])
        return RowStep(
            name=part.nodes[-1].name,
            inputs=tuple(value.name for value in part.inputs),
            graph=graph,
            on="edges" if part.on == _EDGES else "nodes",
            changes_inputs=part.in_place,
        )


def _value(node: fx.Node) -> Any:
    return Value(node.name)


def _steps_of(graph: fx.Graph, root: nn.Module, answer: fx.Node) -> tuple[tuple[Step, ...], str]:
    """The steps of a traced graph, and the name of the value that holds the answers."""
    partition = _Partition(root=root)
    for node in graph.nodes:
        partition.add(node)
    if partition.kinds.get(answer) != _NODES:
        raise NoProgram("its answers do not depend on the nodes")
    steps = [part if isinstance(part, MessageStep) else partition.finished(part) for part in partition.parts]
    return _needed(steps, answer.name), answer.name


def _needed(steps: list[Step], output: str) -> tuple[Step, ...]:
    """The steps that the answers depend on; constants of a dict, say, are left out."""
    wanted, kept = {output}, []
    for step in reversed(steps):
        if step.name in wanted:
            wanted.update(step.inputs, getattr(step, "edges", ()))
            kept.append(step)
    return tuple(reversed(kept))


_WITHIN = "torch_geometric.nn."  # its norms, aggregations and linear maps are one call each; its models are looked into
_LOOKED_INTO = ("torch_geometric.nn.models.", "torch_geometric.nn.sequential")
_NAMES = ("logits", "probabilities", "probs", "prediction_logits")  # as `glasshouse.core.outputs.unwrapped` reads them


class Asked(nn.Module):
    """A model with one way to call it, whatever its own arguments are; the root of every trace."""

    def __init__(
        self, model: nn.Module, *, takes_data: bool = False, keywords: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.model = getattr(model, "_orig_mod", model)  # what torch.compile wraps does the same
        self.takes_data = takes_data  # whether it wants one `Data`
        self.keywords = dict(keywords or {})  # the edge values that its arguments get, by the names of both

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
        edge_type: Tensor | None = None,
    ) -> Any:
        """What the model answers."""
        values = {"edge_weight": edge_weight, "edge_attr": edge_attr, "edge_type": edge_type}
        if self.takes_data:
            given = {name: value for name, value in values.items() if value is not None}
            return self.model(Data(x=x, edge_index=edge_index, **given))
        return self.model(x, edge_index, **{name: values[place] for name, place in self.keywords.items()})


class _Tracer(fx.Tracer):
    """Looks into users' own modules, and records layers, norms and activations as single calls."""

    def __init__(self, whole: frozenset[str]) -> None:
        super().__init__()
        self.whole = whole  # paths of modules that are taken as one call

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one call."""
        if isinstance(m, MessagePassing | JumpingKnowledge) or module_qualified_name in self.whole:
            return True
        home = type(m).__module__ + "."
        if home.startswith(_WITHIN):
            return not home.startswith(_LOOKED_INTO) and not isinstance(m, nn.Sequential | nn.ModuleList)
        return bool(super().is_leaf_module(m, module_qualified_name))


def traced(model: nn.Module, *, takes_data: bool = False, keywords: Mapping[str, str] | None = None) -> Program:
    """The program of a module in its present mode, training or evaluation; `NoProgram` says why there is none.

    Nothing is checked here: that rows are rows and how far layers see is measured by
    `glasshouse.graph.programs.reach.checked`.

    The module may be an `Asked` one; ``takes_data`` and ``keywords`` are those of `Asked`.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> traced(GCN(3, 4, num_layers=2, out_channels=2).eval()).hops
        2
    """
    root = model if isinstance(model, Asked) else Asked(model, takes_data=takes_data, keywords=keywords)
    whole: frozenset[str] = frozenset()
    while True:  # each turn takes one more module as a single call, so it ends
        try:
            with torch.no_grad():
                graph = _Tracer(whole).trace(root)
            _tidy(graph, root)
            inside = _own_message_passing(graph, whole)
        except NoProgram:
            raise
        except Exception as error:
            inside = _where(error, root, whole)
            if inside is None:
                raise NoProgram(f"its forward pass cannot be traced ({first_line(error)})") from error
        if inside is None:
            break
        whole |= {inside}
    steps, output = _steps_of(graph, root, _answer(graph))
    return Program(steps=steps, output=output, signature=_signature(steps, output, root))


class _Called(nn.Module):
    """A module of single rows with one argument, whatever others it may take."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, rows: Tensor) -> Any:
        """What it makes of the rows."""
        return self.module(rows)


def traced_rows(module: nn.Module) -> RowStep | None:
    """A module of single rows, such as GIN's perceptron, as operations named within it; None if it cannot be traced."""
    root = _Called(module)
    try:
        graph = _Tracer(frozenset()).trace(root)
        _tidy(graph, root)
    except Exception:
        return None
    changes = any(_works_in_place(node, root) for node in graph.nodes)
    for node in graph.nodes:
        if node.op in ("call_module", "get_attr"):
            node.target = str(node.target).removeprefix("module").removeprefix(".")
    return RowStep(name="rows", inputs=("rows",), graph=graph, changes_inputs=changes)


def _where(error: Exception, root: Asked, whole: frozenset[str]) -> str | None:
    """The innermost module of the user's in whose forward pass the tracer failed, if it can be one call."""
    paths = {module: path for path, module in root.named_modules() if path not in ("", "model")}
    place, found = error.__traceback__, None
    while place is not None:
        owner = place.tb_frame.f_locals.get("self")
        path = paths.get(owner) if isinstance(owner, nn.Module) else None
        found = path or found
        place = place.tb_next
    return None if found in whole else found


def _tidy(graph: fx.Graph, root: nn.Module) -> None:
    """Leave out calls that change nothing or that nobody reads; after ``h.relu_()``, let calls read its result."""
    seen: set[fx.Node] = set()
    for node in graph.nodes:
        seen.add(node)
        if _works_in_place(node, root) and node.args and isinstance(node.args[0], fx.Node):
            node.args[0].replace_all_uses_with(node, delete_user_cb=lambda user: user not in seen)
    for node in graph.nodes:
        if _changes_nothing(node, root):
            node.replace_all_uses_with(node.all_input_nodes[0])
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))


def _changes_nothing(node: fx.Node, root: nn.Module) -> bool:
    """Dropout in evaluation, and Identity."""
    if len(node.all_input_nodes) != 1:
        return False
    if node.op == "call_module":
        module = root.get_submodule(str(node.target))
        return isinstance(module, nn.Identity) or (isinstance(module, _IDENTITIES) and not module.training)
    if node.op != "call_function" or node.target not in _DROPOUTS:
        return False
    return node.kwargs.get("training", node.args[2] if len(node.args) > 2 else True) is False


def _answer(graph: fx.Graph) -> fx.Node:
    """The value that holds the answers; in a dict or tuple it is found as in a real answer."""
    (returned,) = next(iter(reversed(graph.nodes))).args
    if isinstance(returned, Mapping):
        named = [returned[name] for name in _NAMES if returned.get(name) is not None]
        values = [value for value in returned.values() if isinstance(value, fx.Node)]
        returned = named[0] if named else values[0] if len(values) == 1 else None
    if isinstance(returned, tuple | list) and returned:
        returned = returned[0]
    if not isinstance(returned, fx.Node):
        raise NoProgram("its answer is not made of one tensor")
    return returned


def _own_message_passing(graph: fx.Graph, whole: frozenset[str]) -> str | None:
    """The innermost module that uses ``edge_index`` by operations of its own; it is then taken as one layer."""
    index = next(node for node in graph.nodes if node.op == "placeholder" and node.name == "edge_index")
    for node in index.users:
        if node.op == "call_module":
            continue
        within = [path for path in node.meta.get("nn_module_stack", {}) if path not in ("", "model")]
        if not within or within[-1] in whole:
            raise NoProgram(f"it uses edge_index outside a layer ({_name(node)})")
        return str(within[-1])
    return None


def _name(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _signature(steps: Sequence[Step], output: str, root: nn.Module) -> tuple[object, ...]:
    """The calls, and every setting of the modules that they call; weights are not part of it, nor is idle dropout."""
    calls: list[object] = [output]
    used: set[str] = set()
    for step in steps:
        if isinstance(step, MessageStep):
            calls.append((step.name, step.module, str(step.args), str(step.kwargs)))
            used.add(step.module)
            continue
        nodes = [(node.op, _name(node), str(node.args), str(node.kwargs)) for node in step.graph.nodes]
        calls.append((step.name, step.inputs, tuple(nodes)))
        used |= {str(node.target) for node in step.graph.nodes if node.op == "call_module"}
    return (tuple(calls), tuple((path, settings_of(root.get_submodule(path))) for path in sorted(used)))


def settings_of(model: nn.Module) -> Hashable:
    """The parts of a model by their paths, with their types and settings; weights are not among them."""

    def settings(part: nn.Module) -> Hashable:
        return tuple(sorted((name, _setting(value)) for name, value in vars(part).items() if not name.startswith("_")))

    return tuple((path, _setting(type(part)), settings(part)) for path, part in model.named_modules())


def _setting(value: Any) -> str:
    """Numbers, words and containers of them as they are; of anything else, its name or type."""
    if isinstance(value, list | tuple | set):
        return f"{type(value).__name__}({', '.join(map(_setting, value))})"
    if isinstance(value, dict):
        return repr({str(name): _setting(one) for name, one in value.items()})
    if isinstance(value, bool | int | float | str | None):
        return repr(value)
    return str(getattr(value, "__qualname__", type(value)))
