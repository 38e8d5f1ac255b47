"""The engine for models whose answers depend on the whole graph: one query per model, mask and node."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.reference import induced_losses
from glasshouse.graph.rule.toggle.cost import audit_values
from glasshouse.graph.rule.toggle.registry import register_engine
from glasshouse.graph.rule.toggles import Toggles
from glasshouse.progress import open_bar

__all__ = ["Whole"]

_RATE = 1e-9  # seconds for one value on two cores

_LOG = logging.getLogger("glasshouse")
_WORTH_SAYING = 5.0  # seconds


@register_engine("whole", rank=80)
class Whole:
    """Models with GraphNorm, a virtual node or attention over all nodes: they need a whole graph.

    There is one query per mask for its graph, and one more per node, with the node added or removed.

    Example:
        >>> Whole().supports([lambda x, edge_index: x], None)
        False
    """

    apart: ClassVar[bool] = True

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        return any(manners_of(model).everywhere for model in models)

    def seconds(self, models: Sequence[Model], question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`; one node's share of a query is taken as a row."""
        return _RATE * question.size * audit_values(models[0], question)

    def toggles(self, models: Sequence[Model], question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`; it does not use ``memory``."""
        shape = (len(models), len(question.masks), len(question.nodes))
        found = torch.empty(2, *shape, dtype=torch.float64, device=question.x.device)
        self._say_cost(models, question)
        with open_bar(total=shape[0] * shape[1], label="Whole-graph queries", unit="masks") as done:
            for i in range(shape[1]):
                for k in range(shape[0]):
                    found[:, k, i] = _under_mask(models[k], question, question.masks[i])
                    done(1)
        return Toggles(*found)

    def _say_cost(self, models: Sequence[Model], question: Question) -> None:
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


def _under_mask(model: Model, question: Question, mask: Tensor) -> Tensor:
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
