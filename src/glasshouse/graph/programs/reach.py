"""How far a model sees along the edges: measured by changing one node or one edge and looking where answers change.

Which other edges an answer depends on, such as those that lead away from a node, is found by adding edges. A traced
program is believed after it was tried: rows are rows, layers see as far as counted or measured, answers are right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.core.errors import InputError, first_line
from glasshouse.core.outputs import unwrapped
from glasshouse.graph.layers.layer_type import counted_layers
from glasshouse.graph.programs.program import (
    INPUTS,
    MessageStep,
    NoProgram,
    Program,
    RowStep,
    Step,
    toggled_type,
    tolerance,
)
from glasshouse.graph.programs.trace import Asked

Ask = Callable[[Tensor, Tensor], Tensor]  # (x [n, features], edge_index [2, edges]) -> logits [n, classes]

TWO_ANSWERS = (
    "model: it answers the same query in two ways. Its dropout is on: write "
    "F.dropout(x, p, training=self.training), and give the model in evaluation mode."
)
_TRIALS = 4
_LONGEST = 200  # nodes of the path; a model that sees further is asked about the whole graph
_ASIDE = 6  # nodes beside the path that no edge connects to it: five in a row, and one alone
_MORE = 5  # nodes without edges that are added, to see whether answers depend on the number of nodes


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What a node's answer depends on."""

    hops: int = 0  # how many steps along the edges a change can travel: L of the paper
    everywhere: bool = False  # whether a change also arrives without a path, as through GraphNorm or a virtual node
    senders: bool = False  # whether it depends on who sends to the outermost senders, as GCN's does on their number
    # whether it depends on edges that lead away from the node or its senders, as through out-degrees
    leaving: bool = False


def reach_of(
    # from features [n, features], edges [2, edges] and values of edges by name to answers [n, width]
    ask: Callable[[Tensor, Tensor, dict[str, Tensor]], Tensor],
    rows: Tensor,  # [n, features] to make the features of
    values: Mapping[str, Tensor],  # of some edges, by name
    *,
    both_ways: bool,  # whether edges go both ways
    expected: int,  # a first guess of the reach
) -> Reach:
    """What a layer or a model depends on, on made-up graphs whose edges all have the same values."""
    found = []
    for typical in _typical_values(values):

        def along(x: Tensor, edges: Tensor, typical: Mapping[str, Tensor] = typical) -> Tensor:
            given = {name: value.expand(edges.shape[1], *value.shape) for name, value in typical.items()}
            return ask(x, edges, given)

        found.append(reach_on_path(along, rows, both_ways=both_ways, expected=expected))
        if not found[-1].everywhere:
            found.append(dependence_of(along, rows))
    return Reach(
        hops=max(one.hops for one in found),
        everywhere=any(one.everywhere for one in found),
        senders=any(one.senders for one in found),
        leaving=any(one.leaving for one in found),
    )


def _typical_values(values: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Those of the edge with the largest, and of one at random; a 0 would hide a path.

    Edges of one graph all get the same, so that its answers do not depend on the order of nodes and edges.
    """
    count = min((len(value) for value in values.values()), default=0)
    if count == 0:
        return [{name: value.new_ones(value.shape[1:]) for name, value in values.items()}]
    sizes = next(iter(values.values()))[:count].double().abs().reshape(count, -1).sum(1)
    drawn = torch.randint(count, (1,), generator=torch.Generator().manual_seed(0))
    return [{name: value[place] for name, value in values.items()} for place in (int(sizes.argmax()), int(drawn))]


def reach_on_path(ask: Ask, x: Tensor, *, both_ways: bool, expected: int) -> Reach:
    """The reach of a model on a long path made of the graph's own feature rows, where distances are known.

    One node's features are replaced, then one edge is removed. There are also nodes that no edge connects to the path:
    if their answers change, or if any answer changes when more such nodes are added (as with GraphSizeNorm, which
    divides by the number of nodes), the model looks at the whole graph.
    How long the path is depends on ``expected``, a first guess of the reach.
    """
    source = torch.Generator().manual_seed(0)
    length = 2 * expected + 10
    while True:
        trials = [_Path(x, length, both_ways, source) for _ in range(_TRIALS)]
        found = [trial.reach(ask) for trial in trials]
        hops, everywhere = max(reach.hops for reach in found), any(reach.everywhere for reach in found)
        if everywhere or hops < length - 4:
            break
        if length >= _LONGEST:
            return Reach(hops=hops, everywhere=True)
        length = min(4 * length, _LONGEST)
    if any(trial.ignores_edges for trial in trials):
        raise InputError(
            "model: its answers depend on neighbours but do not change when an edge is removed. A layer with "
            "cached=True answers every query with the edges that it saw first; set cached=False."
        )
    return Reach(hops=hops, everywhere=everywhere)


def reach_on_graph(ask: Ask, x: Tensor, edge_index: Tensor, *, hops: int) -> Reach:
    """The reach on the graph itself, where a few nodes get other features and an edge is removed.

    It confirms ``hops`` or finds more: a model that treats this graph in a special way shows it only here.
    """
    source = torch.Generator().manual_seed(0)
    base = ask(x, edge_index)
    limit = rounding(ask, x, edge_index, base)
    found = [hops]
    for node in torch.randint(len(x), (2,), generator=source).tolist():
        changed = _differs(ask(_replaced(x, node, source), edge_index), base, limit)
        found.append(_farthest(edge_index, [node], changed))
    if edge_index.shape[1]:
        place = int(torch.randint(edge_index.shape[1], (1,), generator=source))
        ends = edge_index[:, place].tolist()
        changed = _differs(ask(x, _without(edge_index, ends)), base, limit)
        found.append(_farthest(edge_index, ends, changed))
    return Reach(hops=max(found), everywhere=min(found) < 0)


class _Path:
    """A path of ``length`` nodes, from node 0, and some nodes that are not connected to it."""

    def __init__(self, x: Tensor, length: int, both_ways: bool, source: torch.Generator) -> None:
        rows = torch.randint(len(x), (length + _ASIDE,), generator=source)
        self.x = x[rows.to(x.device)]
        one = torch.cat([torch.arange(length - 1), length + torch.arange(_ASIDE - 2)])
        edges = torch.stack([one, one + 1]).to(x.device)
        self.edges = torch.cat([edges, edges.flip(0)], dim=1) if both_ways else edges
        self.source = source
        self.ignores_edges = False  # whether a change travels where no edge is left, as with cached=True

    def reach(self, ask: Ask) -> Reach:
        """How far the change of node 1, and of the edge between nodes 2 and 3, can be seen.

        Node 0 is not used: if edges go one way it receives nothing, and a layer may then set it to zero.
        """
        base = ask(self.x, self.edges)
        limit = rounding(ask, self.x, self.edges, base)
        self._check_order(ask, base, limit)
        other = _replaced(self.x, 1, self.source)
        moved = _differs(ask(other, self.edges), base, limit)
        unlinked = _differs(ask(self.x, _without(self.edges, [2, 3])), base, limit)
        features, edges = _farthest(self.edges, [1], moved), _farthest(self.edges, [2, 3], unlinked)
        more = ask(torch.cat([self.x, self.x[:_MORE]]), self.edges)[: len(self.x)]
        if min(features, edges) < 0 or bool(_differs(more, base, limit).any()):
            return Reach(hops=max(features, edges, 0), everywhere=True)
        if features:
            alone = self.edges[:, (self.edges != 1).all(dim=0)]  # node 1 has no edge left
            travelled = _differs(ask(other, alone), ask(self.x, alone), limit)
            self.ignores_edges = bool(travelled.any()) and _farthest(alone, [1], travelled) != 0
        if features == 0 and bool(unlinked.any()):  # it looks only at edges: a node's own edges are the first step
            edges += 1
        return Reach(hops=max(features, edges))

    def _check_order(self, ask: Ask, base: Tensor, limit: float) -> None:
        """Refuse a model that knows nodes by their position: it cannot use a part of the graph with new numbers."""
        order = torch.randperm(len(self.x), generator=self.source).to(self.x.device)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device)
        apart = (ask(self.x[order], place[self.edges]) - base[order]).abs().max()
        if float(apart) > max(limit, tolerance("steady") * float(base.abs().max())):
            raise InputError(
                "model: its answers depend on the order of the nodes or edges, as with one parameter per node, so it "
                'cannot be asked about a part of the graph. Use setting="transductive" if it was trained on this graph.'
            )


def rounding(ask: Ask, x: Tensor, edge_index: Tensor, base: Tensor) -> float:
    """The largest change that is rounding; a model that answers the same query in two ways is refused."""
    largest = float(base.abs().max()) if base.numel() else 0.0
    noise = float((ask(x, edge_index) - base).abs().max()) if base.numel() else 0.0
    if noise > tolerance("steady") * largest:
        raise InputError(TWO_ANSWERS)
    return 10 * noise + tolerance("one call", base.dtype) * largest


def _differs(answers: Tensor, base: Tensor, limit: float) -> Tensor:
    """Bool [n], true for nodes whose answers changed."""
    return (answers - base).abs().amax(dim=1) > limit


def _replaced(x: Tensor, node: int, source: torch.Generator) -> Tensor:
    """The features with one row replaced by a different one."""
    other = x.clone()
    row = x[int(torch.randint(len(x), (1,), generator=source))]
    if not x.is_floating_point():  # categories or codes: only values that occur
        unlike = (x != x[node]).any(dim=1).nonzero()
        other[node] = x[int(unlike[0])] if len(unlike) else row
        return other
    spread = float(x.std()) if x.numel() > 1 else 0.0
    noise = torch.randn(row.shape, generator=source, dtype=torch.float64).to(row)
    other[node] = row + 3 * (spread or 1.0) * noise
    return other


def _without(edge_index: Tensor, ends: list[int]) -> Tensor:
    """The edges except those between two given nodes, in either direction."""
    link = edge_index.new_tensor(ends).unsqueeze(1)
    return edge_index[:, ~((edge_index == link).all(0) | (edge_index.flip(0) == link).all(0))]


def _farthest(edge_index: Tensor, starts: list[int], changed: Tensor) -> int:
    """Steps from the starts to the farthest changed node; -1 if a changed node cannot be reached."""
    reached = torch.zeros_like(changed)
    reached[starts] = True
    left, steps = changed & ~reached, 0
    while bool(left.any()):
        grown = reached.index_fill(0, edge_index[1, reached[edge_index[0]]], True)
        if bool((grown == reached).all()):
            return -1
        reached, steps = grown, steps + 1
        left = left & ~reached
    return steps


_DEPENDENCE_TRIALS = 24  # a maximum over several steps shows a change in few of them
_NODES = 15
# Node 0 is asked; 1, 3 and 5 send to it. A layer that divides by degrees, and adds no self-loops, takes nothing from a
# node without edges, so that nothing would seem to depend on anything: node 5 has senders over any number of steps, and
# the nodes that leaving edges lead to (4 and 6) have edges of their own.
_BASE = ((1, 0), (3, 0), (5, 1), (12, 5), (13, 12), (12, 13), (4, 14), (14, 4), (6, 14), (14, 6))
_SENDERS = ((2, 1),)  # one more sender of a sender
_LEAVING = ((1, 6), (0, 4), (5, 6))  # edges that no answer of a layer's senders needs
_APART = ((7, 8), (7, 9), (7, 10), (7, 11), (8, 7), (9, 7), (10, 7), (11, 7))  # a star that nothing joins to node 0


def dependence_of(ask: Ask, rows: Tensor) -> Reach:
    """What the answers of a layer or a model depend on beside its hops, on graphs of 15 nodes.

    Their features are made of these rows [n, features]; noise is added to numbers that are not whole.
    """
    source = torch.Generator().manual_seed(0)
    found = dict.fromkeys((_SENDERS, _LEAVING, _APART), False)
    for _ in range(_DEPENDENCE_TRIALS):
        x = rows[torch.randint(len(rows), (_NODES,), generator=source).to(rows.device)]
        if x.is_floating_point():
            x = x + x.std() * torch.randn(x.shape, generator=source, dtype=torch.float64).to(x)
        before = ask(x, _edges(_BASE, x))
        limit = tolerance("another graph", before.dtype) * max(float(before.abs().max()), 1e-12)
        for added, seen in found.items():
            if not seen:
                after = ask(x, _edges(_BASE + added, x))
                found[added] = float((after - before)[0].abs().max()) > limit
    return Reach(senders=found[_SENDERS], leaving=found[_LEAVING], everywhere=found[_APART])


def _edges(pairs: tuple[tuple[int, int], ...], x: Tensor) -> Tensor:
    return torch.tensor(pairs, device=x.device).T.contiguous()


_EDGES = 512  # of the graph whose nodes the program is tried on
_ROWS = 24  # rows on which operations are tried


def sample_graph(data: Data) -> Data:
    """A part of a graph to try a program on: the ends of some edges, all edges between them, and a few other nodes."""
    source = torch.Generator().manual_seed(0)
    edges = data.edge_index
    some = edges[:, torch.randperm(edges.shape[1], generator=source)[:_EDGES].to(edges.device)]
    others = torch.randint(len(data.x), (8,), generator=source).to(edges.device)
    chosen = torch.zeros(len(data.x), dtype=torch.bool, device=edges.device)
    chosen[torch.cat([some.flatten(), others])] = True
    whole = {name: getattr(data, name, None) for name in INPUTS}
    return Data(**{name: value for name, value in whole.items() if value is not None}).subgraph(chosen)


@torch.no_grad()
def checked_program(program: Program, root: Asked, data: Data) -> Program:
    """A program with the reach of its layers, tried on a part of the graph; `NoProgram` says what failed."""
    graph = sample_graph(data)
    given = {name: getattr(graph, name, None) for name in INPUTS}
    try:
        values = program.run(root, given)
        answer = unwrapped(root(**given))
    except Exception as error:
        raise NoProgram(f"its program fails on a part of the graph ({first_line(error)})") from error
    if not _same(values[program.output], answer):
        raise NoProgram("its program gives other answers than the model itself")
    steps: list[Step] = []
    call: Any
    for step, call in program.calls(root):
        if isinstance(step, RowStep):
            _check_rows(step, call, values, root)
            steps.append(step)
        else:
            steps.append(_with_reach(step, call, values, len(graph.x)))
    # engines compute everything in the type of the answer
    made = [*(step.name for step in steps if isinstance(step, MessageStep)), program.output]
    types = dict.fromkeys(str(values[name].dtype).removeprefix("torch.") for name in made)
    if len(types) > 1:
        raise NoProgram(f"the type of its numbers changes on the way ({' to '.join(types)})")
    return replace(program, steps=tuple(steps))


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    scale = float(other.abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=tolerance("another way", other.dtype) * max(scale, 1e-12))


def _check_rows(step: RowStep, call: Any, values: Mapping[str, Any], root: nn.Module) -> None:
    """Some rows alone, in another order, must give the same rows; twice as many rows must give as many."""
    inputs = [values[name] for name in step.inputs]
    if not inputs or not all(isinstance(one, Tensor) and one.ndim and len(one) == len(inputs[0]) for one in inputs):
        raise NoProgram(f"its step {_named(step, root)} does not work on rows")
    whole = values[step.name]
    if not isinstance(whole, Tensor) or not whole.ndim or len(whole) != len(inputs[0]):
        raise NoProgram(f"its step {_named(step, root)} does not give one row per node")
    source = torch.Generator().manual_seed(0)
    chosen = torch.randperm(len(inputs[0]), generator=source)[:_ROWS].to(inputs[0].device)
    for rows in (chosen, chosen[: max(1, len(chosen) // 3)], torch.cat([chosen, chosen])):
        try:
            found = call(*[one[rows].clone() for one in inputs])
        except Exception as error:
            raise NoProgram(f"its step {_named(step, root)} does not work on some rows alone") from error
        if not _same(found, whole[rows]):
            raise NoProgram(f"its step {_named(step, root)} mixes the rows of nodes")


def _named(step: RowStep, root: nn.Module) -> str:
    """The calls of a step, as a user would know them: ``norms.0 (GraphNorm)`` or ``mean``."""
    names = []
    for node in step.graph.nodes:
        if node.op == "call_module":
            path = str(node.target)
            names.append(f"{path.removeprefix('model.')} ({type(root.get_submodule(path)).__name__})")
        elif node.op in ("call_function", "call_method"):
            names.append(str(getattr(node.target, "__name__", node.target)))
    return ", ".join(names)


def _with_reach(step: MessageStep, layer: Any, values: Mapping[str, Any], count: int) -> MessageStep:
    """The step with its layer's reach: counted if its type is known, else measured."""
    inputs = [values[name] for name in step.inputs]
    name = f"{step.module.removeprefix('model.')} ({type(layer).__name__})"
    if not inputs or not all(isinstance(one, Tensor) and one.ndim == 2 and len(one) == count for one in inputs):
        raise NoProgram(f"its layer {name} is not given one row per node")
    answer = values[step.name]
    if not isinstance(answer, Tensor) or answer.ndim != 2 or len(answer) != count:
        raise NoProgram(f"its layer {name} does not answer with one row per node")
    kind = toggled_type(layer, step)
    if kind is not None:
        return replace(step, hops=kind.steps(layer), both_ways=kind.both_ways)
    rows = torch.cat([one.detach().to(answer.dtype) for one in inputs], dim=1)
    widths, least = [one.shape[1] for one in inputs], counted_layers(layer)

    def ask(x: Tensor, edge_index: Tensor, edges: Mapping[str, Tensor]) -> Tensor:
        given = dict(zip(step.inputs, x.split(widths, dim=1), strict=True))
        args, kwargs = step.arguments({**given, **edges, "edge_index": edge_index})
        return layer(*args, **kwargs).detach()  # type: ignore[no-any-return]

    edges = {name: values[name] for name in step.edges}
    try:
        found = reach_of(ask, rows, edges, both_ways=True, expected=least)
    except InputError as error:
        raise NoProgram(f"its layer {name} cannot be asked about a part of the graph") from error
    except Exception as error:
        raise NoProgram(f"its layer {name} fails on a small graph ({type(error).__name__})") from error
    if found.everywhere:
        raise NoProgram(f"its layer {name} looks at the whole graph")
    hops, by_degree = max(least, found.hops, 1), found.leaving or found.senders
    return replace(step, hops=hops, by_degree=by_degree, both_ways=found.leaving)
