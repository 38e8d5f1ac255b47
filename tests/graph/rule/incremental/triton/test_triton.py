from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glasshouse.core.outputs import tensor_losses
from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
from glasshouse.graph.rule.incremental.program import row_losses
from glasshouse.graph.rule.incremental.triton import narrow_sums
from glasshouse.graph.rule.incremental.triton_maximum import plain_maxima
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import Case, depths, random_cases, random_models, seeds
from tests.graph.rule.incremental.test_engine import hub_case

BOTH: tuple[Hops, ...] = ("model", "affected")
FEW = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
@FEW
@given(case=random_cases(), layers=depths, seed=seeds)
def test_kernels_give_the_rule_as_written(
    device: torch.device, architecture: str, case: Case, layers: int, seed: int
) -> None:
    models = random_models(architecture, layers=layers, seed=seed)
    for hops in BOTH:
        slow = reference_losses(models, case.data, case.masks, case.nodes, hops=hops)
        there = [model.to(device) for model in models]
        fast = toggle_losses(there, case.data, case.masks, case.nodes, engine="layered", hops=hops).cpu()
        torch.testing.assert_close(fast, slow, atol=1e-7, rtol=0)
        models = [model.cpu() for model in models]


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
def test_hubs_are_exact_with_kernels_in_float32(device: torch.device, architecture: str) -> None:
    case, models = hub_case(30), random_models(architecture, layers=2, dtype=torch.float32)
    slow = reference_losses(models, case.data, case.masks, case.nodes[:3])
    there = [model.to(device) for model in models]
    fast = toggle_losses(there, case.data, case.masks, case.nodes[:3], engine="layered").cpu()
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-5)


def test_attention_with_kernels_survives_scores_that_would_overflow(device: torch.device) -> None:
    case, models = hub_case(20), random_models("gat", layers=2, dtype=torch.float32)
    for model in models:
        model.get_parameter("convolutions.0.att_src").data *= 300
    slow = reference_losses(models, case.data, case.masks, case.nodes[:3])
    there = [model.to(device) for model in models]
    fast = toggle_losses(there, case.data, case.masks, case.nodes[:3], engine="layered").cpu()
    torch.testing.assert_close(fast, slow, atol=1e-4, rtol=1e-5)


@FEW
@given(rows=st.integers(1, 40), models=st.integers(1, 3), classes=st.integers(2, 70), seed=seeds)
def test_losses_of_kernels_are_those_of_torch(
    device: torch.device, rows: int, models: int, classes: int, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = 30 * torch.randn(rows, models, classes, generator=random)
    labels = torch.randint(classes, (rows,), generator=random)
    found = row_losses(logits.to(device), labels.to(device)).cpu()
    torch.testing.assert_close(found, tensor_losses(logits, labels.unsqueeze(1)), atol=0, rtol=3e-6)


@FEW
@given(counts=st.lists(st.integers(0, 300), min_size=1, max_size=4), width=st.integers(1, 9), seed=seeds)
def test_sums_of_long_segments_are_those_of_a_loop(
    device: torch.device, counts: list[int], width: int, seed: int
) -> None:
    values = torch.randn(sum(counts), width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    start = torch.tensor([0, *counts]).cumsum(0)
    found = narrow_sums(values.to(device), start.to(device)).cpu()
    expected = torch.stack([part.sum(0) for part in values.split(counts)])
    torch.testing.assert_close(found, expected)


@FEW
@given(case=random_cases(masks=3), width=st.integers(1, 150), seed=seeds)
def test_plain_maxima_are_those_of_torch(device: torch.device, case: Case, width: int, seed: int) -> None:
    size = int(case.data.num_nodes)
    graph = mask_graph(coalesce(case.data.edge_index.to(device), size, torch.float64), case.masks.to(device))
    values = torch.randn(3 * size, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(device)
    values = values.round(decimals=1)  # ties
    found = plain_maxima(values, graph)
    for row, (first, last) in enumerate(zip(graph.sources.start[:-1], graph.sources.start[1:], strict=True)):
        senders = [*graph.sources.other[first:last].tolist(), *([row] if graph.loops[row] > 0 else [])]
        wanted = values[senders].amax(0) if senders else torch.full_like(values[0], -torch.inf)
        assert torch.equal(found[row], wanted)


def test_plain_maxima_of_a_hub_with_hundreds_of_senders(device: torch.device) -> None:
    edges = torch.stack([torch.arange(1, 301), torch.zeros(300, dtype=torch.long)])
    graph = mask_graph(coalesce(edges.to(device), 301, torch.float32), torch.ones(1, 301, dtype=torch.bool).to(device))
    values = torch.randn(301, 5, generator=torch.Generator().manual_seed(0)).to(device)
    assert torch.equal(plain_maxima(values, graph)[0], values[1:].amax(0))
