from __future__ import annotations

from torch_geometric.nn import GATConv, GraphConv

from glasshouse.graph.models.gnn import GNN, build_gnn
from glasshouse.graph.rule.toggle.batching import batch_layers, by_shape, can_batch, shape_of


def gnn(name: str, **changed: int) -> GNN:
    return build_gnn(name, **({"features": 3, "hidden": 4, "classes": 2} | changed))


def test_models_share_a_shape_where_layers_options_and_sizes_agree() -> None:
    same = [shape_of(gnn("gat")) for _ in range(2)]
    assert same[0] == same[1]
    other_slope = gnn("gat")
    for layer in other_slope.convolutions:
        layer.negative_slope = 0.5  # type: ignore[assignment]
    unlike = [gnn("gat", hidden=8), gnn("gat", layers=3), gnn("gcn"), gnn("gat").double(), other_slope]
    assert same[0] not in [shape_of(model) for model in unlike]


def test_models_are_grouped_by_shape_in_the_order_in_which_shapes_first_appear() -> None:
    models = [gnn(name) for name in ("gcn", "gat", "gcn", "gin", "gat")]
    assert by_shape(models) == [[0, 2], [1, 4], [3]]
    assert by_shape([]) == []


def test_layers_of_unknown_type_and_subclasses_are_black_boxes() -> None:
    class Own(GNN):
        pass

    unknown = GNN([GraphConv(3, 2)])
    assert not can_batch(unknown)
    assert not can_batch(Own([GATConv(3, 2)]))
    assert shape_of(unknown)[0] == "black box"


def test_a_relu_follows_every_layer_but_the_last() -> None:
    steps = batch_layers([gnn("gcn", layers=3) for _ in range(2)])
    assert [step.relu for step in steps] == [True, True, False]
