"""The engines for black boxes: packed ego-nets, and whole graphs.

Packed: the model is asked once per mask about the graph as it is, and then only about the toggled side of each pair
(v, mask), on an ego-net just large enough to be exact for any layer; many nets are one query. Whole: for models whose
answers depend on all nodes, one query per model, mask and node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.progress import open_bar
from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.rule.ego_nets import EgoNets, draw_ego_nets
from glasshouse.graph.rule.engines import Stack, audit_values, register_engine
from glasshouse.graph.rule.incremental.balls import draw_rings
from glasshouse.graph.rule.incremental.graph import Edges, MaskedGraph, coalesced, mask_graph
from glasshouse.graph.rule.incremental.segments import bag_sum, lookup, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.question import Question, Toggles, check_width, node_losses
from glasshouse.graph.rule.reference import induced_losses

_PACKED_RATE = 1e-7  # seconds for one value on two cores
_INDEX_BYTES = 200  # index arrays for each row or edge of a net
_HIDDEN = 256  # assumed width inside a black box, to estimate its memory


@register_engine("packed", rank=90)
class Packed:
    """Any callable ``(x, edge_index) -> logits`` whose predictions depend on ``hops`` steps along the edges.

    Example:
        >>> from glasshouse.graph.models.profile import ModelProfile
        >>> Packed().supports(Stack([Profiled(lambda x, edge_index: x, ModelProfile())]), None)
        True
    """

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return not any(model.profile.everywhere for model in models)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return _PACKED_RATE * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        edges = coalesced(question.edge_index, question.size, torch.float32)
        hops = max(1, *(model.profile.hops for model in models))  # a model without edges changes nothing at 1 hop
        rows = []
        with open_bar(total=len(question.masks), label="Black-box queries", unit="masks") as done:
            for mask in question.masks:
                rows.append(_packed_under_mask(models, question, edges, mask, hops=hops, memory=memory))
                done(1)
        return Toggles(*torch.stack(rows, dim=2))


def _packed_under_mask(
    models: Sequence[Profiled],
    question: Question,
    edges: Edges,
    mask: Tensor,
    *,
    hops: int,
    memory: int,
) -> Tensor:
    """S and own losses under one mask, [2, models, nodes]."""
    graph = mask_graph(edges, mask.unsqueeze(0))
    inside = question.graph(mask[question.edge_index].all(0))
    kept = torch.stack([_losses(model, inside, question.labels, question) for model in models], dim=1)
    degrees = 2 if any(model.profile.both_ways for model in models) else 1
    radius = hops + (question.hops == "affected")  # a black box may divide by degrees, which reach one hop further
    found = kept.new_empty(2, len(question.nodes), len(models))
    for part in slices_within(_index_cost(graph, question.nodes, radius + hops + 1 + degrees), memory / 2):
        targets = question.nodes[part]
        rings = draw_rings(graph, targets, radius=radius, around=False)
        ball = rings.balls[-1]
        wanted = ball.keys[~(rings.removes[ball.target] & (ball.node == targets[ball.target]))]
        nets = draw_ego_nets(graph, targets, rings.removes, wanted, hops=hops, degrees=degrees)
        position, _ = lookup(nets.target * question.size + nets.node, wanted)
        after = torch.cat(
            [_ask(models, question, nets, part) for part in _queries(nets, question, len(targets), memory / 2)]
        )
        after = after[position]  # [wanted rows, models]
        target, node = wanted // question.size, wanted % question.size
        own = kept[targets].clone()
        centre = (node == targets[target]).nonzero().squeeze(1)  # rows of added targets
        own[target[centre]] = after[centre]
        change = after - kept[node]
        change[centre] = 0
        total = segment_sum(change, starts_of(target, len(targets)))
        found[:, part] = torch.stack([own + torch.where(rings.removes.unsqueeze(1), -total, total), own])
    return found.transpose(1, 2)


def _losses(model: Profiled, graph: Data, labels: Tensor, question: Question) -> Tensor:
    """One query: losses [rows]."""
    logits = check_width(model.logits(graph), question)
    return node_losses(logits, labels)


def _index_cost(graph: MaskedGraph, targets: Tensor, radius: int) -> Tensor:
    """Upper estimate of the bytes of index arrays that each target needs, [targets]."""
    sources = graph.sources
    rows = torch.ones_like(graph.degree, dtype=torch.float64).unsqueeze(1)
    most = float(len(graph.members) + len(sources.other))
    for _ in range(radius):
        rows = (bag_sum(rows, sources.other, sources.start) + 1).clamp(max=most)
    return rows.squeeze(1)[targets] * _INDEX_BYTES


def _queries(nets: EgoNets, question: Question, targets: int, limit: float) -> Iterator[tuple[slice, slice]]:
    """Rows and edges of each query: as many whole nets as fit."""
    row_start, edge_start = starts_of(nets.target, targets), starts_of(nets.edge_target, targets)
    width = 4 * (question.x.shape[1] + _HIDDEN)
    cost = row_start.diff() * (2 * width) + edge_start.diff() * (2 * width)
    row_start, edge_start = row_start.cpu(), edge_start.cpu()
    for part in slices_within(cost, limit):
        yield (
            slice(int(row_start[part.start]), int(row_start[part.stop])),
            slice(int(edge_start[part.start]), int(edge_start[part.stop])),
        )


def _ask(models: Sequence[Profiled], question: Question, nets: EgoNets, part: tuple[slice, slice]) -> Tensor:
    """Losses of all rows of some nets, [rows, models]."""
    rows, edges = part
    node = nets.node[rows]
    graph = question.graph(nets.edge_number[edges])
    graph.x, graph.edge_index = graph.x[node], nets.edges[:, edges] - rows.start
    return torch.stack([_losses(model, graph, question.labels[node], question) for model in models], dim=1)


_WHOLE_RATE = 1e-9  # seconds for one value on two cores

_LOG = logging.getLogger("glasshouse")
_WORTH_SAYING = 5.0  # seconds


@register_engine("whole", rank=80)
class Whole:
    """Models with GraphNorm, a virtual node or attention over all nodes: they need a whole graph.

    There is one query per mask for its graph, and one more per node, with the node added or removed.

    Example:
        >>> from glasshouse.graph.models.profile import ModelProfile
        >>> Whole().supports(Stack([Profiled(lambda x, edge_index: x.mean(0), ModelProfile(everywhere=True))]), None)
        True
    """

    apart: ClassVar[bool] = True

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return any(model.profile.everywhere for model in models)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`; one node's share of a query is taken as a row."""
        return _WHOLE_RATE * question.size * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`; it does not use ``memory``."""
        shape = (len(models), len(question.masks), len(question.nodes))
        found = torch.empty(2, *shape, dtype=torch.float64, device=question.x.device)
        self._say_cost(models, question)
        with open_bar(total=shape[0] * shape[1], label="Whole-graph queries", unit="masks") as done:
            for i in range(shape[1]):
                for k in range(shape[0]):
                    found[:, k, i] = _whole_under_mask(models[k], question, question.masks[i])
                    done(1)
        return Toggles(*found)

    def _say_cost(self, models: Sequence[Profiled], question: Question) -> None:
        """Report before the work how long it will take, if that is long."""
        queries = len(models) * len(question.masks) * (len(question.nodes) + 1)
        started = time.perf_counter()
        induced_losses(models[0], question, question.masks[0])
        seconds = queries * (time.perf_counter() - started)
        if seconds > _WORTH_SAYING:
            _LOG.warning(
                "The model's answers depend on the whole graph, so it takes %d queries of whole graphs, about %.0f s.",
                queries,
                seconds,
            )


def _whole_under_mask(model: Profiled, question: Question, mask: Tensor) -> Tensor:
    """S and own loss of every target under one mask, [2, targets]; the sum runs over all members."""
    kept = induced_losses(model, question, mask)
    found = kept.new_empty(2, len(question.nodes))
    for place, node in enumerate(question.nodes.tolist()):
        toggled = mask.clone()
        toggled[node] = ~toggled[node]
        other = induced_losses(model, question, toggled)
        with_node, without_node = (kept, other) if mask[node] else (other, kept)
        members = mask.clone()
        members[node] = False
        found[0, place] = with_node[node] + (with_node - without_node)[members].sum()
        found[1, place] = with_node[node]
    return found
