"""The engine for all questions of the stacked attack, chosen for the work that they are together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, IntArray
from glasshouse.attacks.stacking.plan import TargetPlan
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.toggle import MODELS_PER_AUDIT, engine_names

__all__ = ["settled_engine", "work_of"]


def work_of(plan: TargetPlan, sampled_models: NDArray[np.intp], rounds: Sequence[int]) -> int:
    """How many pairs of a model and a training set are asked about every node: by the pool, and by one target.

    Args:
        plan: which shadow models play the target.
        sampled_models: [S] rows of the pool that are asked about sampled training sets.
        rounds: number of training sets in each round; those of the first are shared by all targets.

    Example:
        >>> from glasshouse.attacks.stacking.plan import plan_targets
        >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
        >>> plan = plan_targets(members, targets=4, seed=0)  # each target has two references
        >>> work_of(plan, np.arange(4), (8,)), work_of(plan, np.arange(4), (8, 2))
        (40, 74)
    """
    first, later = rounds[0], sum(rounds[1:])
    simulated = sum(1 + int(np.isin(rows, sampled_models).sum()) for rows in plan.references)
    return first * (len(sampled_models) + 1) + later * (simulated + len(sampled_models) + 1)


def settled_engine(
    models: Sequence[Model], data: Data, masks: BoolArray, nodes: IntArray | None, *, work: int, least: int = 1
) -> str:
    """The engine that all of the models get in an attack of so much work; ``"auto"`` if they get several.

    One question alone might seem not to be worth compiling for.

    Args:
        models: those that are asked.
        data: the graph of n nodes.
        masks: [M, n] some of the training sets.
        nodes: the nodes that are asked about; None for all.
        work: see `work_of`.
        least: how many training sets the largest question has.
    """
    asked = torch.arange(int(data.num_nodes)) if nodes is None else torch.from_numpy(nodes)
    count = max(least, round(work / MODELS_PER_AUDIT))  # an audit of usual size with so many is as much work
    many = torch.from_numpy(masks[np.arange(count) % len(masks)])
    names = set(engine_names(models, data, many, asked))
    return names.pop() if len(names) == 1 else "auto"
