"""Users' modules trained together: layer by layer and norm by norm the same as one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    GAT,
    GCN,
    GIN,
    MLP,
    ChebConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GeneralConv,
    GINConv,
    GraphConv,
    GraphNorm,
    GraphSAGE,
    LayerNorm,
    PairNorm,
    SAGEConv,
    SGConv,
    TAGConv,
    TransformerConv,
)

from glasshouse.graph.training.trainer import GNNTrainer, sgd
from tests.graph.training.many.plans import train_by_plan

FEATURES, HIDDEN, CLASSES = 30, 8, 3
Make = Callable[[int, int], nn.Module]


def graph(*, filled: float, seed: int = 0) -> Data:
    """Directed edges, some of them loops or repeated, nodes without edges, members without a label."""
    random = np.random.default_rng(seed)
    edges = random.integers(100, size=(2, 200))
    return Data(
        x=torch.from_numpy(random.normal(size=(129, FEATURES)) * (random.random((129, FEATURES)) < filled)).float(),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[:, :20]], axis=1)),
        y=torch.from_numpy(random.integers(-1, CLASSES, size=129)),
    )


SPARSE, DENSE = graph(filled=0.05), graph(filled=1.0)
MEMBERS = np.zeros((3, 129), dtype=bool)  # 60, 64 and 65 nodes: filled up by 4, by none, and by 63
for row, nodes in zip(MEMBERS, (60, 64, 65), strict=True):
    row[np.random.default_rng(nodes).permutation(129)[:nodes]] = True
SEEDS = (3, 1, 4)


class Net(nn.Module):
    """Two layers with something between them."""

    def __init__(self, layer: Make, between: nn.Module | None = None) -> None:
        super().__init__()
        self.first, self.second = layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)
        self.between = between or nn.Identity()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(torch.tanh(self.between(self.first(x, edge_index))), edge_index)  # type: ignore[no-any-return]


def assert_same(make: Callable[[], nn.Module], data: Data = SPARSE, *, epochs: int = 3) -> list[str]:
    """Parameters and buffers are those of one-at-a-time training; gives what was done apart."""
    trainer = GNNTrainer(model=make, epochs=epochs, optimizer=sgd(0.05), device="cpu")
    models, plan = train_by_plan(trainer, data, MEMBERS, SEEDS)
    for model, who, seed in zip(models, MEMBERS, SEEDS, strict=True):
        alone = trainer(data, who, seed)
        for (name, ours), theirs in zip(model.state_dict().items(), alone.state_dict().values(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4, msg=name)
        assert not model.training
    return sorted(plan.apart)


def perceptron(a: int, b: int) -> nn.Module:
    return nn.Sequential(nn.Linear(a, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, b))


LAYERS: dict[str, Make] = {
    "GCNConv(normalize=False)": lambda a, b: GCNConv(a, b, normalize=False),
    "GCNConv(improved, no bias)": lambda a, b: GCNConv(a, b, improved=True, bias=False),
    "GCNConv(add_self_loops=False)": lambda a, b: GCNConv(a, b, add_self_loops=False),
    "SAGEConv(sum)": lambda a, b: SAGEConv(a, b, aggr="sum"),
    "SAGEConv(normalize)": lambda a, b: SAGEConv(a, b, normalize=True),
    "SAGEConv(project, max)": lambda a, b: SAGEConv(a, b, project=True, aggr="max"),
    "SAGEConv(root_weight=False)": lambda a, b: SAGEConv(a, b, root_weight=False),
    "GATConv(residual)": lambda a, b: GATConv(a, b, residual=True),
    "GATv2Conv": lambda a, b: GATv2Conv(a, b, heads=2, concat=False),
    "GATv2Conv(share_weights)": lambda a, b: GATv2Conv(a, b, share_weights=True, residual=True, add_self_loops=False),
    "GINConv(BatchNorm)": lambda a, b: GINConv(perceptron(a, b), train_eps=True),
    "GINConv(MLP)": lambda a, b: GINConv(MLP([a, 6, b], norm="batch_norm")),
    "GINConv(activation first)": lambda a, b: GINConv(nn.Sequential(nn.ELU(), nn.Linear(a, b))),
    "GraphConv": GraphConv,
    "GraphConv(mean)": lambda a, b: GraphConv(a, b, aggr="mean"),
    "GraphConv(max)": lambda a, b: GraphConv(a, b, aggr="max"),
    "SGConv": lambda a, b: SGConv(a, b, K=2),
    "TAGConv": lambda a, b: TAGConv(a, b, K=2),
    "TAGConv(normalize=False)": lambda a, b: TAGConv(a, b, K=1, normalize=False),
    "ChebConv(1)": lambda a, b: ChebConv(a, b, K=1),
    "ChebConv(2)": lambda a, b: ChebConv(a, b, K=2, normalization="rw"),
    "ChebConv(4)": lambda a, b: ChebConv(a, b, K=4),
    "TransformerConv": lambda a, b: TransformerConv(a, b, heads=2, concat=False),
    "TransformerConv(beta)": lambda a, b: TransformerConv(a, b, beta=True),
    "TransformerConv(root_weight=False)": lambda a, b: TransformerConv(a, b, root_weight=False),
}


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_trains_together_as_alone(name: str) -> None:
    """On sparse features; `tests/graph/layers/test_trained.py` has dense ones for every layer type."""
    assert assert_same(lambda: Net(LAYERS[name]), epochs=2) == []


NORMS: dict[str, tuple[Callable[[], nn.Module], list[str]]] = {
    "BatchNorm1d": (lambda: nn.BatchNorm1d(HIDDEN), []),
    "BatchNorm1d(momentum=None)": (lambda: nn.BatchNorm1d(HIDDEN, momentum=None), []),
    "BatchNorm1d(affine=False)": (lambda: nn.BatchNorm1d(HIDDEN, affine=False), []),
    "BatchNorm1d(track_running_stats=False)": (lambda: nn.BatchNorm1d(HIDDEN, track_running_stats=False), []),
    "LayerNorm": (lambda: nn.LayerNorm(HIDDEN), []),
    "PyG's LayerNorm over nodes": (lambda: LayerNorm(HIDDEN, mode="node"), []),
    "PyG's LayerNorm over the graph": (lambda: LayerNorm(HIDDEN), ["tanh"]),
    "GraphNorm": (lambda: GraphNorm(HIDDEN), ["tanh"]),
    "PairNorm": (PairNorm, ["tanh"]),
    "PReLU": (lambda: nn.PReLU(HIDDEN), []),
    "Unflatten": (lambda: nn.Sequential(nn.Unflatten(1, (2, 4)), nn.Flatten()), []),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_keep_each_models_own_statistics(name: str) -> None:
    """Nodes that only fill a graph up do not count; what looks at the whole graph is done for each model on its own."""
    make, done_apart = NORMS[name]
    assert assert_same(lambda: Net(GCNConv, make())) == done_apart


class Halved(nn.Module):
    """A user's norm, which is looked into."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(HIDDEN)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) / 2  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Three layers, the middle one twice, with BatchNorm, a residual, a weight of its own and log-probabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.conv, self.out = GCNConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, HIDDEN), nn.Linear(HIDDEN, CLASSES)
        self.norms = nn.ModuleList([nn.BatchNorm1d(HIDDEN), Halved()])
        self.scale = nn.Parameter(torch.ones(HIDDEN))
        self.other = nn.Linear(HIDDEN, CLASSES)
        self.other.weight = self.out.weight  # shared

    def forward(self, x: Tensor, edge_index: Tensor) -> dict[str, Any]:
        x = F.elu(self.norms[0](self.into(x, edge_index)))
        for norm in self.norms:
            x = x + F.leaky_relu(norm(self.conv(x, edge_index)), 0.1) * self.scale
        rows = x.view(x.size(0), 2, -1).flatten(1)
        return {"logits": F.log_softmax(self.out(rows) + self.other(x), dim=-1), "hidden": x}


class Spread(nn.Module):
    """Probabilities from a perceptron and APPNP, and a layer that is not known."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.spread = nn.Linear(FEATURES, CLASSES), APPNP(K=3, alpha=0.2)
        self.own = GeneralConv(CLASSES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, None]:
        return self.own(self.spread(self.lin(x), edge_index), edge_index).softmax(dim=1), None


MODULES: dict[str, Callable[[], nn.Module]] = {
    "residual": Residual,
    "spread": Spread,
    "PyG's GCN": lambda: GCN(FEATURES, HIDDEN, 3, CLASSES, norm="batch_norm", act="elu", jk="max"),
    "PyG's GraphSAGE": lambda: GraphSAGE(FEATURES, HIDDEN, 3, CLASSES, jk="cat", norm="layer_norm"),
    "PyG's GAT": lambda: GAT(FEATURES, HIDDEN, 2, CLASSES, heads=2, jk="lstm"),
    "PyG's GIN": lambda: GIN(FEATURES, HIDDEN, 2, CLASSES, norm="batch_norm"),
}


@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize("name", MODULES)
def test_whole_modules_train_together_as_alone(name: str, data: Data) -> None:
    assert_same(MODULES[name], data)


class Dropped(nn.Module):
    """Dropout wherever users put it: on the features, on attention, between layers, in a layer that is not known."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share
        self.first = GATConv(FEATURES, HIDDEN, dropout=share)
        self.second, self.drop = GeneralConv(HIDDEN, CLASSES), nn.Dropout(share)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, self.share, training=self.training)
        return self.second(self.drop(self.first(x, edge_index)), edge_index)  # type: ignore[no-any-return]


@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["sparse", "dense"])
def test_dropout_is_drawn_for_each_model_by_its_seed(data: Data) -> None:
    trainer = GNNTrainer(model=lambda: Dropped(0.5), epochs=4, optimizer=sgd(0.05), device="cpu")
    (many, plan), (again, _) = (train_by_plan(trainer, data, MEMBERS, SEEDS) for _ in range(2))
    assert not plan.apart
    few = trainer.train_many(data, MEMBERS[:1], SEEDS[:1])
    for one, other in zip(many, again, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    for ours, theirs in zip(few[0].parameters(), many[0].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
    without = GNNTrainer(model=lambda: Dropped(0.0), epochs=4, optimizer=sgd(0.05), device="cpu")
    (plain,) = without.train_many(data, MEMBERS[:1], SEEDS[:1])
    assert not torch.allclose(plain.get_parameter("first.lin.weight"), many[0].get_parameter("first.lin.weight"))
    assert_same(lambda: Dropped(0.0), data)


class Weighted(nn.Module):
    """Layers that get numbers of the data, and one that gets numbers that the module computes itself."""

    def __init__(self, layer: Make) -> None:
        super().__init__()
        self.first, self.second = layer(FEATURES, HIDDEN), layer(HIDDEN, CLASSES)
        self.encode = nn.Linear(1, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        x = self.first(x, edge_index, edge_weight).relu()
        return self.second(x, edge_index, self.encode(edge_weight[:, None]).sigmoid().flatten())  # type: ignore[no-any-return]


@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize(
    "layer",
    [
        GCNConv,
        lambda a, b: GCNConv(a, b, normalize=False),
        lambda a, b: GraphConv(a, b, aggr="mean"),
        lambda a, b: GraphConv(a, b, aggr="max"),
        lambda a, b: TAGConv(a, b, K=2),
        lambda a, b: SGConv(a, b, K=2),
    ],
)
def test_weights_of_edges_count_as_alone(layer: Make, data: Data) -> None:
    weighted = data.clone()
    weighted.edge_weight = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0))
    assert_same(lambda: Weighted(layer), weighted, epochs=2)


class Whole(nn.Module):
    """Takes one Data; its attention gets features of edges, which is done for each model on its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GATConv(HIDDEN, CLASSES, edge_dim=2)

    def forward(self, data: Data) -> Tensor:
        x = self.first(data.x, data.edge_index).relu()
        return self.second(x, data.edge_index, data.edge_attr)  # type: ignore[no-any-return]


def test_features_of_edges_count_as_alone() -> None:
    described = SPARSE.clone()
    described.edge_attr = torch.rand(SPARSE.edge_index.shape[1], 2, generator=torch.Generator().manual_seed(0))
    assert_same(Whole, described)
