from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, PNA, GATv2Conv, GCNConv, GraphSAGE

from glasshouse.core.errors import InputError
from glasshouse.graph.models.calls import Arguments, bind_arguments, held_values

WEIGHT, SCALAR, ROWS = (("edge_weight", 1),), (("edge_attr", 1),), (("edge_attr", 2),)
BOTH = (*WEIGHT, *ROWS)


def by_weight(x: Any, edge_index: Any, edge_weight: Any = None) -> Any: ...
def by_weights(x: Any, edges: Any, *, edge_weights: Any) -> Any: ...
def by_rows(x: Any, edge_index: Any, edge_features: Any) -> Any: ...
def by_both(x: Any, edge_index: Any, edge_attr: Any = None, edge_weight: Any = None, batch: Any = None) -> Any: ...
def by_nothing(x: Any, edge_index: Any, batch: Any = None, num_sampled_nodes_per_hop: Any = None) -> Any: ...


@pytest.mark.parametrize(
    ("model", "held", "bound"),
    [
        (by_weight, (), {}),
        (by_weight, WEIGHT, {"edge_weight": "edge_weight"}),
        (by_weight, SCALAR, {"edge_weight": "edge_attr"}),
        (by_weight, ROWS, {}),
        (by_weight, BOTH, {"edge_weight": "edge_weight"}),
        (by_weights, WEIGHT, {"edge_weights": "edge_weight"}),
        (by_rows, ROWS, {"edge_features": "edge_attr"}),
        (by_rows, WEIGHT, {"edge_features": "edge_weight"}),
        (by_both, BOTH, {"edge_attr": "edge_attr", "edge_weight": "edge_weight"}),
        (by_both, WEIGHT, {"edge_weight": "edge_weight"}),
        (by_both, SCALAR, {"edge_attr": "edge_attr"}),
        (by_nothing, BOTH, {}),
        (partial(by_weight, edge_weight=None), WEIGHT, {"edge_weight": "edge_weight"}),
        (GCN(2, 4, 2), BOTH, {"edge_weight": "edge_weight"}),
        (GCN(2, 4, 2), ROWS, {}),
        (GAT(2, 4, 2, edge_dim=3), BOTH, {"edge_attr": "edge_attr"}),
        (GAT(2, 4, 2, edge_dim=1), WEIGHT, {"edge_attr": "edge_weight"}),
        (GAT(2, 4, 2, v2=True), BOTH, {}),
        (GraphSAGE(2, 4, 2), BOTH, {}),
        (GIN(2, 4, 2), BOTH, {}),
        (
            PNA(2, 4, 2, aggregators=["sum"], scalers=["identity"], deg=torch.ones(3), edge_dim=3),
            ROWS,
            {"edge_attr": "edge_attr"},
        ),
        (GCNConv(2, 2), WEIGHT, {"edge_weight": "edge_weight"}),
        (GATv2Conv(2, 2), BOTH, {}),
        (len, WEIGHT, {}),
    ],
)
def test_parameters_get_the_values_that_their_names_mean(model: Any, held: Any, bound: dict[str, str]) -> None:
    found = bind_arguments(model, held)
    assert dict(found.bound) == bound
    assert set(found.unused) == {name for name, _ in held} - set(bound.values()) or found.takes_data


@pytest.mark.parametrize(
    "model", [GCN(2, 4, 2), GAT(2, 4, 2), GAT(2, 4, 2, v2=True), GAT(2, 4, 2, v2=True, edge_dim=1), GraphSAGE(2, 4, 2)]
)
def test_classes_of_pytorch_geometric_can_be_called_as_they_are_bound(model: nn.Module) -> None:
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    for values in ({}, {"edge_weight": torch.rand(2)}, {"edge_attr": torch.rand(2, 1)}):
        graph = Data(**data.to_dict(), **values)
        assert bind_arguments(model, held_values(graph)).call(model, graph).shape == (2, 4)


def test_a_model_of_one_parameter_takes_a_graph_without_labels() -> None:
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.ones(2), edge_weight=torch.tensor([2]))
    for model in (lambda data: data, lambda graph, mask=None: graph):
        arguments = bind_arguments(model, held_values(data))
        assert arguments.takes_data
        given = arguments.call(model, data)
        assert sorted(given.keys()) == ["edge_index", "edge_weight", "x"]
        assert given.edge_weight.tolist() == [2.0]  # in the type of the features
    assert not bind_arguments(lambda *given: given).takes_data  # unknown: it is tried
    assert not bind_arguments(lambda x, edge_index=None: x).takes_data


@pytest.mark.parametrize(
    ("model", "held", "said"),
    [
        (by_rows, (), "needs the argument edge_features, but the graph has no edge_attr. Set data.edge_attr"),
        (by_weights, (), "needs the argument edge_weights, but the graph has no edge_weight. Set data.edge_weight"),
        (by_weights, ROWS, "needs the argument edge_weights, but data.edge_attr has several columns"),
        (lambda x, edge_index, batch: x, BOTH, "needs the argument batch, which the graph does not give"),
    ],
)
def test_a_parameter_that_cannot_be_filled_is_named(model: Any, held: Any, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        bind_arguments(model, held)
    assert said in str(refusal.value)
    assert len(refusal.value.faults) == 1


def test_whole_numbers_are_weights_where_weights_are_meant_and_codes_elsewhere() -> None:
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([3]))
    for parameter, dtype in (("edge_weight", torch.float32), ("edge_attr", torch.int64)):
        assert Arguments(bound=((parameter, "edge_attr"),)).named(data)[parameter].dtype == dtype


def test_a_compiled_module_is_bound_by_the_signature_of_what_it_compiles() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            return x

    class Compiled(nn.Module):
        """As `torch.compile` wraps a module; the real one takes seconds to import."""

        def __init__(self, net: nn.Module) -> None:
            super().__init__()
            self._orig_mod = net

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return self._orig_mod(*args, **kwargs)

    assert dict(bind_arguments(Compiled(Net()), WEIGHT).bound) == {"edge_weight": "edge_weight"}
