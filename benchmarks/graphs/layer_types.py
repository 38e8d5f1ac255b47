"""Toggles of two layers of every type on one small graph: by the type's formula, and by calls of the layer itself.

    python benchmarks/graphs/layer_types.py

The last row is GCNII with four layers on 500 nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from tests.graph.layers.cases import CASES, FEATURES, TwoLayers
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN2Conv, PNAConv

from glasshouse.graph import citation_graph, toggle_losses
from glasshouse.graph.layers.layer_type import LAYER_TYPES
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.operations import MessageOperation
from glasshouse.graph.rule.incremental.program import lower
from glasshouse.graph.rule.question import ask

MODELS, REPEATS = 3, 3


class Deep(nn.Module):
    """GCNII: the first values beside those of each layer."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(features, 32), nn.Linear(32, classes)
        self.layers = nn.ModuleList(GCN2Conv(32, alpha=0.1, theta=0.5, layer=k + 1) for k in range(4))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits [n, classes]."""
        start = hidden = self.into(x).relu()
        for layer in self.layers:
            hidden = layer(hidden, start, edge_index).relu()
        return self.out(hidden)  # type: ignore[no-any-return]


def pna(features: int, out: int) -> PNAConv:
    """A layer without a type: a mean, a maximum and a deviation, scaled by degrees.

    With one, of 80 lines, toggles took 1.1 to 1.4 times as long where nodes have 4 edges, and 0.5 to 0.9 times as long
    where they have 20: half of that time are the maxima, which a single sender often decides where there are few.
    """
    return PNAConv(features, out, ["mean", "max", "std"], ["identity", "amplification"], torch.tensor([1, 2, 3]))


def graph() -> Data:
    """200 nodes with few features, weights and features of edges."""
    data, source = citation_graph(nodes=200, classes=3), torch.Generator().manual_seed(0)
    data.x = torch.randn(200, FEATURES, generator=source)
    data.edge_weight = torch.rand(data.edge_index.shape[1], generator=source)
    data.edge_attr = torch.randn(data.edge_index.shape[1], 2, generator=source)
    return data


def seconds(make: Callable[[], nn.Module], data: Data, *, repeats: int = REPEATS) -> tuple[float, str]:
    """Processor seconds of all toggles under two masks, the least of some runs, and who computes the rows."""
    torch.manual_seed(0)
    models = profile_models([make().eval() for _ in range(MODELS)], data)
    masks = torch.rand(2, len(data.x), generator=torch.Generator().manual_seed(1)) < 0.5
    nodes, taken = torch.arange(len(data.x)), []
    toggle_losses(models, data, masks[:1], nodes[:2], engine="layered")  # what is compiled or kept is there
    for _ in range(repeats):
        start = time.process_time()
        toggle_losses(models, data, masks, nodes, engine="layered")
        taken.append(time.process_time() - start)
    with torch.no_grad():
        steps = lower(models, ask(data, masks, nodes))
    asked = any(isinstance(one.layer, Unknown) for one in steps if isinstance(one, MessageOperation))
    return min(taken), "layer itself" if asked else "formula"


def row(name: str, make: Callable[[], nn.Module], data: Data, *, repeats: int = REPEATS) -> str:
    """A row of the table: with the layer types, then with none of them."""
    fast, who = seconds(make, data, repeats=repeats)
    known = dict(LAYER_TYPES)
    LAYER_TYPES.clear()
    try:
        slow, _ = seconds(make, data, repeats=repeats)
    finally:
        LAYER_TYPES.update(known)
    return f"| {name} | {who} | {fast:.3f} | {slow:.3f} | {slow / fast:.1f} |"


def main() -> None:
    """Write the table beside this file."""
    torch.set_num_threads(1)
    data, lines = graph(), []
    for name, (make, values) in CASES.items():
        lines.append(row(name, lambda make=make, values=values: TwoLayers(make, values), data))  # type: ignore[misc]
    lines.append(row("PNAConv", lambda: TwoLayers(pna), data))
    large = citation_graph(nodes=500, classes=4)
    width = large.x.shape[1]
    lines.append(row("GCNII, four layers, 500 nodes", lambda: Deep(width, 4), large, repeats=1))
    head = (
        "# Layer types\n\nProcessor seconds on one core: toggles of all nodes under two masks by three models "
        '(`engine="layered"`), two layers on 200 nodes.\n`formula`: the layer type\'s formula computes changed rows; '
        "`layer itself`: no type, or options that it does not know.\n\n"
        "| layer | changed rows by | seconds | seconds by calls of the layer | ratio |\n"
        "| --- | --- | --- | --- | --- |\n"
    )
    Path(__file__).with_suffix(".md").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
