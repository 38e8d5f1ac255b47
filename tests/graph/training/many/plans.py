"""What training in one pass decides about models, seen while it trains them, since deciding it takes as long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from torch import nn

from glasshouse.core.arrays import BoolArray
from glasshouse.graph import GNNTrainer
from glasshouse.graph.training import trainer as training
from glasshouse.graph.training.many.program import Plan


def train_by_plan(
    trainer: GNNTrainer, data: Any, members: BoolArray, seeds: Sequence[int]
) -> tuple[list[nn.Module], Plan]:
    """The models of `GNNTrainer.train_many`, and the plan by which all were trained; fails if there was none."""
    plans: list[Plan | str] = []
    make = training._plan

    def kept(*given: Any) -> Plan | str:
        plans.append(make(*given))
        return plans[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "_plan", kept)
        models = trainer.train_many(data, members, seeds)
    (plan,) = plans
    assert isinstance(plan, Plan), plan
    return models, plan
