"""How far the toggling engine is from what the machine's memory allows: ``python benchmarks/scale/limit.py``.

The least that the method must move: for every target, mask and model, each row that a toggle changes is read and
written once, after the first layer with the hidden width and after the second with one number per class; of a layer
that multiplies first, nothing wider has to be stored. Losses, weights and messages come on top, so the bound cannot be
reached. It is divided by the copy bandwidth that is measured in the same run. Data come from ``GLASSHOUSE_DATA``;
weights are freshly initialised. Writes ``limit.md``, or on a GPU ``limit-gpu.md``, beside itself.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array

from glasshouse.graph.data.load import load_graph
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.toggling import toggle_losses

MODELS, MASKS = 9, 8  # eight shadow models and the target
CASES = [
    *(("cora", kind, 64) for kind in ("gcn", "sage", "gat")),
    *(("pubmed", kind, 64) for kind in ("gcn", "sage", "gat")),
    ("github", "sage", 64),
]


def changed_rows(edges: np.ndarray, nodes: int, masks: np.ndarray) -> tuple[int, int]:
    """How many rows all toggles change after the first and after the second layer, over all masks [M, N]."""
    whole = csr_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(nodes, nodes))
    first = second = 0
    for mask in masks:
        inside = np.flatnonzero(mask)
        once = whole[:, inside]
        twice = once @ whole[inside][:, inside] + once
        first, second = first + once.nnz + nodes, second + twice.nnz + nodes
    return first, second


def smallest(work: Callable[[], object], device: str, repeats: int) -> float:
    """Seconds of the fastest of several calls, after one that compiles."""
    work()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found)


def bandwidth(device: str) -> float:
    """Bytes per second that a copy reads and writes."""
    values = torch.zeros(2**28, dtype=torch.uint8, device=device)
    other = torch.empty_like(values)
    return 2 * values.nbytes / smallest(lambda: other.copy_(values), device, 20)


def main() -> None:
    """Measure every case and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--cases", default="", help="those whose name holds this text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    speed = bandwidth(options.device)
    place = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} threads"
    lines = [
        f"{place}, torch {torch.__version__}, Python {platform.python_version()}; a copy moves {speed / 1e9:.0f} GB/s. "
        f"{MODELS} models, {MASKS} masks of half of the nodes, all nodes as targets, two layers.",
        "",
        "| case | rows after layer 1 | after layer 2 | least GB | bound ms | measured ms | times the bound |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, kind, hidden in CASES:
        case = f"{name}-{kind}"
        if options.cases not in case:
            continue
        torch.manual_seed(0)
        data = load_graph(name)
        classes, nodes = int(data.y.max()) + 1, data.num_nodes
        models = [
            build_gnn(kind, features=data.num_features, hidden=hidden, classes=classes).eval() for _ in range(MODELS)
        ]
        masks = torch.rand(MASKS, nodes) < 0.5
        rows = changed_rows(data.edge_index.numpy(), nodes, masks.numpy())
        least = MODELS * 2 * 4 * (rows[0] * hidden + rows[1] * classes)
        data, masks = data.to(options.device), masks.to(options.device)
        known = profile_models([model.to(options.device) for model in models], data)
        every = torch.arange(nodes, device=options.device)
        seconds = smallest(lambda: toggle_losses(known, data, masks, every), options.device, options.repeats)  # noqa: B023
        bound = least / speed
        lines.append(
            f"| {case} | {rows[0]:,} | {rows[1]:,} | {least / 1e9:.2f} | {1e3 * bound:.2f} | {1e3 * seconds:.1f} | "
            f"{seconds / bound:.1f} |"
        )
        print(lines[-1], flush=True)
    name = "limit-gpu.md" if options.device == "cuda" else "limit.md"
    out = options.out or Path(__file__).with_name(name)
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
