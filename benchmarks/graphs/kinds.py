"""Toggles of models of typed edges and of kinds of nodes, beside the loop that asks a model twice for every node.

    python benchmarks/graphs/kinds.py

One model, one mask, every node of the audited kind. Both signals must agree to 1e-5.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.graph.test_edge_types import Typed
from tests.graph.test_kinds import ZOO, library
from torch import Tensor
from torch_geometric.nn import FiLMConv, RGATConv, RGCNConv

from glasshouse.graph import citation_graph, toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.training.plain import as_plain

NODES, REPEATS = 400, 3


def typed(layer: Any) -> tuple[Any, Any, Tensor]:
    """Two layers, a graph with three kinds of edges, and the nodes that are asked about."""
    data = citation_graph(nodes=NODES, classes=3)
    data.edge_type = torch.arange(data.edge_index.shape[1]) % 3
    return Typed(layer, data.x.shape[1], 3).eval(), data, torch.arange(NODES)


def kinds(name: str) -> tuple[Any, Any, Tensor]:
    """A module of papers and authors, the same in its plain form."""
    data = library(NODES, NODES // 4)
    model = ZOO[name]().eval()
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)  # layers without sizes take them here
    plain, wrapped = as_plain(data)
    return wrapped(model).eval(), plain, torch.arange(NODES)


def seconds(call: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Processor seconds, the least of some runs, and the answer."""
    taken, found = [], torch.empty(0)
    for _ in range(REPEATS):
        began = time.process_time()
        found = call()
        taken.append(time.process_time() - began)
    return min(taken), found


def row(name: str, made: tuple[Any, Any, Tensor]) -> str:
    """One row of the table."""
    model, data, nodes = made
    models = profile_models([model], data)
    mask = torch.rand(1, len(data.x), generator=torch.Generator().manual_seed(1)) < 0.5
    mask[:, len(nodes) :] = True  # other kinds are context
    quick, found = seconds(lambda: toggle_losses(models, data, mask, nodes))
    slow, wanted = seconds(lambda: toggle_losses(models, data, mask, nodes, engine="reference"))
    error = float((found - wanted).abs().max())
    assert error < 1e-5, (name, error)
    how = "taken apart" if models[0].profile.program is not None else "black box"
    return f"| {name} | {how} | {quick:.3f} | {slow:.2f} | {slow / quick:.0f} | {error:.0e} |"


def main() -> None:
    """Measure all and write kinds.md."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = {"RGCN": RGCNConv, "RGAT": RGATConv, "FiLM": FiLMConv}
    rows = [row(f"{name}, typed edges", typed(layer)) for name, layer in layers.items()]
    rows += [row(f"{name}, kinds of nodes", kinds(name)) for name in ZOO]
    lines = ["# Kinds of nodes and edges", "", f"{__doc__.strip().splitlines()[0]}", ""]
    lines += [
        f"{NODES} audited nodes, one model, one mask; processor seconds on one core, the least of {REPEATS} runs.",
        "",
    ]
    lines += ["| model | how it is asked | seconds | loop, seconds | times | largest difference |"]
    lines += ["| --- | --- | --- | --- | --- | --- |", *rows, "", "Made by `python benchmarks/graphs/kinds.py`."]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
