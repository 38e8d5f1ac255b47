"""The rule of eq. (6)-(7) for an edge: what changes in the members' losses if one edge is added or taken out.

All nodes are members, and other edges are as a mask of the candidates says. S is the sum over all nodes of
``loss(with the edge) - loss(without)``; docs/edges.md derives it. Only rows that the edge changes are computed, as for
nodes: by the layers themselves where a model has a program, else by the model, on nets of all that these rows see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

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
from glasshouse.graph.rule.ego_nets import draw_ego_nets
from glasshouse.graph.rule.engines import Stack, stacks_of
from glasshouse.graph.rule.incremental.balls import Ball, Rings
from glasshouse.graph.rule.incremental.engine import are_safe, in_turns, lowered
from glasshouse.graph.rule.incremental.graph import EdgeCopies, MaskedGraph, coalesce, mask_graph
from glasshouse.graph.rule.incremental.program import (
    Asking,
    ForwardState,
    LossesToSignal,
    changed_balls,
    forward_state,
    row_losses,
)
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

    @cached_property
    def copies(self) -> EdgeCopies:
        """The edges of the graph with all candidates, of which nets are made."""
        return EdgeCopies.of(self.edges(torch.ones_like(self.masks[0])), self.graph.size)

    def under(self, mask: Tensor, dtype: torch.dtype) -> MaskedGraph:
        """The graph with the candidates of a mask, of which all nodes are members."""
        everyone = torch.ones(1, self.graph.size, dtype=torch.bool, device=mask.device)
        graph = mask_graph(coalesce(self.edges(mask), self.graph.size, dtype), everyone)
        return replace(graph, copies=self.copies)

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
    return EdgeQuestion(graph=asked, pairs=pairs.long().contiguous().to(place), masks=masks.bool().to(place), both=both)


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


@dataclass(kw_only=True)
class _EdgeRings(Rings):
    """Where changes go if edges are toggled; ball 0 is empty, and ball 1 has the ends of each edge."""

    sender: Tensor  # keys of the ends, in each direction that the edge has
    receiver: Tensor
    off: Tensor  # bool, whether toggling takes the edge out
    splits: ClassVar[bool] = False

    @classmethod
    def of(cls, graph: MaskedGraph, pairs: Tensor, off: Tensor, *, both: bool, radius: int) -> _EdgeRings:
        """Balls 0 ... radius around pairs of nodes [2, p]; ``off`` [p] says which are edges of the graph."""
        number = torch.arange(len(off), device=off.device)
        keys = number * graph.size + pairs
        sender, receiver, turned = keys[0], keys[1], off
        if both:
            sender, receiver, turned = (
                torch.cat([sender, receiver]),
                torch.cat([receiver, sender]),
                torch.cat([off, off]),
            )
        ends = {"sender": sender, "receiver": receiver, "off": turned}
        rings = cls(graph=graph, targets=number, removes=off, balls=[], outward=[], **ends)
        grown = keys.reshape(-1)
        rings.balls.append(rings._ball(grown[:0]))
        for _ in range(radius):
            rings.balls.append(rings._ball(distinct(grown)))
            grown = rings._grown()
        return rings

    def _ball(self, keys: Tensor) -> Ball:
        target = keys // self.graph.size
        node = keys - target * self.graph.size
        return Ball(keys=keys, target=target, node=node, centre=keys[:0], degree_change=keys[:0])

    def _grown(self) -> Tensor:
        """Keys of the outermost ball, and of all rows that they send to, whether the candidate is there or not."""
        ball, receivers = self.balls[-1], self.graph.receivers
        entry, owner = expand(receivers.start[ball.node], receivers.count[ball.node])
        _, sends = lookup(ball.keys, self.sender)
        reached = ball.target[owner] * self.graph.size + receivers.other[entry]
        return torch.cat([ball.keys, reached, self.receiver[sends]])

    def places(self, inner: int, outer: int) -> Tensor:
        """See :class:`~glasshouse.graph.rule.incremental.balls.Rings`."""
        return lookup(self.balls[outer].keys, self.balls[inner].keys)[0]

    def gone(self, sender: Tensor, receiver: Tensor) -> Tensor:
        """See :class:`~glasshouse.graph.rule.incremental.balls.Rings`; a sender's key has the number of its pair."""
        size = self.graph.size
        taken = (self.sender[self.off] * size + self.receiver[self.off] % size).sort().values
        return lookup(taken, sender * size + receiver % size)[1]

    def added(self) -> tuple[Tensor, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.balls.Rings`."""
        return self.sender[~self.off], self.receiver[~self.off]


def _incremental(models: Stack, question: EdgeQuestion, mask: Tensor) -> Tensor:
    """S under one mask, [models, P], from the rows that change."""
    asking: Asking = "model" if models[0].profile.program is None else "layer"
    placed = changed_balls(lowered(models, question.graph, asking), radius=None)
    if placed[-1].outer is None:  # no toggle changes an answer
        return torch.zeros(len(models), len(mask), dtype=torch.float64, device=mask.device)
    graph = question.under(mask, placed[-1].operation.result.sample.dtype)
    program, logits = forward_state(placed, question.graph.x, graph, limit=_BYTES)
    ends = LossesToSignal.of(question.graph.labels, logits.expand(-1, len(models), -1))
    parts, work = _parts(graph, question.pairs, program.outermost), partial(_signals, program, question, mask, ends)
    return in_turns(work, parts, device=mask.device, threads=are_safe(placed)).t()


def _parts(graph: MaskedGraph, pairs: Tensor, reach: int) -> list[slice]:
    """The candidates in parts whose rows fit in memory, by an upper estimate of how many each toggle changes."""
    rows = torch.ones(graph.size, 1, dtype=torch.float64, device=pairs.device)
    for _ in range(reach):
        rows = (segment_sum(rows[graph.receivers.other], graph.receivers.start) + 1).clamp(max=graph.size)
    return list(slices_within(rows[pairs].sum((0, 2)) * _ROW_BYTES, _BYTES))


def _signals(program: ForwardState, question: EdgeQuestion, mask: Tensor, ends: LossesToSignal, part: slice) -> Tensor:
    """S of some candidates, [p, models]."""
    pairs, off, outer = question.pairs[:, part], mask[part], program.outermost
    rings = _EdgeRings.of(program.graph, pairs, off, both=question.both, radius=outer)
    ball = rings.balls[outer]
    after = row_losses(program.logits(rings).expand(-1, ends.kept_loss.shape[1], -1), ends.labels[ball.node])
    total = segment_sum(after - ends.kept_loss[ball.node], starts_of(ball.target, len(off)))
    return torch.where(off.unsqueeze(1), -total, total)


_NUDGE = 1e-2  # share by which the features of one end are scaled


def edge_influences(model: Profiled, question: EdgeQuestion) -> Tensor:
    """[P] how far the answer about one end of each joined pair follows the other end's features, the larger way.

    The change of the class probabilities of one end for a small change of the other's features (Wu and others, 2022),
    on the graph of the first mask with the pair as an edge; on the ego-net of both ends.
    """
    size, mask, x = question.graph.size, question.masks[0], question.graph.x
    graph, hops = question.under(mask, torch.float32), max(1, model.profile.hops)
    found = torch.empty(len(mask), dtype=torch.float64, device=mask.device)
    with evaluation_mode([model]):
        for part in _parts(graph, question.pairs, hops + 2):
            off = torch.zeros_like(mask[part])
            rings = _EdgeRings.of(graph, question.pairs[:, part], off, both=question.both, radius=1)
            net = draw_ego_nets(rings, rings.balls[1].keys, hops=hops, degrees=2)
            keys = rings.targets * size + question.pairs[:, part]
            rows = lookup(net.target * size + net.node, keys)[0]
            given, changes = x.index_select(0, net.node), []
            before = model.logits(Data(x=given, edge_index=net.edges)).double().softmax(1)
            for near, far in (rows, rows.flip(0)):
                nudged = given.clone()
                nudged[far] *= 1 + _NUDGE
                after = model.logits(Data(x=nudged, edge_index=net.edges)).double().softmax(1)
                changes.append((after - before)[near].norm(dim=1) / _NUDGE)
            found[part] = torch.stack(changes).max(0).values
    return found
