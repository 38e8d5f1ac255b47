from __future__ import annotations

import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.graph.models.networks import GNN
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import Case, architectures, depths, random_cases, random_models, seeds


class Opaque:
    """A model that can only be asked."""

    def __init__(self, model: GNN) -> None:
        self._model, self.hops, self.queries = model, model.hops, 0

    def __call__(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.queries += 1
        return self._model(x, edge_index)  # type: ignore[no-any-return]


@settings(max_examples=25, deadline=None)
@given(case=random_cases(), architecture=architectures, layers=depths, seed=seeds)
def test_a_black_box_gets_the_same_numbers(case: Case, architecture: str, layers: int, seed: int) -> None:
    boxes = [Opaque(model) for model in random_models(architecture, layers=layers, seed=seed, count=1)]
    models, some = profile_models(boxes, case.data), case.nodes.flip(0)[::2]
    for hops in ("model", "affected"):
        slow = reference_losses(models, case.data, case.masks, some, hops=hops)
        fast = toggle_losses(models, case.data, case.masks, case.nodes, hops=hops)
        torch.testing.assert_close(fast[:, :, some], slow, atol=1e-7, rtol=0)


@settings(max_examples=10, deadline=None)
@given(case=random_cases(masks=3))
def test_it_is_asked_twice_a_mask(case: Case) -> None:
    """Once for the graph as it is, once for all toggles together."""
    box = Opaque(random_models("gcn", layers=2, count=1)[0])
    known = profile_models([box], case.data)
    measured = box.queries
    toggle_losses(known, case.data, case.masks, case.nodes)
    assert box.queries - measured == 2 * len(case.masks)


def test_little_memory_means_more_queries_and_the_same_numbers() -> None:
    box = Opaque(random_models("gcn", layers=2, count=1)[0])
    generator = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(20, 5, generator=generator, dtype=torch.float64),
        edge_index=torch.randint(0, 20, (2, 40), generator=generator),
        y=torch.zeros(20, dtype=torch.long),
    )
    masks, nodes = torch.rand(1, 20, generator=generator) < 0.7, torch.arange(20)
    known = profile_models([box], data)
    roomy = toggle_losses(known, data, masks, nodes)
    few = box.queries
    tight = toggle_losses(known, data, masks, nodes, memory=1)
    assert box.queries - few == 1 + len(nodes)
    torch.testing.assert_close(tight, roomy, atol=1e-5, rtol=0)
