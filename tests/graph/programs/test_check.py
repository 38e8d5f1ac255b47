"""A program is tried before it is believed: what mixes rows, or sees further than one thinks, is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GATConv, GCNConv, GraphNorm, MessagePassing, MixHopConv, SAGEConv
from torch_geometric.utils import erdos_renyi_graph

from glasshouse.graph.programs.program import NoProgram, Program
from glasshouse.graph.programs.reach import checked_program, sample_graph
from glasshouse.graph.programs.trace import Asked, traced
from tests.graph.programs.modules import Looped
from tests.graph.zoo import EVERYWHERE, Differences, Spread

torch.manual_seed(0)
DATA = Data(x=torch.randn(40, 5), edge_index=erdos_renyi_graph(40, 0.1))


def checked(model: nn.Module) -> Program:
    root = Asked(model.eval())
    return checked_program(traced(root), root, DATA)


class Between(nn.Module):
    """An operation between two layers."""

    def __init__(self, operation: Any) -> None:
        super().__init__()
        self.first, self.second, self.operation = GCNConv(5, 8), GCNConv(8, 3), operation

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.operation(self.first(x, edge_index)), edge_index)  # type: ignore[no-any-return]


def first_row(rows: Tensor) -> Tensor:
    return rows + rows[0]


def running_sum(rows: Tensor) -> Tensor:
    return rows.cumsum(0)


def by_count(rows: Tensor) -> Tensor:
    return rows / rows.size(0)


def standardised(rows: Tensor) -> Tensor:
    return (rows - rows.mean(0)) / rows.std(0)


def sorted_columns(rows: Tensor) -> Tensor:
    return rows.sort(dim=0).values


@pytest.mark.parametrize("operation", [first_row, running_sum, by_count, standardised, sorted_columns])
def test_operations_that_mix_rows_are_found(operation: Any) -> None:
    with pytest.raises(NoProgram, match="rows|row per node"):
        checked(Between(operation))


def test_a_step_that_mixes_rows_is_named_as_its_user_knows_it() -> None:
    with pytest.raises(NoProgram, match=r"its step norms\.0 \(GraphNorm\), act \(ReLU\) mixes the rows of nodes"):
        checked(GCN(5, 4, num_layers=3, norm=GraphNorm(4)))


@pytest.mark.parametrize("name", [name for name, make in EVERYWHERE.items() if isinstance(make(), nn.Module)])
def test_models_that_look_at_the_whole_graph_have_no_program(name: str) -> None:
    with pytest.raises(NoProgram, match="rows|row per node"), torch.no_grad():
        checked(EVERYWHERE[name]())


@pytest.mark.parametrize(
    ("layer", "hops", "by_degree"),
    [
        (lambda a, b: GCNConv(a, b), 1, True),
        (lambda a, b: SAGEConv(a, b), 1, False),
        (lambda a, b: GATConv(a, b), 1, False),
        (Differences, 1, False),
        (Spread, 1, True),
        (lambda a, b: MixHopConv(a, b // 4, powers=[0, 1, 2, 3]), 3, True),
    ],
)
def test_how_far_a_layer_sees_and_whether_degrees_count_is_measured(
    layer: Any, hops: int, by_degree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.graph.programs.program.LAYER_TYPES", {})  # else known types are counted
    with torch.no_grad():
        program = checked(Looped(layer))
    assert [(step.hops, step.by_degree) for step in program.messages] == [(hops, by_degree)] * 2
    assert program.hops == 2 * hops


class Counted(MessagePassing):  # type: ignore[misc]
    """Its answers depend on how many nodes the graph has."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(self.propagate(edge_index, x=x) + x.mean(0))  # type: ignore[no-any-return]


def test_a_layer_that_looks_at_the_whole_graph_is_found() -> None:
    with pytest.raises(NoProgram, match=r"its layer layers.0 \(Counted\) looks at the whole graph"), torch.no_grad():
        checked(Looped(Counted))


def test_the_part_of_a_graph_keeps_the_values_of_its_edges() -> None:
    weight = torch.arange(DATA.edge_index.shape[1]).float()
    many = Data(x=DATA.x, edge_index=DATA.edge_index, edge_weight=weight)
    part = sample_graph(many)
    ends = {(tuple(row.tolist()), tuple(other.tolist()), float(w)) for row, other, w in _edges(many)}
    assert {(tuple(row.tolist()), tuple(other.tolist()), float(w)) for row, other, w in _edges(part)} <= ends


def _edges(data: Data) -> list[tuple[Tensor, Tensor, Tensor]]:
    source, target = data.edge_index
    return list(zip(data.x[source], data.x[target], data.edge_weight, strict=True))
