from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GraphNorm, GraphSAGE, global_mean_pool

from glasshouse.core.errors import InputError
from glasshouse.graph.models.calls import GraphCall, bind_graph_call, check_apart
from tests.graph.molecules import NamedOtherwise, PooledGCN, TakesBatch, TakesBonds, TakesData, molecules

PLAIN = Batch.from_data_list(molecules(6), exclude_keys=["y"])
BONDED = Batch.from_data_list(molecules(6, bonds=True), exclude_keys=["y"])


def _weighted(x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor | None = None) -> Tensor: ...  # type: ignore[empty-body]
def _placed(pos: Tensor, batch: Tensor, num_graphs: int) -> Tensor: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("model", "bound"),
    [
        (PooledGCN(), "x=x edge_index=edge_index batch=batch"),
        (NamedOtherwise(), "h=x adj=edge_index batch_index=batch"),
        (TakesBonds(), "x=x edge_index=edge_index edge_attr=edge_attr batch=batch"),
        (GraphSAGE(5, 8, 2), "x=x edge_index=edge_index batch=batch batch_size=num_graphs"),
        (_weighted, "x=x edge_index=edge_index batch=batch"),  # features of three columns are no weights
        (TakesData(), ""),
        (TakesBatch(), ""),
        (lambda graphs: graphs, ""),
        (lambda *anything: anything, ""),
    ],
)
def test_a_model_gets_what_its_arguments_are_named(model: Any, bound: str) -> None:
    call = bind_graph_call(model, BONDED)
    assert " ".join(f"{parameter}={name}" for parameter, name in call.bound) == bound
    assert call.takes_data == (not bound)


def test_weights_and_other_fields_go_where_they_are_named() -> None:
    weights = [Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([3])) for _ in range(2)]
    batch = Batch.from_data_list(weights)
    assert bind_graph_call(_weighted, batch).bound[-1] == ("edge_weight", "edge_attr")
    call = GraphCall(bound=(("edge_weight", "edge_attr"),))
    assert call(lambda edge_weight: edge_weight, batch).tolist() == [3.0, 3.0]
    placed = Batch.from_data_list([Data(pos=torch.zeros(2, 3)), Data(pos=torch.zeros(1, 3))])
    assert bind_graph_call(_placed, placed).bound == (
        ("pos", "pos"),
        ("batch", "batch"),
        ("num_graphs", "num_graphs"),
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TakesBonds(), "it needs the argument edge_attr, which the graphs do not have. They have .*x"),
        (lambda x, edge_index, batch, temperature: x, "it needs the argument temperature"),
    ],
)
def test_an_argument_that_cannot_be_filled_is_refused(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind_graph_call(model, PLAIN)


def test_graphs_without_features_are_refused_for_a_model_that_needs_them() -> None:
    bare = Batch.from_data_list([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2) for _ in range(2)])
    with pytest.raises(InputError, match="argument x, which the graphs do not have.*OneHotDegree"):
        bind_graph_call(PooledGCN(), bare)
    with pytest.raises(InputError, match=r"cannot be called as model\(data\): .*The graphs have no x\."):
        bind_graph_call(TakesData(), bare).tried(TakesData(), bare)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda x, edge_index, batch: x, r"6 graphs with shape \[\d+, 5\], which is one row per node. Pool"),
        (lambda x, edge_index: x.mean(0, keepdim=True), r"shape \[1, 5\], and has no argument batch"),
        (lambda data: data.x.mean(0, keepdim=True), r"shape \[1, 5\], not with one row per graph"),
        (lambda data: "toxic", r"shape \[\], not with one row"),
        (lambda data: data.x @ torch.zeros(3, 3), r"cannot be called as model\(data\): RuntimeError: "),
    ],
)
def test_an_answer_that_is_not_one_row_per_graph_is_refused(model: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        bind_graph_call(model, PLAIN).tried(model, PLAIN)


class _Normed(nn.Module):
    """Normalises over all nodes of the batch, unless it is told which node belongs to which graph."""

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        self.norm, self.apart = GraphNorm(5), apart

    def forward(self, x: Tensor, batch: Tensor) -> Any:
        return global_mean_pool(self.norm(x, batch if self.apart else None).relu(), batch)


def test_a_model_that_mixes_graphs_is_refused_and_one_that_does_not_is_not() -> None:
    few = Batch.from_data_list(PLAIN.to_data_list()[:2])
    for apart in (True, False):
        model = _Normed(apart=apart).eval()
        call = bind_graph_call(model, PLAIN)

        def ask(batch: Batch, call: GraphCall = call, model: nn.Module = model) -> Any:
            return call(model, batch)

        if apart:
            check_apart(ask, ask(PLAIN), few)
        else:
            with pytest.raises(InputError, match="depends on the other graphs of the batch"):
                check_apart(ask, ask(PLAIN), few)


def test_a_model_whose_dropout_is_on_is_refused() -> None:
    def ask(batch: Batch) -> Tensor:
        return nn.functional.dropout(global_mean_pool(batch.x, batch.batch))

    with pytest.raises(InputError, match="it answers the same query in two ways. Its dropout is on"):
        check_apart(ask, ask(PLAIN), Batch.from_data_list(PLAIN.to_data_list()[:2]))
