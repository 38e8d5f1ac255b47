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
    GATv2Conv,
    GCNConv,
    GraphNorm,
    GraphSAGE,
    JumpingKnowledge,
    PairNorm,
    SAGEConv,
    SGConv,
    TAGConv,
    TransformerConv,
)

__all__ = ["CLASSES", "EVERYWHERE", "FEATURES", "ZOO"]

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
}

EVERYWHERE: dict[str, Callable[[], Any]] = {
    "GraphNorm": lambda: Layers(2, lambda: GraphNorm(HIDDEN)),
    "PairNorm": lambda: Layers(3, PairNorm),
    "virtual node": Virtual,
    "attention over all nodes": Attentive,
}
