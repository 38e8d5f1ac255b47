"""One door for graphs: the same words wherever one comes in, every fault at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from glasshouse.core.errors import InputError
from glasshouse.graph import GNNTrainer, Scene, audit, toggle_losses
from glasshouse.graph.data.checking import check_edges, check_graph, checked_graph, graph_faults

PARTS = {"x": torch.eye(3), "edge_index": torch.tensor([[0, 1], [1, 0]]), "y": torch.tensor([0, 1, 0])}
MEMBERS = np.array([True, True, False])

BAD: list[tuple[dict[str, Any], str]] = [
    ({"x": None}, "data.x: is missing; x, edge_index and y are all needed"),
    ({"x": np.eye(3)}, "data.x: is not a torch tensor"),
    ({"x": torch.eye(3).to_sparse()}, "to_dense"),
    ({"x": torch.ones(3)}, "one row per node"),
    ({"x": torch.full((3, 1), torch.nan)}, "data.x: node 0 has a NaN"),
    ({"x": torch.tensor([[0.0], [1e300], [0.0]], dtype=torch.float64)}, "data.x: node 1 has a NaN or infinite"),
    ({"edge_index": torch.tensor([[0], [7]])}, "data.edge_index: names nodes outside 0 to 2"),
    ({"edge_index": torch.tensor([[0.0], [1.0]])}, "whole numbers in two rows"),
    ({"edge_index": torch.tensor([[0, 1]])}, "whole numbers in two rows"),
    ({"edge_index": torch.ones((2, 3), dtype=torch.bool)}, "whole numbers in two rows"),
    ({"edge_index": torch.tensor([[0], [1]]).to_sparse()}, "whole numbers in two rows"),
    ({"edge_weight": torch.ones(5)}, r"data.edge_weight: has shape \(5,\) for 2 edges; give one entry per edge, \[2\]"),
    ({"edge_weight": torch.ones(2, 1)}, r"data.edge_weight: has shape \(2, 1\) for 2 edges"),
    ({"edge_weight": torch.tensor([1.0, torch.nan])}, "data.edge_weight: edge 1 has a NaN or infinite value"),
    ({"edge_weight": torch.ones(2, dtype=torch.complex64)}, "data.edge_weight: has type torch.complex64"),
    ({"edge_attr": np.ones(2)}, "data.edge_attr: is not a torch tensor"),
    ({"edge_attr": torch.ones(2, 3, 1)}, r"data.edge_attr: has shape \(2, 3, 1\).*, \[2\] or \[2, d\]"),
    ({"edge_attr": torch.full((2, 2), torch.inf)}, "data.edge_attr: edge 0 has a NaN or infinite value"),
    ({"edge_type": torch.tensor([0.5, 1])}, "data.edge_type: has type torch.float32"),
    ({"y": torch.tensor([0, 1])}, r"data.y: has shape \(2,\) for 3 nodes"),
    ({"y": torch.tensor([[0], [1], [0]])}, r"data.y: has shape \(3, 1\) for 3 nodes"),
    ({"y": torch.tensor([0.0, 1.5, 1.0])}, "data.y: some labels are not whole numbers"),
    ({"y": torch.tensor([0.0, -0.5, 1.0])}, "data.y: some labels are not whole numbers"),
]


def features(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
    return x


@pytest.mark.parametrize(("changed", "message"), BAD)
def test_a_fault_has_the_same_words_at_every_door(changed: dict[str, Any], message: str) -> None:
    data = Data(**(PARTS | changed))
    doors: list[Callable[[], Any]] = [
        lambda: check_graph(data),
        lambda: audit(data),
        lambda: Scene(data, features, [features], [[1, 0, 1]]),
        lambda: GNNTrainer(hidden=2, epochs=1, device="cpu")(data, MEMBERS, 0),
        lambda: toggle_losses([features], data, torch.ones(1, 3, dtype=torch.bool), torch.tensor([0])),
    ]
    for door in doors:
        with pytest.raises(InputError, match=message):
            door()


def test_all_faults_are_named_at_once() -> None:
    data = Data(x=torch.full((3, 1), torch.nan), edge_index=torch.tensor([[0], [7]]), y=torch.tensor([0.5, 1.0, 1.0]))
    with pytest.raises(InputError) as caught:
        check_graph(data)
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["data.x", "data.edge_index", "data.y"]


@pytest.mark.parametrize("y", [[1, 1, 1], [1, -1, 1], [torch.nan, 0.0, 0.0]])
def test_an_audit_needs_labels_that_training_can_do_without(y: list[float]) -> None:
    data = Data(**(PARTS | {"y": torch.tensor(y)}))
    assert graph_faults(data) == []
    with pytest.raises(InputError, match="data.y: all nodes have one label, or none"):
        checked_graph(data)


@pytest.mark.parametrize("missing", [-1.0, torch.nan])
def test_nodes_without_a_label_stay_in_a_checked_graph(missing: float) -> None:
    graph = checked_graph(Data(**(PARTS | {"y": torch.tensor([0.0, missing, 1.0])})))
    assert graph.y.tolist() == [0, -1, 1]
    assert not graph.y.is_floating_point()


def test_whole_numbers_may_be_written_as_floats() -> None:
    assert graph_faults(Data(**(PARTS | {"y": torch.tensor([0.0, 1.0, 0.0])})), labelled=True) == []


def test_features_of_nodes_that_are_not_used_may_be_missing() -> None:
    data = Data(**(PARTS | {"x": torch.tensor([[0.0], [1.0], [torch.nan]])}))
    assert graph_faults(data, nodes=MEMBERS) == []
    assert graph_faults(data, nodes=~MEMBERS) == graph_faults(data) != []


def test_edges_alone_are_checked_where_nothing_else_matters() -> None:
    check_edges(Data(edge_index=torch.tensor([[0], [1]])), 2)
    with pytest.raises(InputError, match="data.edge_index: is missing"):
        check_edges(Data(), 2)
    with pytest.raises(InputError, match="data.edge_index: names nodes outside 0 to 1"):
        check_edges(Data(edge_index=torch.tensor([[0], [2]])), 2)
    with pytest.raises(InputError, match="data.edge_weight: has shape"):
        check_edges(Data(edge_index=torch.tensor([[0], [1]]), edge_weight=torch.ones(3)), 2)


def test_other_forms_of_graphs_are_refused_with_the_line_that_works() -> None:
    links = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), edge_label_index=torch.tensor([[0], [1]]))
    with pytest.raises(InputError, match=r"data.y: is missing.*Population\(features_of_pairs, edge_label\)"):
        check_graph(links)

    class OfDGL:
        ndata: ClassVar[dict[str, torch.Tensor]] = {}

    with pytest.raises(InputError, match=r"Data\(x=g.ndata\['feat'\], edge_index=torch.stack\(g.edges\(\)\)"):
        check_graph(OfDGL())
