from __future__ import annotations

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

from glasshouse.graph.models.networks import GNN, build_gnn
from glasshouse.graph.models.profile import ModelProfile, Profiled, profile_models
from glasshouse.graph.rule.engines import by_shape, shape_of
from tests.graph.programs.modules import Two

DATA = Data(x=torch.randn(9, 3), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))


def gnn(name: str, **changed: int) -> GNN:
    return build_gnn(name, **({"features": 3, "hidden": 4, "classes": 2} | changed))


def met(*models: nn.Module) -> list[Profiled]:
    types = [next(model.parameters()).dtype for model in models]
    graphs = [Data(x=DATA.x.to(dtype), edge_index=DATA.edge_index) for dtype in types]
    return [profile_models([model], graph)[0] for model, graph in zip(models, graphs, strict=True)]


def test_models_share_a_shape_where_layers_options_and_sizes_agree() -> None:
    same = [shape_of(model) for model in met(gnn("gat"), gnn("gat"))]
    assert same[0] == same[1]
    other_slope = gnn("gat")
    for layer in other_slope.convolutions:
        layer.negative_slope = 0.5  # type: ignore[assignment]
    unlike = met(gnn("gat", hidden=8), gnn("gat", layers=3), gnn("gcn"), gnn("gat").double(), other_slope)
    assert same[0] not in [shape_of(model) for model in unlike]


def test_a_users_modules_share_a_shape_only_with_equal_settings_of_what_lies_between_layers() -> None:
    one, same, other = (shape_of(model) for model in met(Two(3), Two(3), Two(3, slope=0.3)))
    assert one == same != other


def test_models_are_grouped_by_shape_in_the_order_in_which_shapes_first_appear() -> None:
    models = met(*[gnn(name) for name in ("gcn", "gat", "gcn", "gin", "gat")])
    assert by_shape(models) == [[0, 2], [1, 4], [3]]
    assert by_shape([]) == []


def test_a_subclass_that_does_the_same_is_the_same_and_a_function_is_a_black_box() -> None:
    class Own(GNN):
        pass

    ours, theirs = met(GNN([GATConv(3, 2)]), Own([GATConv(3, 2)]))
    assert shape_of(ours) == shape_of(theirs)
    assert shape_of(Profiled(lambda x, edge_index: x, ModelProfile()))[0] == "black box"
