from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggle import toggle_losses
from tests.graph.random_graphs import Case, depths, random_cases, random_models, seeds

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BOTH: tuple[Hops, ...] = ("model", "affected")


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=random_cases(), layers=depths, seed=seeds)
def test_kernels_give_the_rule_as_written(architecture: str, case: Case, layers: int, seed: int) -> None:
    models = [model.to(DEVICE) for model in random_models(architecture, layers=layers, seed=seed)]
    for hops in BOTH:
        slow = reference_losses(models, case.data, case.masks, case.nodes, hops=hops)
        fast = toggle_losses(models, case.data, case.masks, case.nodes, engine="layered", hops=hops)
        torch.testing.assert_close(fast.cpu(), slow.cpu(), atol=1e-7, rtol=0)
