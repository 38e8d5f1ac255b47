"""The compiled kernels as an engine: first choice on the CPU, for two-layer models on a plain symmetric graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.gnn import GNN
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question, check_width
from glasshouse.graph.rule.toggle.compiled import compiled_losses, supports
from glasshouse.graph.rule.toggle.registry import register_engine

__all__ = ["Compiled"]


@register_engine("compiled", rank=0)
class Compiled:
    """Two-layer GCN, GAT and GraphSAGE-max in float32; anything else goes to the next engine.

    Example:
        >>> from glasshouse.graph.rule.question import ask
        >>> data = Data(x=torch.zeros(2, 3), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(2))
        >>> question = ask(data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
        >>> Compiled().supports([lambda x, edge_index: x], question)
        False
    """

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        if any(type(model) is not GNN for model in models):
            return False
        single = all(p.dtype == torch.float32 for model in models for p in cast("GNN", model).parameters())
        return single and supports(models, _data(question), question.hops)

    def signals(self, models: Sequence[Model], question: Question, *, memory: int) -> Tensor:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`; it keeps one mask at a time."""
        known = [cast("GNN", model) for model in models]
        check_width(question.x.new_empty(0, int(known[0].convolutions[-1].out_channels)), question)  # type: ignore[arg-type]
        return torch.from_numpy(
            compiled_losses(known, _data(question), question.masks, question.nodes, hops=question.hops)
        )


def _data(question: Question) -> Data:
    return Data(x=question.x, edge_index=question.edge_index, y=question.labels.clamp(min=0))
