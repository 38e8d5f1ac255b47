from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.core.errors import InputError
from glasshouse.graph.models.networks import GNN
from glasshouse.graph.rule.two_layers import gcn
from glasshouse.graph.rule.two_layers.engine import stack_models, supports
from tests.graph.random_graphs import CLASSES, random_models
from tests.graph.simple_graphs import KERNELS, simple_graph, unmeasured

DATA = simple_graph(size=8, edges=10, seed=0)


def models(name: str, **options: int) -> list[GNN]:
    return random_models(name, **({"layers": 2} | options), dtype=torch.float32)


def with_edges(*pairs: tuple[int, int]) -> Data:
    more = torch.tensor(pairs).T
    return Data(x=DATA.x, edge_index=torch.cat([DATA.edge_index, more], dim=1), y=DATA.y)


@pytest.mark.parametrize("name", KERNELS)
def test_two_layers_of_one_shape_on_a_plain_graph_are_taken(name: str) -> None:
    assert supports(unmeasured(models(name)), DATA)


@pytest.mark.parametrize(
    "other",
    [
        models("gin"),
        models("gcn", layers=3),
        [*models("gcn"), *models("gat")],
        [model.double() for model in models("gcn")],
        [lambda x, edge_index: x],
        [],
    ],
    ids=["no kernels", "three layers", "two shapes", "float64", "a black box", "none"],
)
def test_what_the_kernels_do_not_know_is_left_to_other_engines(other: list[object]) -> None:
    assert not supports(unmeasured(other), DATA)


def test_graphs_with_edges_one_way_or_twice_are_left_and_loops_where_they_matter() -> None:
    assert not supports(unmeasured(models("gcn")), with_edges((0, 7)))
    assert not supports(unmeasured(models("gcn")), with_edges((0, 7), (7, 0), (0, 7), (7, 0)))
    assert supports(unmeasured(models("gcn")), with_edges((3, 3)))
    assert not supports(unmeasured(models("sage")), with_edges((3, 3)))


def test_a_problem_has_room_for_every_model_and_labels_that_can_be_looked_up() -> None:
    unlabelled = Data(x=DATA.x, edge_index=DATA.edge_index, y=torch.tensor([-1, 99, *DATA.y[2:].tolist()]))
    problem = stack_models(unmeasured(models("gcn", count=3)), unlabelled, threads=1)
    assert problem.architecture is gcn
    assert problem.new_state().loss.shape == (8, 3)
    assert problem.new_scratch().signal.shape == (3,)
    assert problem.graph.label[:2].tolist() == [-1, CLASSES - 1]  # no label, no loss
    assert np.array_equal(problem.graph.label[2:], DATA.y[2:].numpy())
    with pytest.raises(InputError, match="no compiled kernels"):
        stack_models(unmeasured(models("gin")), DATA)
