from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch_geometric.data import Data

from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental import maximum
from glasshouse.graph.rule.incremental.maximum import Maximum, SparseMaximum, for_features
from glasshouse.graph.rule.incremental.segments import sparse_rows
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import Case, depths, random_cases, random_models, seeds

MANY = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def bag_of_words(case: Case) -> Data:
    """The case's graph with few non-zero features, with ties."""
    data = case.data.clone()
    data.x = data.x.clamp(min=0).mul(2).round()
    data.x[::3] = 0
    return data


@MANY
@given(case=random_cases(), layers=depths, seed=seeds)
def test_lists_of_features_give_the_rule_as_written(
    monkeypatch: pytest.MonkeyPatch, case: Case, layers: int, seed: int
) -> None:
    monkeypatch.setattr(maximum, "_MOST", 1.0)
    data = bag_of_words(case)
    models = profile_models(random_models("sage", layers=layers, seed=seed), data)
    slow = reference_losses(models, data, case.masks, case.nodes)
    for memory in (2**30, 1):
        fast = toggle_losses(models, data, case.masks, case.nodes, engine="layered", memory=memory)
        torch.testing.assert_close(fast, slow, atol=1e-7, rtol=0)


def test_only_sparse_features_that_are_not_negative_are_kept_in_lists() -> None:
    layer, edges = Maximum(weight=torch.ones(1, 50, 2), root=None, bias=None), torch.tensor([[0], [1]])
    assert isinstance(for_features(layer, torch.eye(50), edges), SparseMaximum)
    assert for_features(layer, -torch.eye(50), edges) is layer
    assert for_features(layer, torch.ones(50, 50), edges) is layer


def test_memory_does_not_grow_with_the_number_of_features() -> None:
    edges = torch.tensor([[0], [1]])

    def bytes_of_a_node(width: int) -> int:
        layer = Maximum(weight=torch.ones(1, width, 2), root=None, bias=None)
        return for_features(layer, torch.eye(50, width), edges).cost(shared=True).node

    assert bytes_of_a_node(5000) == bytes_of_a_node(50)


def test_rows_by_a_weight_are_those_of_the_dense_features() -> None:
    x, weight = torch.eye(6)[:, :4] * 3, torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    dense = torch.einsum("nf,mfo->nmo", x, weight).reshape(6, -1)
    torch.testing.assert_close(sparse_rows(x).times(weight), dense)
