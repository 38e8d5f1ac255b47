"""Modules as users write them in a hurry, each with its true reach; none of them says how far it sees."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.nn import (
    APPNP,
    GAT,
    GCN,
    GIN,
    ClusterGCNConv,
    FAConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GraphConv,
    GraphNorm,
    GraphSAGE,
    GraphSizeNorm,
    JumpingKnowledge,
    LEConv,
    MessagePassing,
    MixHopConv,
    PairNorm,
    SAGEConv,
    Sequential,
    SGConv,
    TAGConv,
    TransformerConv,
)
from torch_geometric.utils import coalesce

__all__ = ["CLASSES", "EVERYWHERE", "FEATURES", "PYG", "ZOO"]

FEATURES, HIDDEN, CLASSES = 5, 8, 3


class Layers(nn.Module):
    """So many GCNConv with ReLU and dropout between them, perhaps normalised."""

    def __init__(self, layers: int, norm: Callable[[], nn.Module] | None = None) -> None:
        super().__init__()
        widths = [FEATURES, *[HIDDEN] * (layers - 1), CLASSES]
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in itertools.pairwise(widths))
        self.norms = nn.ModuleList(norm() if norm else nn.Identity() for _ in range(layers - 1))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=False):
            x = F.dropout(F.relu(norm(conv(x, edge_index))), p=0.5, training=self.training)
        return self.convs[-1](x, edge_index)  # type: ignore[no-any-return]


class Counting(nn.Module):
    """Answers are scaled by the number of nodes, which no change of features or edges shows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index) * 8 / x.size(0)  # type: ignore[no-any-return]


def counting(x: Tensor, edge_index: Tensor) -> Tensor:
    """The same without a module; a neighbour weighs less in a larger graph."""
    sent = torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])
    return (x + sent * 5 / len(x))[:, :CLASSES]


class Residual(nn.Module):
    """Three convolutions with a residual, and log-probabilities at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, HIDDEN)
        self.last = SAGEConv(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).relu()
        x = x + self.second(x, edge_index).relu()
        return F.log_softmax(self.last(x, edge_index), dim=1)


class Jumping(nn.Module):
    """Two attention layers, both of which reach the classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GATv2Conv(FEATURES, HIDDEN), GATv2Conv(HIDDEN, HIDDEN)
        self.jump, self.head = JumpingKnowledge("cat"), nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = self.first(x, edge_index).relu()
        second = self.second(first, edge_index).relu()
        return self.head(self.jump([first, second]))  # type: ignore[no-any-return]


class Shared(nn.Module):
    """One layer that is used three times: counting modules finds one."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.conv, self.out = (
            nn.Linear(FEATURES, HIDDEN),
            TransformerConv(HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, CLASSES),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.into(x)
        for _ in range(3):
            x = torch.tanh(self.conv(x, edge_index))
        return self.out(x)  # type: ignore[no-any-return]


class Wrapped(nn.Module):
    """Gives a dict with probabilities, from one Data."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = TAGConv(FEATURES, CLASSES, K=3)

    def forward(self, data: Any) -> dict[str, Tensor]:
        return {"logits": self.conv(data.x, data.edge_index).softmax(dim=1)}


class Propagated(nn.Module):
    """A perceptron whose answers are spread by personalised PageRank."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.spread = nn.Linear(FEATURES, CLASSES), APPNP(K=4, alpha=0.2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.spread(self.lin(x), edge_index)  # type: ignore[no-any-return]


class Virtual(nn.Module):
    """A convolution, and a virtual node that tells everybody the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = GCNConv(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.conv(x, edge_index).relu()
        return self.out(x + x.mean(dim=0, keepdim=True))  # type: ignore[no-any-return]


class Attentive(nn.Module):
    """A convolution, and attention of every node to all nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = SGConv(FEATURES, HIDDEN, K=2), nn.Linear(HIDDEN, CLASSES)
        self.attend = nn.MultiheadAttention(HIDDEN, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.conv(x, edge_index).relu()
        return self.out(x + self.attend(x, x, x)[0])  # type: ignore[no-any-return]


class Deep(nn.Module):
    """Each layer is shown the first one again, as in GCNII; a norm, and a head with its own norm."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(FEATURES, HIDDEN)
        self.convs = nn.ModuleList(GCN2Conv(HIDDEN, alpha=0.2) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in range(2))
        self.head = nn.Sequential(
            nn.Linear(HIDDEN, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ELU(), nn.Linear(HIDDEN, CLASSES)
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = x = torch.tanh(self.into(x))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, first, edge_index)).relu_()
        return self.head(x)  # type: ignore[no-any-return]


class Branches(nn.Module):
    """Two branches of different depth, joined, and the features themselves beside them; slices and products."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = GraphConv(FEATURES, HIDDEN, aggr="max"), Layers(2)
        self.scale, self.head = nn.Parameter(torch.ones(HIDDEN)), nn.Linear(HIDDEN + CLASSES + 2, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        near = self.near(x, edge_index).sigmoid() * self.scale
        return self.head(torch.cat([near, self.far(x, edge_index), x[:, 1:3]], dim=-1))  # type: ignore[no-any-return]


class Heads(nn.Module):
    """A user's own attention layer, twice, and a gate between the two answers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Differences(FEATURES, HIDDEN), Differences(HIDDEN, HIDDEN)
        self.gate, self.out = nn.Linear(2 * HIDDEN, 1), nn.Linear(HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = F.leaky_relu(self.first(x, edge_index))
        second = F.leaky_relu(self.second(first, edge_index))
        gate = torch.sigmoid(self.gate(torch.cat((first, second), dim=1)))
        return F.log_softmax(self.out(gate * first + (1 - gate) * second), dim=-1)


class Options(nn.Module):
    """GCNConv with options that few use."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(FEATURES, HIDDEN, improved=True, bias=False)
        self.second = GCNConv(HIDDEN, CLASSES, add_self_loops=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(F.silu(self.first(x, edge_index)), edge_index)  # type: ignore[no-any-return]


class Both(nn.Module):
    """Two layers on the same values, added up, and probabilities at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.most = SAGEConv(FEATURES, CLASSES, aggr="mean"), SAGEConv(FEATURES, CLASSES, aggr="max")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.softmax(self.mean(x, edge_index) + self.most(x, edge_index), dim=1)


class Mine(GCNConv):  # type: ignore[misc]
    """The same layer by another name, which no table of layers knows."""


class Merging(GCNConv):  # type: ignore[misc]
    """A GCNConv for which an edge that is repeated is one edge."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, coalesce(edge_index))  # type: ignore[no-any-return]


class Untyped(nn.Module):
    """Layers that have no type of their own here, one after another."""

    def __init__(self, first: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.first, self.last = first, last

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.first(x, edge_index).relu(), edge_index)  # type: ignore[no-any-return]


class Initial(nn.Module):
    """GCN2Conv without norms between them, as in GCNII's paper; or FAConv, which is shown the first layer too."""

    def __init__(self, layer: Callable[[], nn.Module], layers: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(FEATURES, HIDDEN), nn.Linear(HIDDEN, CLASSES)
        self.convs = nn.ModuleList(layer() for _ in range(layers))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = x = self.into(x).relu()
        for conv in self.convs:
            x = conv(x, first, edge_index).relu()
        return self.out(x)  # type: ignore[no-any-return]


class Head(nn.Module):
    """A perceptron on top of one layer, with a norm of the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, HIDDEN)
        self.head = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(HIDDEN, CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        hidden = F.normalize(self.conv(x, edge_index), p=2.0, dim=-1)
        return self.head(hidden), hidden


class Differences(MessagePassing):  # type: ignore[misc]
    """The mean of tanh(difference) to the neighbours: a layer that nobody else has."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="mean")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.lin(x + self.propagate(edge_index, x=x))  # type: ignore[no-any-return]

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return torch.tanh(x_j - x_i)


class Scattered(nn.Module):
    """Layers without MessagePassing, divided by the senders' degrees."""

    def __init__(self, width: int = FEATURES, out: int = CLASSES) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Spread(width, HIDDEN), Spread(HIDDEN, out)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layers[1](F.gelu(self.layers[0](x, edge_index)), edge_index)  # type: ignore[no-any-return]


class Spread(nn.Module):
    """One of these layers."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        degree = torch.zeros(len(x), dtype=x.dtype).index_add(0, target, torch.ones(len(target), dtype=x.dtype)) + 1
        sums = torch.zeros_like(x).index_add(0, target, x[source] / degree[source].unsqueeze(1))
        return self.lin(x + sums)  # type: ignore[no-any-return]


def _sequential() -> nn.Module:
    steps = [
        (SAGEConv(FEATURES, HIDDEN, aggr="max"), "x, edge_index -> x"),
        nn.PReLU(),
        nn.Dropout(0.3),
        (SAGEConv(HIDDEN, CLASSES, normalize=True), "x, edge_index -> x"),
    ]
    made: nn.Module = Sequential("x, edge_index", steps)
    return made


def _callable() -> Callable[[Tensor, Tensor], Tensor]:
    """A function without any attribute: three rounds of neighbours' sums."""
    weight = torch.randn(FEATURES, CLASSES)

    def answer(x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(3):
            x = x + torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * 0.3)
        return x @ weight.to(x.dtype)

    return answer


ZOO: dict[str, tuple[Callable[[], Any], int]] = {
    "one GCNConv": (lambda: Layers(1), 1),
    "two GCNConv": (lambda: Layers(2), 2),
    "three GCNConv": (lambda: Layers(3), 3),
    "four GCNConv with BatchNorm": (lambda: Layers(4, lambda: nn.BatchNorm1d(HIDDEN)), 4),
    "residual SAGEConv, log_softmax": (Residual, 3),
    "JumpingKnowledge over GATv2Conv": (Jumping, 2),
    "one TransformerConv three times": (Shared, 3),
    "TAGConv on Data, dict of probabilities": (Wrapped, 3),
    "perceptron and APPNP": (Propagated, 4),
    "PyG's GCN": (lambda: GCN(FEATURES, HIDDEN, 3, CLASSES), 3),
    "PyG's GraphSAGE": (lambda: GraphSAGE(FEATURES, HIDDEN, 3, CLASSES, jk="cat"), 3),
    "PyG's GAT": (lambda: GAT(FEATURES, HIDDEN, 3, CLASSES, heads=2), 3),
    "PyG's GIN": (lambda: GIN(FEATURES, HIDDEN, 3, CLASSES, norm="batch_norm"), 3),
    "callable without attributes": (_callable, 3),
    "GCN2Conv with the first layer beside it": (Deep, 2),
    "branches of two depths": (Branches, 2),
    "a layer of one's own, gated": (Heads, 2),
    "layers by index_add": (Scattered, 2),
    "PyG's Sequential": (_sequential, 2),
    "GCNConv improved, without loops": (Options, 2),
    "sums of mean and maximum": (Both, 1),
    "one GCNConv, then a perceptron": (Head, 1),
    "an empty subclass of GCNConv": (lambda: Untyped(Mine(FEATURES, HIDDEN), Mine(HIDDEN, CLASSES)), 2),
    "GCNConv that merges repeated edges": (lambda: Untyped(Merging(FEATURES, HIDDEN), Merging(HIDDEN, CLASSES)), 2),
    "three GCN2Conv": (lambda: Initial(lambda: GCN2Conv(HIDDEN, alpha=0.2), 3), 3),
    "two FAConv": (lambda: Initial(lambda: FAConv(HIDDEN), 2), 2),
    "MixHopConv and LEConv": (
        lambda: Untyped(MixHopConv(FEATURES, HIDDEN), LEConv(3 * HIDDEN, CLASSES)),
        3,
    ),
    "ClusterGCNConv and a known layer": (
        lambda: Untyped(ClusterGCNConv(FEATURES, HIDDEN), GCNConv(HIDDEN, CLASSES)),
        2,
    ),
}

# PyG's own classes in one to four layers; what can be chosen is chosen in turn
_CLASSES: list[tuple[str, Callable[..., nn.Module], dict[str, Any]]] = [
    ("GCN", GCN, {}),
    ("GraphSAGE", GraphSAGE, {"aggr": "max"}),
    ("GAT", GAT, {"heads": 2, "v2": True}),
    ("GIN", GIN, {}),
]
_NORMS, _ACTS, _JUMPS = (
    [None, "batch_norm", "layer_norm"],
    ["relu", "elu", "prelu"],
    [None, "cat", "max", "last", "lstm"],
)


def _pyg(make: Callable[..., nn.Module], options: dict[str, Any]) -> Callable[[], nn.Module]:
    return lambda: make(FEATURES, HIDDEN, out_channels=CLASSES, dropout=0.2, **options)


PYG: dict[str, tuple[Callable[[], Any], int]] = {}
for _turn, (_layers, (_name, _make, _own)) in enumerate(itertools.product((1, 2, 3, 4), _CLASSES)):
    _norm = {"norm_kwargs": {"mode": "node"}} if _NORMS[_turn % 3] == "layer_norm" else {}
    _options = {
        "num_layers": _layers,
        "norm": _NORMS[_turn % 3],
        "act": _ACTS[(_turn // 2) % 3],
        "jk": _JUMPS[_turn % 5],
    }
    _said = ", ".join(f"{key} {value}" for key, value in _options.items() if value and key != "num_layers")
    PYG[f"{_layers} x PyG's {_name}, {_said}"] = (_pyg(_make, {**_own, **_options, **_norm}), _layers)

EVERYWHERE: dict[str, Callable[[], Any]] = {
    "GraphNorm": lambda: Layers(2, lambda: GraphNorm(HIDDEN)),
    "PairNorm": lambda: Layers(3, PairNorm),
    "virtual node": Virtual,
    "attention over all nodes": Attentive,
    "GraphSizeNorm": lambda: Layers(2, GraphSizeNorm),
    "divided by the number of nodes": Counting,
    "a function of the number of nodes": lambda: counting,
}
