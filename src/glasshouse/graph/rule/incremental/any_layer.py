"""A layer of any type, or a whole model: it computes the rows that change itself, on everything that they see.

A layer may keep a state while it works, so no two threads call the same copy.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.graph.layers.layer_type import is_altered
from glasshouse.graph.programs.program import MessageStep, filled
from glasshouse.graph.rule.ego_nets import EgoNets, draw_ego_nets
from glasshouse.graph.rule.incremental.balls import Ball, Step
from glasshouse.graph.rule.incremental.graph import MaskedGraph
from glasshouse.graph.rule.incremental.layer import Cost, Layer, Toggled, under_every_mask
from glasshouse.graph.rule.incremental.segments import expand, lookup, segment_sum, slices_within, starts_of
from glasshouse.training.batches import spread


class Copies:
    """Copies of a layer with its weights, as many as there are threads that call it at the same time."""

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer  # it is copied, and never called by `one`
        self._free: list[nn.Module] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[nn.Module]:
        """A copy that nobody else has until it is given back."""
        with self._lock:
            mine = self._free.pop() if self._free else copy.deepcopy(self._layer)
        try:
            yield mine
        finally:
            with self._lock:
                self._free.append(mine)


def can_copy(layer: Callable[..., Tensor]) -> bool:
    """Whether a copy can stand for a layer; hooks and methods put into it may keep a state elsewhere."""
    if not isinstance(layer, nn.Module) or is_altered(layer):
        return False
    try:
        copy.deepcopy(layer)
    except Exception:  # whatever a user's class raises, it then stays on one core
        return False
    return True


_VALUES = 6  # of a layer's inputs and outputs while it works
_INDEX_BYTES = 200  # index arrays for each row of a net
_NEAR = 2**26  # bytes of a part on a CPU: what one operation has made is still near the core when the next reads it


@dataclass(frozen=True, kw_only=True)
class Unknown(Layer):
    """A layer that is asked itself; exact if a row depends on senders up to ``hops`` away and on their degrees."""

    step: MessageStep  # how the program calls it
    layers: Sequence[Callable[..., Tensor]]  # the layer of each model
    widths: tuple[int, ...]  # of the values that it reads, which lie side by side in its input
    edges: Mapping[str, Tensor]  # by name, values of the edges that it reads, [edges, models or 1, ...]
    sample: Tensor  # a few inputs [rows, models or 1, widths]
    classes: int | None = None  # about how many columns it has, for a whole model, which is not asked for a sample
    inside: int = 0  # how many columns it may have inside

    @cached_property
    def _answer(self) -> Tensor:
        """What it gives for a few rows and one edge; whole numbers in, as codes, may well be fractions out."""
        if self.classes is not None:
            return torch.empty(0, self.classes)
        edge = torch.tensor([[0], [1]], device=self.sample.device)[:, : min([1, *map(len, self.edges.values())])]
        return self.ask(0, self.sample[:, 0], edge, torch.zeros_like(edge[0]))

    @property
    def width(self) -> int:
        """Columns of its output, of one model."""
        return int(self._answer.shape[1])

    @property
    def hops(self) -> int:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        return self.step.hops

    @property
    def counts_senders(self) -> bool:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`: it may."""
        return True

    @property
    def divides_by_degree(self) -> bool:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        return self.step.by_degree

    @property
    def beyond(self) -> int:
        """How many steps beyond its hops a net must go; see ``draw_ego_nets``."""
        return 2 if self.step.both_ways else int(self.step.by_degree)

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`; it splits its own work on nets."""
        size = self._answer.element_size()
        inputs = sum(self.widths) * size
        kept = (inputs if shared else inputs * len(self.layers)) + self.width * size * len(self.layers)
        return Cost(node=kept, row=2 * kept, path=32)

    @property
    def shares_senders(self) -> bool:
        """Whether targets may share the rows of senders that no toggle changes; see ``draw_ego_nets``."""
        return self.hops == 1 and self.beyond < 2

    @cached_property
    def threads(self) -> bool:
        """Whether several threads may ask it, each its own copies."""
        return all(map(can_copy, self.layers))

    @cached_property
    def _copies(self) -> list[Copies]:
        return [Copies(layer) for layer in self.layers]  # type: ignore[arg-type]

    def ask(self, number: int, rows: Tensor, edge_index: Tensor, edge_number: Tensor) -> Tensor:
        """One model's answer [rows, width] for inputs [rows, widths] and copies of the graph's edges."""
        given: dict[str, Any] = dict(zip(self.step.inputs, rows.split(list(self.widths), dim=1), strict=True))
        given["edge_index"] = edge_index
        for name, values in self.edges.items():
            given[name] = values[edge_number, number if values.shape[1] > 1 else 0]
        args, kwargs = filled(self.step.args, given), filled(dict(self.step.kwargs), given)
        if not self.threads:
            return self.layers[number](*args, **kwargs)
        with self._copies[number].one() as layer:
            return layer(*args, **kwargs)  # type: ignore[no-any-return]

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptUnknown, Tensor]:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Layer`."""
        # each model's rows lie together, since it is asked alone
        inputs = under_every_mask(inputs, graph).transpose(0, 1).contiguous()  # [models or 1, N, widths]

        @torch.no_grad()  # each thread has its own switch
        def under(masks: list[int]) -> list[Tensor]:
            found = []
            for mask in masks:
                nodes = slice(mask * graph.size, (mask + 1) * graph.size)
                edges, number = self._edges(graph, nodes)
                asked = [self.ask(k, inputs[k % len(inputs), nodes], edges, number) for k in range(len(self.layers))]
                found.append(torch.stack(asked))
            return found

        groups = [[mask] for mask in range(inputs.shape[1] // graph.size)]
        made = torch.cat(spread(under, groups, device=inputs.device, workers=None if self.threads else 1), dim=1)
        return KeptUnknown(layer=self, graph=graph, inputs=inputs, made=made[:, :0], limit=limit), made.transpose(0, 1)

    def _edges(self, graph: MaskedGraph, nodes: slice) -> tuple[Tensor, Tensor]:
        """All edges under one mask [2, edges], and which edge of the graph each is."""
        first = nodes.start
        entry, owner = expand(graph.sources.start[nodes], graph.sources.count[nodes])
        looped = (graph.loops[nodes] > 0).nonzero().squeeze(1)
        sender = torch.cat([graph.sources.other[entry] - first, looped])
        receiver = torch.cat([owner, looped])
        if self.step.both_ways:  # an edge to a node that is not there would count among those of its sender
            there = graph.members[receiver + first]
            sender, receiver = sender[there], receiver[there]
        number, pair = graph.copies.between(sender, receiver)
        return torch.stack([sender[pair], receiver[pair]]), number


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptUnknown:
    """The layer's inputs under every mask, [models or 1, N, widths]."""

    layer: Unknown
    graph: MaskedGraph
    inputs: Tensor
    made: Tensor  # its outputs without rows, [models, 0, width]: how wide they are, and of which type
    limit: int

    def toggle(self, changed: Tensor | None, step: Step) -> Toggled:
        """See :class:`~glasshouse.graph.rule.incremental.layer.Kept`."""
        ball, (models, _, width) = step.ball, self.made.shape
        made = self.made.new_empty(models, len(ball.node), width)
        for rows, nets in self._nets(step):
            place, _ = lookup(nets.target * len(self.graph.members) + nets.node, ball.keys[rows])
            for model, values in enumerate(self._values(nets, step.source, changed)):
                answer = self.layer.ask(model, values, nets.edges, nets.edge_number)
                torch.index_select(answer, 0, place, out=made[model, rows])
        return Toggled(made.transpose(0, 1))

    def _nets(self, step: Step) -> Iterator[tuple[slice, EgoNets]]:
        """Rows of the step's ball, and a query about them, which has all that they see."""
        layer, ball, rings = self.layer, step.ball, step.rings
        limit = self.limit if self.inputs.is_cuda else min(self.limit, _NEAR)
        width = (sum(layer.widths) + layer.width + layer.inside) * self.made.element_size()
        # a whole model is asked about nothing that is not in the graph, so no rows stand in for the outermost senders
        counted = layer.beyond == 1 and layer.classes is None
        how: dict[str, Any] = {"hops": layer.hops, "degrees": layer.beyond, "counted": counted}
        if layer.shares_senders:  # whole rows are packed, not whole targets: a row's net has all that the row sees
            cost = self._seen[ball.node] * (_VALUES * width + 64)
            for rows in slices_within(cost, limit if rings.splits else math.inf):
                yield rows, draw_ego_nets(rings, ball.keys[rows], own=step.source.keys, **how)
            return
        starts = starts_of(ball.target, len(rings.targets))
        most = self.graph.size + len(self.graph.copies.number)
        cost = segment_sum(self._seen[ball.node].unsqueeze(1), starts).squeeze(1).clamp(max=most) * _INDEX_BYTES
        start = starts.tolist()
        for part in slices_within(cost, self.limit):
            nets = draw_ego_nets(rings, ball.keys[start[part.start] : start[part.stop]], **how)
            for some, net in nets.parts(part, each=2 * width, limit=limit):
                yield slice(start[some.start], start[some.stop]), net

    def _values(self, nets: EgoNets, source: Ball, changed: Tensor | None) -> Iterator[Tensor]:
        """For each model the inputs of the nets' rows, [rows, widths]: new in the source ball, kept elsewhere."""
        models = len(self.layer.layers)
        if changed is None and len(self.inputs) == 1:
            yield from [self.inputs[0].index_select(0, nets.node)] * models
            return
        place, found = lookup(source.keys, nets.target * len(self.graph.members) + nets.node)
        fresh = found.nonzero().squeeze(1)
        place = place[fresh]
        for model in range(models):
            values = self.inputs[model % len(self.inputs)].index_select(0, nets.node)
            if changed is not None:
                values[fresh] = changed[:, model % changed.shape[1]].index_select(0, place)
            yield values

    @cached_property
    def _seen(self) -> Tensor:
        """Rows that the net of each node's row has at most, [N]; found once, since toggles come in many parts."""
        layer, sources = self.layer, self.graph.sources
        seen = torch.ones_like(self.graph.degree, dtype=torch.float64).unsqueeze(1)
        for _ in range(layer.hops if layer.shares_senders else layer.hops + layer.beyond):
            total = segment_sum(seen[sources.other], sources.start) + 1
            seen = total.clamp(max=float(self.graph.size))
        if layer.shares_senders:  # senders with rows of their own are among the rows of the ball: counted twice
            seen = seen * (1 + layer.beyond)
        return seen.squeeze(1)
