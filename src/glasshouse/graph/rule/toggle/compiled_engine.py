"""The compiled kernels as an engine: the fastest on the CPU, for two-layer models on a plain symmetric graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch_geometric.data import Data

from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question, check_width
from glasshouse.graph.rule.toggle.compiled import compiled_toggles, supports
from glasshouse.graph.rule.toggle.compiled.reduction import reduced
from glasshouse.graph.rule.toggle.cost import audit_values
from glasshouse.graph.rule.toggle.registry import register_engine
from glasshouse.graph.rule.toggles import Toggles

__all__ = ["Compiled"]

_COMPILATION = 4.5  # seconds on one core
_RATE = 8e-10  # seconds for one value on two cores


@register_engine("compiled", rank=0)
class Compiled:
    """What reduces to two layers of GCN, GAT or GraphSAGE-max in float32; anything else goes to the next engine.

    Example:
        >>> import torch
        >>> from glasshouse.graph.rule.question import ask
        >>> data = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2))
        >>> question = ask(data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
        >>> Compiled().supports([lambda x, edge_index: x], question)
        False
    """

    apart: ClassVar[bool] = True

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        return supports(models, _data(question), question.hops)

    def seconds(self, models: Sequence[Model], question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`; as if the kernels had to be compiled."""
        return _COMPILATION + _RATE * audit_values(models[0], question)

    def toggles(self, models: Sequence[Model], question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`; it keeps one mask at a time."""
        layers = reduced(models[0]) or [None]
        check_width(question.x.new_empty(0, int(layers[-1].out_channels)), question)
        return compiled_toggles(models, _data(question), question.masks, question.nodes, hops=question.hops)


def _data(question: Question) -> Data:
    return Data(x=question.x, edge_index=question.edge_index, y=question.labels.clamp(min=0))
