"""From a module to its program: ``torch.fx`` records the calls, with every layer, norm and activation as one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch_geometric.data import Data
from torch_geometric.nn import JumpingKnowledge, MessagePassing

from glasshouse.graph.programs.partition import steps_of, works_in_place
from glasshouse.graph.programs.program import MessageStep, NoProgram, Program, Step

__all__ = ["Asked", "traced"]

_WITHIN = "torch_geometric.nn."  # its norms, aggregations and linear maps are one call each; its models are looked into
_LOOKED_INTO = ("torch_geometric.nn.models.", "torch_geometric.nn.sequential")
_NAMES = ("logits", "probabilities", "probs", "prediction_logits")  # as `glasshouse.model_outputs.unwrapped` reads them


class Asked(nn.Module):
    """A model with one way to call it, whatever its own arguments are; the root of every trace.

    Args:
        model: the user's module.
        takes_data: whether it wants one `Data`.
        keywords: names of its arguments and the edge values that they get, such as ``{"edge_weight": "edge_weight"}``.

    Example:
        >>> Asked(nn.Linear(2, 2), takes_data=False)
        Asked(
          (model): Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(
        self, model: nn.Module, *, takes_data: bool = False, keywords: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.model = getattr(model, "_orig_mod", model)  # what torch.compile wraps does the same
        self.takes_data = takes_data
        self.keywords = dict(keywords or {})

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, edge_attr: Tensor | None) -> Any:
        """What the model answers."""
        values = {"edge_weight": edge_weight, "edge_attr": edge_attr}
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
    `glasshouse.graph.programs.checking.checked`.

    Args:
        model: any module.
        takes_data: whether it is called with one `Data`.
        keywords: see `Asked`.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> traced(GCN(3, 4, num_layers=2, out_channels=2).eval()).hops
        2
    """
    root = Asked(model, takes_data=takes_data, keywords=keywords)
    whole: frozenset[str] = frozenset()
    while True:  # each turn takes one more module as a single call, so it ends
        try:
            with torch.no_grad():
                graph = _Tracer(whole).trace(root)
            _follow_changes_in_place(graph, root)
            graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
            inside = _own_message_passing(root, graph, whole)
        except NoProgram:
            raise
        except Exception as error:
            inside = _where(error, root, whole)
            if inside is None:
                line = (str(error).splitlines() or [""])[0][:160]
                raise NoProgram(f"its forward pass cannot be traced ({type(error).__name__}: {line})") from error
        if inside is None:
            break
        whole |= {inside}
    steps, output = steps_of(graph, root, _answer(graph))
    return Program(steps=steps, output=output, signature=_signature(steps, output, root))


def _where(error: Exception, root: Asked, whole: frozenset[str]) -> str | None:
    """The innermost module of the user's in whose forward pass the tracer failed, if it can be one call."""
    paths = {id(module): path for path, module in root.named_modules() if path not in ("", "model")}
    place, found = error.__traceback__, None
    while place is not None:
        owner = place.tb_frame.f_locals.get("self")
        path = paths.get(id(owner)) if isinstance(owner, nn.Module) else None
        found = path or found
        place = place.tb_next
    return None if found in whole else found


def _follow_changes_in_place(graph: fx.Graph, root: Asked) -> None:
    """Let calls after ``h.relu_()`` read its result instead of ``h``; the calls before it are not affected."""
    seen: set[fx.Node] = set()
    for node in graph.nodes:
        seen.add(node)
        if works_in_place(node, root) and node.args and isinstance(node.args[0], fx.Node):
            node.args[0].replace_all_uses_with(node, delete_user_cb=lambda user: user not in seen)


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


def _own_message_passing(root: Asked, graph: fx.Graph, whole: frozenset[str]) -> str | None:
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
    settings = tuple(
        (path, name, type(part).__qualname__, _settings(part))
        for path in sorted(used)
        for name, part in root.get_submodule(path).named_modules()
    )
    return (tuple(calls), settings)


def _settings(module: nn.Module) -> tuple[object, ...]:
    """Plain attributes of a module, such as a slope or the number of heads; training mode is not a setting."""
    plain = (bool, int, float, str, type(None))
    return tuple(
        (name, value)
        for name, value in sorted(vars(module).items())
        if name != "training"
        and not name.startswith("_")
        and (isinstance(value, plain) or (isinstance(value, tuple) and all(isinstance(one, plain) for one in value)))
    )
