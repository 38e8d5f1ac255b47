"""The engine for all questions of an attack, chosen for the work that they are together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.toggle.cost import MODELS_PER_AUDIT
from glasshouse.graph.rule.toggle.losses import engine_names

__all__ = ["settled_engine"]

_ENTRIES = 1 << 24  # of masks that stand for an attack's work: where there are more, every engine is worth its start


def settled_engine(
    models: Sequence[Model],
    data: Any,
    masks: BoolArray,
    nodes: IntArray | None,
    *,
    work: int,
    least: int = 1,
    hops: Hops = "model",
) -> str:
    """The engine that all of the models get in an attack of so much work; ``"auto"`` if they get several.

    One question alone might seem not to be worth compiling for.

    Args:
        models: those that are asked.
        data: the graph of n nodes.
        masks: [M, n] some of the training sets.
        nodes: the nodes that are asked about; None for all.
        work: how many pairs of a model and a training set the attack asks about, of all its targets.
        least: how many training sets the largest question has.
        hops: see `toggle_losses`.

    Example:
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> model = build_gnn("gcn", features=2, hidden=4, classes=2)
        >>> [settled_engine([model], data, np.ones((1, 2), dtype=bool), None, work=work) for work in (8, 10**9)]
        ['layered', 'compiled']
    """
    asked = torch.arange(int(data.num_nodes)) if nodes is None else torch.from_numpy(nodes)
    count = round(work / MODELS_PER_AUDIT)  # an audit of usual size with so many masks is as much work
    count = max(least, min(count, _ENTRIES // max(int(data.num_nodes), 1)))
    many = torch.from_numpy(masks[np.arange(count) % len(masks)])
    names = set(engine_names(models, data, many, asked, hops=hops))
    return names.pop() if len(names) == 1 else "auto"
