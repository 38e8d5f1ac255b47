"""A graph is a population like any other: a pool knows it by its fingerprint, and its nodes by their ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.core.errors import InputError
from glasshouse.data import AnyPopulation, as_population
from glasshouse.graph.data.population import GraphPopulation
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.pool import ShadowPool

PARTS = {"x": torch.eye(3), "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": torch.tensor([0, 1, 0])}


def fingerprint(**more: Any) -> str:
    return GraphPopulation(Data(**(PARTS | more))).fingerprint()


def test_a_graph_is_a_population() -> None:
    population = as_population(Data(**PARTS))
    assert isinstance(population, AnyPopulation)
    assert (len(population), population.ids.tolist(), population.independent) == (3, ["0", "1", "2"], False)
    assert as_population(population) is population


def test_features_edges_labels_and_whatever_else_is_there_have_a_part_in_the_fingerprint() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"x": torch.ones(3, 3)},
        {"edge_index": torch.tensor([[1, 0], [0, 1]])},
        {"y": torch.tensor([1, 1, 0])},
        {"edge_weight": torch.ones(2)},
        {"edge_weight": torch.zeros(2)},
        {"train_mask": torch.ones(3)},
        {"name": "mine"},
    ]
    assert len({fingerprint(**one) for one in changes}) == len(changes)


def test_a_fingerprint_is_the_one_of_earlier_versions() -> None:
    """Or pools that are on disk would not be found again."""
    assert GraphPopulation(citation_graph(nodes=120, classes=3)).fingerprint() == "d5cdb86b2bd1b311"
    assert fingerprint(edge_weight=torch.ones(2), name="mine") == "86a39270802a735e"


def test_a_graph_may_bring_names_of_its_nodes() -> None:
    assert GraphPopulation(Data(**PARTS, ids=["a", "b", "c"])).ids.tolist() == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"data.ids: id 'a' is repeated"):
        _ = GraphPopulation(Data(**PARTS, ids=["a", "a", "c"])).ids


def test_nodes_that_are_alike_have_one_digest() -> None:
    first, second, third = GraphPopulation(Data(**PARTS | {"x": torch.eye(3)[[0, 1, 0]]})).digests()
    assert first == third != second


def test_a_trainer_is_called_with_the_graph_itself() -> None:
    data = Data(**PARTS)
    pool = ShadowPool.plan(data, lambda given, members, seed: (given, members), shadows=2)
    (given, members), (_, others) = pool
    assert given is data
    assert (members == np.logical_not(others)).all()
