"""A message-passing layer of any type: the layer itself computes the rows that change, on everything that they see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from glasshouse.graph.programs.program import MessageStep, filled
from glasshouse.graph.rule.toggle.balls import Ball, Rings
from glasshouse.graph.rule.toggle.layers.base import Cost, Toggled, under_every_mask
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.nets import Nets, draw_nets
from glasshouse.graph.rule.toggle.segments import expand, lookup, segment_sum, slices_within

__all__ = ["Unknown"]

_COPIES = 6  # of a layer's inputs and outputs while it works


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """A layer that is asked itself; exact if a row depends on senders up to ``hops`` away and on their degrees.

    Args:
        step: how the program calls it.
        layers: the layer of each model.
        widths: of the values that it reads, which lie side by side in its input.
        width: of its output.
        edges: by name, values of the edges that it reads, [edges, models or 1, ...].
        item: bytes of one value.
    """

    step: MessageStep
    layers: Sequence[nn.Module]
    widths: tuple[int, ...]
    width: int
    edges: Mapping[str, Tensor]
    item: int = 4

    @classmethod
    def of(
        cls,
        step: MessageStep,
        layers: Sequence[nn.Module],
        *,
        widths: tuple[int, ...],
        edges: Mapping[str, Tensor],
        sample: Tensor,
    ) -> Unknown:
        """A layer, whose width is found by asking it about a few rows [rows, models or 1, widths] and one edge."""
        layer = cls(step=step, layers=layers, widths=widths, width=0, edges=edges, item=sample.element_size())
        edge = torch.tensor([[0], [1]], device=sample.device)[:, : min([1, *map(len, edges.values())])]
        return replace(layer, width=int(layer.ask(0, sample[:, 0], edge, torch.zeros_like(edge[0])).shape[1]))

    @property
    def hops(self) -> int:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        return self.step.hops

    @property
    def counts_senders(self) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`: it may."""
        return True

    @property
    def divides_by_degree(self) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        return self.step.by_degree

    @property
    def beyond(self) -> int:
        """How many steps beyond its hops a net must go; see ``draw_nets``."""
        return 2 if self.step.both_ways else int(self.step.by_degree)

    def cost(self, *, shared: bool) -> Cost:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`; it splits its own work on nets."""
        inputs = sum(self.widths) * self.item
        kept = (inputs if shared else inputs * len(self.layers)) + self.width * self.item * len(self.layers)
        return Cost(node=kept, row=2 * kept, path=32)

    def ask(self, number: int, rows: Tensor, edge_index: Tensor, edge_number: Tensor) -> Tensor:
        """One model's answer [rows, width] for inputs [rows, widths] and copies of the graph's edges."""
        given: dict[str, Any] = dict(zip(self.step.inputs, rows.split(list(self.widths), dim=1), strict=True))
        given["edge_index"] = edge_index
        for name, values in self.edges.items():
            given[name] = values[edge_number, number if values.shape[1] > 1 else 0]
        answer: Tensor = self.layers[number](*filled(self.step.args, given), **filled(dict(self.step.kwargs), given))
        return answer

    def keep(self, inputs: Tensor, graph: MaskedGraph, *, limit: int) -> tuple[KeptUnknown, Tensor]:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Layer`."""
        inputs = under_every_mask(inputs, graph)
        made = inputs.new_empty(len(inputs), len(self.layers), self.width)
        for first in range(0, len(inputs), graph.size):
            nodes = torch.arange(first, first + graph.size, device=inputs.device)
            entry, owner = expand(graph.sources.start[nodes], graph.sources.count[nodes])
            looped = (graph.loops[nodes] > 0).nonzero().squeeze(1)
            sender = torch.cat([graph.sources.other[entry] - first, looped])
            receiver = torch.cat([owner, looped])
            if self.step.both_ways:  # an edge to a node that is not there would count among those of its sender
                there = graph.members[receiver + first]
                sender, receiver = sender[there], receiver[there]
            number, pair = graph.copies.between(sender, receiver)
            edges = torch.stack([sender[pair], receiver[pair]])
            for model in range(len(self.layers)):
                own = inputs[nodes, model if inputs.shape[1] > 1 else 0]
                made[nodes, model] = self.ask(model, own, edges, number)
        return KeptUnknown(layer=self, graph=graph, inputs=inputs, limit=limit), made


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptUnknown:
    """The layer's inputs under every mask, [N, models or 1, widths]."""

    layer: Unknown
    graph: MaskedGraph
    inputs: Tensor
    limit: int

    def toggle(self, changed: Tensor | None, rings: Rings, *, inner: int, outer: int) -> Toggled:
        """See :class:`~glasshouse.graph.rule.toggle.layers.base.Kept`."""
        ball, source = rings.balls[outer], rings.balls[inner]
        made = self.inputs.new_empty(len(ball.node), len(self.layer.layers), self.layer.width)
        for rows in slices_within(self._costs(ball), self.limit):
            # whole rows are packed, not whole targets: a row's net has all that the row sees
            keys = ball.keys[rows]
            targets = keys // len(self.graph.members)
            # an added target sends, so it needs a row in its net
            first, last = int(targets[0]), int(targets[-1]) + 1
            wanted = torch.unique(torch.cat([keys, ball.keys[ball.centre[first:last]]]))
            nets = draw_nets(
                self.graph,
                rings.targets,
                rings.removes,
                wanted,
                hops=self.layer.hops,
                degrees=self.layer.beyond,
                counted=self.layer.beyond == 1,
                own=source.keys if self.layer.hops == 1 and self.layer.beyond < 2 else None,
            )
            values = self._values(nets, source, changed)
            place, _ = lookup(nets.target * len(self.graph.members) + nets.node, keys)
            for model in range(len(self.layer.layers)):
                own = values[:, model if values.shape[1] > 1 else 0]
                made[rows, model] = self.layer.ask(model, own, nets.edges, nets.edge_number)[place]
        return Toggled(made)

    def _values(self, nets: Nets, source: Ball, changed: Tensor | None) -> Tensor:
        """Inputs of the nets' rows, [rows, models or 1, widths]: new in the source ball, kept elsewhere."""
        values = self.inputs[nets.node]
        if changed is not None:
            place, found = lookup(source.keys, nets.target * len(self.graph.members) + nets.node)
            values[found] = changed[place[found]]
        return values

    def _costs(self, ball: Ball) -> Tensor:
        """Bytes that the net of each row of a ball takes at most, [rows]."""
        return self._net_bytes[ball.node]

    @cached_property
    def _net_bytes(self) -> Tensor:
        """The same for every node in the union of masks, [N]; found once, since toggles come in many parts."""
        sources = self.graph.sources
        seen = torch.ones_like(self.graph.degree, dtype=torch.float64).unsqueeze(1)
        for _ in range(self.layer.hops + self.layer.beyond):
            total = segment_sum(seen[sources.other], sources.start) + 1
            seen = total.clamp(max=float(self.graph.size))
        layer = self.layer
        width = (sum(layer.widths) * (self.inputs.shape[1] + 1) + layer.width) * layer.item
        return seen.squeeze(1) * (_COPIES * width + 64)
