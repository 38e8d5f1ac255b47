"""The engines for black boxes: packed ego-nets, and whole graphs.

Packed: a model is a layer of unknown type (`glasshouse.graph.rule.incremental.any_layer`). It is asked once per mask
about the graph as it is, and then only about the toggled side of each pair (v, mask), on nets just large enough to be
exact for any model; many nets are one query. Whole: for models whose answers depend on all nodes, one query per model,
mask and node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from glasshouse.core.progress import open_bar
from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.rule.engines import Stack, audit_values, register_engine
from glasshouse.graph.rule.incremental.engine import Layered
from glasshouse.graph.rule.incremental.program import Asking
from glasshouse.graph.rule.question import Question, Toggles
from glasshouse.graph.rule.reference import induced_losses

_PACKED_RATE = 1e-7  # seconds for one value on two cores


@register_engine("packed", rank=90)
class Packed(Layered):
    """Any callable ``(x, edge_index) -> logits`` whose predictions depend on ``hops`` steps along the edges.

    Example:
        >>> from glasshouse.graph.models.profile import ModelProfile
        >>> Packed().supports(Stack([Profiled(lambda x, edge_index: x, ModelProfile())]), None)
        True
    """

    asking: ClassVar[Asking] = "model"

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return not any(model.profile.everywhere for model in models)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return _PACKED_RATE * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`; it keeps one mask at a time."""
        found = []
        with open_bar(total=len(question.masks), label="Black-box queries", unit="masks") as done:
            for mask in question.masks:
                found.append(super().toggles(models, replace(question, masks=mask.unsqueeze(0)), memory=memory))
                done(1)
        return Toggles(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))


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
