"""Users' modules beside our own class: ``python benchmarks/graphs/programs.py --out benchmarks/graphs/programs.md``.

First a table of modules as users write them (``tests/graph/zoo.py``): the engine that each gets, how its layers are
toggled, and the largest difference from the rule as written. Then times in one run, each pair in turns: a user's module
against our class with the same weights, a residual and BatchNorm against plain layers, a layer of unknown type against
whole-model packing. ``--device cuda`` measures on a GPU. Cora comes from ``GLASSHOUSE_DATA``.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import erdos_renyi_graph

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))  # the modules are those of the tests

from tests.graph.zoo import CLASSES, EVERYWHERE, FEATURES, PYG, ZOO, Differences
from users_module import Mine

from glasshouse.graph import citation_graph, toggle_losses
from glasshouse.graph.data.load import load_graph
from glasshouse.graph.models.networks import GNN, build_gnn
from glasshouse.graph.models.profile import Profiled, profile_models
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.operations import MessageOperation
from glasshouse.graph.rule.incremental.program import lower
from glasshouse.graph.rule.question import ask
from glasshouse.graph.rule.toggling import engine_names


def small_graph(seed: int, nodes: int = 60) -> Data:
    """A random graph for the comparison with the rule as written."""
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(nodes, 0.06)
    return Data(x=torch.randn(nodes, FEATURES), edge_index=edges, y=torch.randint(CLASSES, (nodes,)))


def randomised(model: Any, seed: int) -> Any:
    """A module whose every weight and statistic is random, in evaluation mode."""
    torch.manual_seed(seed)
    if isinstance(model, nn.Module):
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(torch.rand_like(value) + 0.5 if name.endswith("var") else 0.5 * torch.randn_like(value))
        model.eval()
    return model


def layers_of(model: Profiled, data: Data) -> str:
    """How the layers of a program are toggled."""
    if model.profile.program is None:
        return "-"
    question = ask(data, torch.ones(1, len(data.x), dtype=torch.bool), torch.tensor([0]))
    with torch.no_grad():
        messages = [one.layer for one in lower([model], question) if isinstance(one, MessageOperation)]
    asked = sum(isinstance(layer, Unknown) for layer in messages)
    return f"{len(messages) - asked} incremental" + (f", {asked} asked itself" if asked else "")


def zoo_row(name: str, make: Callable[[], Any]) -> str:
    """One module: its engine, its layers, and how far its signals are from the rule as written."""
    data, model = small_graph(len(name)), randomised(make(), 1)
    masks, nodes = torch.rand(2, len(data.x)) < 0.6, torch.arange(0, len(data.x), 7)
    (known,) = profile_models([model], data)
    profile = known.profile
    found, right = (toggle_losses([model], data, masks, nodes, engine=engine) for engine in ("auto", "reference"))
    (engine,) = engine_names([known], ask(data, masks, nodes))
    reach = "all" if profile.everywhere else str(profile.hops)
    difference = float(((found - right).abs() / right.abs().clamp(min=1)).max())
    return f"| {name} | {reach} | {engine} | {layers_of(known, data)} | {profile.obstacle or '-'} | {difference:.1e} |"


class Own(nn.Module):
    """A user's layers that nobody knows."""

    def __init__(self, layer: Callable[[int, int], nn.Module], features: int, classes: int, layers: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(features, 64), nn.Linear(64, classes)
        self.layers = nn.ModuleList(layer(64, 64) for _ in range(layers))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits [n, classes]."""
        x = self.into(x)
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.out(x)  # type: ignore[no-any-return]


class Degrees(MessagePassing):  # type: ignore[misc]
    """Differences that are divided by the senders' degrees: a layer that nobody knows and that reaches further."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="add")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Rows [n, out]."""
        count = torch.zeros_like(x[:, :1]).index_add(0, edge_index[1], torch.ones_like(x[edge_index[1], :1])) + 1
        return self.lin(x + self.propagate(edge_index, x=torch.tanh(x) / count))  # type: ignore[no-any-return]


def seconds(work: Callable[[], object], device: str) -> float:
    """Wall-clock seconds of one call, waiting for the device to finish."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def pair_row(name: str, works: Sequence[Callable[[], object]], *, device: str, repeats: int) -> str:
    """Two works in turns: medians, and the median of their ratios."""
    for work in works if repeats > 1 else works[:1]:
        work()
    times = [[seconds(work, device) for work in works] for _ in range(repeats)]
    first, second = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(b / a for a, b in times)
    row = f"| {name} | {first:.3f} | {second:.3f} | {ratio:.2f} |"
    print(row, file=sys.stderr, flush=True)
    return row


def time_rows(data: Data, *, masks: int, share: float, device: str, repeats: int) -> list[str]:
    """A user's module against ours, rich against plain, and a layer that is not known against packing."""
    torch.manual_seed(0)
    data = data.to(device)
    size, classes = len(data.x), int(data.y.max()) + 1
    drawn = (torch.rand(masks, size) < 0.5).to(device)
    nodes = torch.randperm(size)[: int(share * size)].to(device)

    def toggles(models: Sequence[Any], engine: str = "auto") -> Callable[[], object]:
        known = profile_models(models, data)  # as a scene does once
        return lambda: toggle_losses(known, data, drawn, nodes, engine=engine)

    def ours(architecture: str, layers: int) -> list[GNN]:
        sizes = {"features": data.x.shape[1], "hidden": 64, "classes": classes, "layers": layers}
        return [build_gnn(architecture, **sizes).to(device).eval() for _ in range(9)]

    def mine(models: Sequence[GNN], **rich: bool) -> list[nn.Module]:
        return [Mine(list(model.convolutions), **rich).to(device).eval() for model in models]

    rows = []
    for architecture, layers in [("gcn", 2), ("sage", 2), ("gat", 2), ("gcn", 3)]:
        models = ours(architecture, layers)
        works = [toggles(models), toggles(mine(models))]
        rows.append(pair_row(f"ours, yours: {layers} x {architecture}", works, device=device, repeats=repeats))
    plain = ours("gcn", 3)
    works = [toggles(mine(plain)), toggles(mine(plain, rich=True))]
    rows.append(pair_row("3 x gcn, with BatchNorm and residual", works, device=device, repeats=repeats))
    kinds: list[Any] = [Differences, Degrees]
    for layer, layers in [(kinds[0], 2), (kinds[0], 3), (kinds[1], 2)]:
        models_ = [Own(layer, data.x.shape[1], classes, layers).to(device).eval() for _ in range(9)]
        works = [toggles(models_), toggles(models_, "packed")]
        name = f"asked itself, packed: {layers} x {layer.__name__}"
        rows.append(pair_row(name, works, device=device, repeats=1))
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; write where ``--out`` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graph", default="cora", help="a name, or a number of nodes of a synthetic graph")
    parser.add_argument("--masks", type=int, default=8)
    parser.add_argument("--share", type=float, default=0.5, help="of the nodes that are targets")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--zoo", type=int, default=100, help="how many modules of the table")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    data = citation_graph(nodes=int(options.graph)) if options.graph.isdigit() else load_graph(options.graph)
    zoo = list({**{name: make for name, (make, _) in (ZOO | PYG).items()}, **EVERYWHERE}.items())[: options.zoo]
    place = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    lines = [
        f"Times on {place}, torch {torch.__version__}, Python {platform.python_version()}; {options.graph}, eight",
        f"shadow models and the target, {options.masks} masks, {options.share:.0%} of the nodes as targets. Medians of",
        f"{options.repeats} turns; layers of unknown type in one turn, since packing takes long.",
        "",
        "| what | first s | second s | second over first |",
        "| --- | --- | --- | --- |",
        *time_rows(data, masks=options.masks, share=options.share, device=options.device, repeats=options.repeats),
        "",
        "Modules as users write them (`tests/graph/zoo.py`), random weights, 60 nodes. *Engine*: the one that `auto`",
        "takes for so small a graph. *Layers*: incremental, or the layer itself computes the rows that change.",
        "*Difference*: the largest from the rule as written, of S or of 1 if S is smaller, in float32.",
        "",
        "| module | L | engine | layers | why no program | difference |",
        "| --- | --- | --- | --- | --- | --- |",
        *[zoo_row(name, make) for name, make in zoo],
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
