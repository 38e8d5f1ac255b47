"""The rule of eq. (6)-(7) for an edge: what changes in the members' losses if one edge is added or taken out.

All nodes are members, and other edges are as a mask of the candidates says. S is the sum over all nodes of
``loss(with the edge) - loss(without)``; docs/edges.md derives it. Only rows that the edge changes are computed: layer
by layer where a model has a program, and by the model itself on the ego-nets of these rows where it is a black box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from glasshouse.core.errors import InputError
from glasshouse.core.outputs import tensor_losses
from glasshouse.graph.data.checking import checked_graph
from glasshouse.graph.models.calls import held_values
from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import AnyModel, Profiled, evaluation_mode, profile_models, raw_models
from glasshouse.graph.programs.program import MessageStep, RowStep, Value
from glasshouse.graph.rule.engines import stacks_of
from glasshouse.graph.rule.incremental.segments import distinct, expand, lookup, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.question import Question, ask

EdgeEngine = Literal["auto", "reference"]

_BYTES = 2**27  # of the rows of one part, as for nodes on a CPU
_ROW_BYTES = 512  # of indices and hidden values for each walk from a changed row


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeQuestion:
    """A graph without its candidate edges, and which of these are there under each mask."""

    graph: Question  # the nodes and the edges that are known
    pairs: Tensor  # [2, P] the ends of the candidates
    masks: Tensor  # bool [M, P] which candidates are there
    both: bool  # whether a candidate stands for an edge in either direction

    def edges(self, chosen: Tensor) -> Tensor:
        """[2, edges] of the graph with the chosen candidates, bool [P]."""
        added = self.pairs[:, chosen]
        return torch.cat([self.graph.edge_index, added, *([added.flip(0)] if self.both else [])], dim=1)

    def losses(self, model: Profiled, chosen: Tensor) -> Tensor:
        """[n] on the graph with the chosen candidates, bool [P]."""
        logits = model.logits(Data(x=self.graph.x, edge_index=self.edges(chosen)))
        return tensor_losses(logits, self.graph.labels)


def toggle_edges(
    models: Sequence[AnyModel], data: Any, masks: Tensor, pairs: Tensor, *, engine: EdgeEngine = "auto"
) -> Tensor:
    """S of every model, mask and candidate edge, float64 [models, masks, P]: above 0 where the edge raises losses.

    Args:
        models: modules or callables ``(x, edge_index) -> logits``.
        data: the graph without the candidate edges; edges have no values.
        masks: which candidates are there, bool [M, P]; that of the toggled one does not matter.
        pairs: [2, P] their ends. If all edges go both ways, so do candidates.
        engine: ``"auto"``, or ``"reference"`` for two passes over the graph for each answer.

    Example:
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(2)]
        >>> toggle_edges(models, data, torch.zeros(5, 1, dtype=torch.bool), torch.tensor([[1], [2]])).shape
        torch.Size([2, 5, 1])
    """
    question = ask_edges(data, masks, pairs, device=model_device(raw_models(models)))
    return answer_edges(profile_models(models, question.graph.graph(), labels=question.graph.labels), question, engine)


def ask_edges(data: Any, masks: Tensor, pairs: Tensor, *, device: torch.device | None = None) -> EdgeQuestion:
    """Check a question, and put it on one device."""
    graph = checked_graph(data)
    count = int(graph.num_nodes)
    if held_values(graph):
        raise InputError("data: its edges have values, which a candidate edge does not have. Leave them out.")
    pairs, masks = torch.as_tensor(pairs), torch.as_tensor(masks)
    if pairs.ndim != 2 or len(pairs) != 2 or (pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < count):
        raise InputError(f"pairs: give the ends of each candidate, nodes from 0 to {count - 1}, [2, P].")
    if masks.ndim != 2 or masks.shape[1] != pairs.shape[1]:
        raise InputError(f"masks: give bool [masks, {pairs.shape[1]}], one entry per candidate.")
    both = bool(is_undirected(graph.edge_index, num_nodes=count))
    ends = (pairs if not both else pairs.sort(dim=0).values).to(graph.edge_index.device)
    keys, known = (one[0].long() * count + one[1].long() for one in (ends, graph.edge_index))
    if bool((ends[0] == ends[1]).any()) or len(keys.unique()) < len(keys) or bool(torch.isin(keys, known).any()):
        raise InputError(
            "pairs: a candidate joins a node to itself, is given twice, or is an edge of data. Take the candidates "
            "out of the graph, and give each pair once."
        )
    nobody = torch.zeros(1, count, dtype=torch.bool)
    asked = ask(graph, nobody, torch.arange(count), device=device)
    place = asked.x.device
    return EdgeQuestion(graph=asked, pairs=pairs.long().to(place), masks=masks.bool().to(place), both=both)


def answer_edges(models: Sequence[Profiled], question: EdgeQuestion, engine: EdgeEngine = "auto") -> Tensor:
    """`toggle_edges` behind the door."""
    if engine not in ("auto", "reference"):
        raise InputError(f'engine: {engine!r} is not known for edges. Use "auto" or "reference".')
    shape = (len(models), len(question.masks), question.pairs.shape[1])
    found = torch.zeros(shape, dtype=torch.float64, device=question.graph.x.device)
    with evaluation_mode(models):
        for numbers, stack in stacks_of(models, question.graph):
            slow = engine == "reference" or stack[0].profile.everywhere
            for i, mask in enumerate(question.masks):
                found[numbers, i] = _reference(stack, question, mask) if slow else _incremental(stack, question, mask)
    if not bool(torch.isfinite(found).all()):
        raise InputError("models: one answers with numbers that are not finite.")
    return found


def _reference(models: Sequence[Profiled], question: EdgeQuestion, mask: Tensor) -> Tensor:
    """The rule as written, [models, P]."""
    found = torch.zeros(len(models), len(mask), dtype=torch.float64, device=mask.device)
    for k, model in enumerate(models):
        for pair in range(len(mask)):
            with_edge, without = mask.clone(), mask.clone()
            with_edge[pair], without[pair] = True, False
            found[k, pair] = (question.losses(model, with_edge) - question.losses(model, without)).sum()
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Senders:
    """The graph under one mask, as lists of neighbours; a row of a toggled graph is the key ``pair * n + node``."""

    size: int  # n
    edges: Tensor  # [2, E]
    pairs: Tensor  # [2, P]
    mask: Tensor  # bool [P] which candidates are there: toggling takes them out
    both: bool

    @cached_property
    def incoming(self) -> tuple[Tensor, Tensor]:
        """Where each node's senders start [n + 1], and the senders [E]."""
        return _lists(self.edges, self.size)

    @cached_property
    def outgoing(self) -> tuple[Tensor, Tensor]:
        """Where each node's receivers start [n + 1], and the receivers [E]."""
        return _lists(self.edges.flip(0), self.size)

    @cached_property
    def repeated(self) -> bool:
        """Whether an edge occurs twice."""
        keys = self.edges[0] * self.size + self.edges[1]
        return len(keys.unique()) < len(keys)

    @cached_property
    def loops(self) -> Tensor:
        """[n] self-loops of each node."""
        return torch.bincount(self.edges[0, self.edges[0] == self.edges[1]], minlength=self.size)

    def directed(self, some: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The edges of some candidates [p]: keys of senders and of receivers, and whether each is toggled off."""
        source, receiver = (some * self.size + ends for ends in self.pairs[:, some])
        off = self.mask[some]
        if not self.both:
            return source, receiver, off
        return torch.cat([source, receiver]), torch.cat([receiver, source]), torch.cat([off, off])

    def ends(self, some: Tensor) -> Tensor:
        """Keys of the nodes that receive other messages, or send to others."""
        return distinct((some * self.size + self.pairs[:, some]).reshape(-1))

    def grown(self, keys: Tensor, some: Tensor) -> Tensor:
        """Keys, and all rows that they send to, whether the candidate is there or not."""
        start, other = self.outgoing
        node = keys % self.size
        entry, owner = expand(start[node], start[node + 1] - start[node])
        source, receiver, _ = self.directed(some)
        _, sends = lookup(keys, source)
        return distinct(torch.cat([keys, (keys - node)[owner] + other[entry], receiver[sends]]))

    def messages(self, keys: Tensor, some: Tensor) -> tuple[Tensor, Tensor]:
        """All messages into rows [keys] of the toggled graphs: the sender's key, and the place of the receiver."""
        start, other = self.incoming
        node = keys % self.size
        entry, owner = expand(start[node], start[node + 1] - start[node])
        sender = (keys - node)[owner] + other[entry]
        source, receiver, off = self.directed(some)
        place, received = lookup(keys, receiver)
        added = received & ~off
        gone = source[off], receiver[off]  # a key has the number of its pair, so that a sum names both ends
        kept = ~torch.isin(sender * self.size + node[owner], gone[0] * self.size + gone[1] % self.size)
        return torch.cat([sender[kept], source[added]]), torch.cat([owner[kept], place[added]])

    def degrees(self, keys: Tensor, some: Tensor) -> Tensor:
        """How many messages each row of the toggled graphs receives, without self-loops."""
        start, _ = self.incoming
        node = keys % self.size
        count = start[node + 1] - start[node] - self.loops[node]
        _, receiver, off = self.directed(some)
        place, found = lookup(keys, receiver)
        return count.index_add_(0, place[found], (1 - 2 * off.long())[found])


def _lists(edges: Tensor, size: int) -> tuple[Tensor, Tensor]:
    receiver, order = edges[1].sort(stable=True)
    return starts_of(receiver, size), edges[0, order]


@dataclass(frozen=True, kw_only=True)
class _Net:
    """What rows of toggled graphs see: rows side by side, and the messages between them."""

    keys: Tensor  # [rows] the sender's or receiver's key; above all pairs, a node that is the same for all of them
    edges: Tensor  # [2, edges]
    wanted: Tensor  # [wanted] their rows
    spare: int  # rows at the end that only send, and stand for senders of senders, whose number alone counts


def _net(graph: _Senders, some: Tensor, wanted: Tensor, own: Tensor, step: MessageStep) -> _Net:
    """The net of the wanted rows [keys]; rows in ``own`` differ from those of the graph under the mask."""
    shared = step.hops == 1 and not step.both_ways and not graph.repeated
    if not shared:
        keys = wanted
        for _ in range(step.hops + (2 if step.both_ways else int(step.by_degree))):
            inner = keys
            sender, receiver = graph.messages(inner, some)
            keys = distinct(torch.cat([inner, sender]))
        edges = torch.stack([lookup(keys, sender)[0], lookup(keys, inner[receiver])[0]])
        return _Net(keys=keys, edges=edges, wanted=lookup(keys, wanted)[0], spare=0)
    ends = graph.ends(some) if step.by_degree else own[:0]
    sender, receiver = graph.messages(wanted, some)
    mine = distinct(torch.cat([wanted, own, ends]))
    everyones = graph.mask.numel() * graph.size  # above the keys of all pairs
    sender = torch.where(lookup(mine, sender)[1], sender, everyones + sender % graph.size)
    keys = distinct(torch.cat([wanted, sender]))
    edges = torch.stack([lookup(keys, sender)[0], lookup(keys, wanted[receiver])[0]])
    place, spare = lookup(keys, wanted)[0], 0
    if step.by_degree:
        outer = torch.ones_like(keys, dtype=torch.bool).index_fill_(0, place, False).nonzero().squeeze(1)
        count = graph.degrees(keys[outer], some)
        stand_in, owner = expand(torch.full_like(count, len(keys)), count)
        loop = outer[graph.loops[keys[outer] % graph.size] > 0]
        edges = torch.cat([edges, torch.stack([stand_in, outer[owner]]), torch.stack([loop, loop])], dim=1)
        spare = int(count.max()) if len(count) else 0
    return _Net(keys=keys, edges=edges, wanted=place, spare=spare)


@dataclass(frozen=True, eq=False)
class _Changed:
    """Rows of a value that differ from those under the mask: keys, and for each model the rows; None if all differ."""

    keys: Tensor
    rows: list[Tensor]

    def at(self, keys: Tensor, kept: Tensor, model: int, size: int) -> Tensor:
        """The value at some keys: the changed rows, and ``kept`` [n, width] elsewhere."""
        found = kept.index_select(0, keys % size)
        if len(self.keys):
            place, here = lookup(self.keys, keys)
            here = here.nonzero().squeeze(1)
            found[here] = self.rows[model].index_select(0, place[here])
        return found


Call = Callable[..., Tensor]


def _steps_of(models: Sequence[Profiled]) -> tuple[list[tuple[Any, list[Call]]], str]:
    """The steps of models of one shape, each with a call per model; a black box is one step of its whole reach."""
    profile = models[0].profile
    if profile.program is not None and all(one.edges == () for one in profile.program.messages):
        calls = [dict(enumerate(model.profile.program.calls(cast("Any", model.root)))) for model in models]  # type: ignore[union-attr]
        return [(step, [one[at][1] for one in calls]) for at, (step, _) in calls[0].items()], profile.program.output
    whole = _whole(profile.hops, both_ways=bool(profile.both_ways))
    asked = [lambda x, edges, model=model: model.logits(Data(x=x, edge_index=edges)) for model in models]
    return [(whole, asked)], "logits"


def _whole(hops: int, *, both_ways: bool) -> MessageStep:
    """A model as one step."""
    call: dict[str, Any] = {"args": (Value("x"), Value("edge_index")), "kwargs": {}, "edges": ()}
    return MessageStep(name="logits", module="", inputs=("x",), hops=max(1, hops), both_ways=both_ways, **call)


def _incremental(models: Sequence[Profiled], question: EdgeQuestion, mask: Tensor) -> Tensor:
    """S under one mask, [models, P], from the rows that change."""
    steps, output = _steps_of(models)
    size, both = question.graph.size, question.both
    edges = question.edges(mask)
    graph = _Senders(size=size, edges=edges, pairs=question.pairs, mask=mask, both=both)
    kept: list[dict[str, Any]] = [{"x": question.graph.x, "edge_index": edges} for _ in models]
    for step, calls in steps:
        for values, call in zip(kept, calls, strict=True):
            values[step.name] = _called(step, call, values)
    logits = models[0].profile.program is not None and models[0].profile.probabilities
    found = torch.empty(len(models), len(mask), dtype=torch.float64, device=mask.device)
    reach = max(model.profile.hops for model in models) + 1
    for part, some in _parts(graph, reach):
        changed = _toggled(steps, kept, graph, some, output)
        owner = changed.keys // size
        for k, values in enumerate(kept):
            node = changed.keys % size
            both_rows = [changed.rows[k], values[output].index_select(0, node)]
            if logits:
                both_rows = [rows.clamp(min=torch.finfo(rows.dtype).eps).log() for rows in both_rows]
            new, old = (tensor_losses(rows, question.graph.labels[node]) for rows in both_rows)
            total = segment_sum((new - old).unsqueeze(1), starts_of(owner - part.start, len(some))).squeeze(1)
            found[k, part] = torch.where(mask[part], -total, total)
    return found


def _called(step: Any, call: Call, values: dict[str, Any]) -> Any:
    """A step of a program, or a whole model, on given values."""
    args, kwargs = step.arguments(values)
    return call(*args, **kwargs)


def _parts(graph: _Senders, reach: int) -> Iterator[tuple[slice, Tensor]]:
    """The candidates in parts, by an upper estimate of how many rows each toggle changes, with their senders."""
    start, other = graph.outgoing
    rows = torch.ones(graph.size, dtype=torch.float64, device=other.device)
    for _ in range(reach):
        rows = (segment_sum(rows[other].unsqueeze(1), start).squeeze(1) + 1).clamp(max=graph.size)
    for part in slices_within(rows[graph.pairs].sum(0) * _ROW_BYTES, _BYTES):
        yield part, torch.arange(part.start, part.stop, device=other.device)


def _toggled(
    steps: Sequence[tuple[Any, list[Call]]], kept: list[dict[str, Any]], graph: _Senders, some: Tensor, output: str
) -> _Changed:
    """The rows of the answers that toggling some candidates changes."""
    nothing = _Changed(some[:0], [])
    found: dict[str, _Changed] = {}
    for step, calls in steps:
        given = {name: found.get(name, nothing) for name in step.inputs}
        own = distinct(torch.cat([some[:0], *(one.keys for one in given.values())]))
        if isinstance(step, RowStep):
            if len(own):
                rows = []
                for k, call in enumerate(calls):
                    values = {name: one.at(own, kept[k][name], k, graph.size) for name, one in given.items()}
                    rows.append(_called(step, call, values))
                found[step.name] = _Changed(own, rows)
            continue
        ends = graph.ends(some)
        wanted = distinct(torch.cat([ends, own]))
        for turn in range(step.hops):
            early = turn == 0 and not (step.by_degree or step.both_ways)  # an end then changes only its own row here
            wanted = distinct(torch.cat([ends, graph.grown(own, some)])) if early else graph.grown(wanted, some)
        net, rows = _net(graph, some, wanted, own, step), []
        for k, call in enumerate(calls):
            values = {"edge_index": net.edges}
            for name, one in given.items():
                value = one.at(net.keys, kept[k][name], k, graph.size)
                values[name] = torch.cat([value, value.new_zeros(net.spare, value.shape[1])]) if net.spare else value
            rows.append(_called(step, call, values).index_select(0, net.wanted))
        found[step.name] = _Changed(wanted, rows)
    return found.get(output, _Changed(some[:0], [kept[0][output][:0]] * len(kept)))


_NUDGE = 1e-2  # share by which the features of one end are scaled


def edge_influences(model: Profiled, question: EdgeQuestion) -> Tensor:
    """[P] how far the answer about one end of each joined pair follows the other end's features, the larger way.

    The change of the class probabilities of one end for a small change of the other's features (Wu and others, 2022),
    on the graph of the first mask with the pair as an edge; on the ego-net of both ends.
    """
    size, mask = question.graph.size, question.masks[0]
    graph = _Senders(
        size=size, edges=question.edges(mask), pairs=question.pairs, mask=torch.zeros_like(mask), both=question.both
    )
    whole = _whole(model.profile.hops, both_ways=True)
    found = torch.empty(len(mask), dtype=torch.float64, device=mask.device)
    with evaluation_mode([model]):
        for part, some in _parts(graph, whole.hops + 2):
            ends = [some * size + end for end in question.pairs[:, some]]
            net = _net(graph, some, distinct(torch.cat(ends)), some[:0], whole)
            rows = [lookup(net.keys, one)[0] for one in ends]
            x, changes = question.graph.x.index_select(0, net.keys % size), []
            before = model.logits(Data(x=x, edge_index=net.edges)).double().softmax(1)
            for near, far in (rows, rows[::-1]):
                nudged = x.clone()
                nudged[far] *= 1 + _NUDGE
                after = model.logits(Data(x=nudged, edge_index=net.edges)).double().softmax(1)
                changes.append((after - before)[near].norm(dim=1) / _NUDGE)
            found[part] = torch.stack(changes).max(0).values
    return found
