"""What kin cost: ``python benchmarks/graphs/kin.py --out benchmarks/graphs/kin.md``.

Time and memory of both queries, alone and in the whole graph: once per graph to prepare, then for the surprises of
eight targets together and of one alone. Beside it the formula that is written out: an inverse of all pairs of nodes, or
of all pairs of columns if these are fewer, in float64; it does not run on the wide graph. Processor time on one thread,
so that other work on the machine does not matter; with ``--device cuda`` wall time. The graphs come from
``GLASSHOUSE_DATA``; the wide one is made up.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.sparse import csr_array, issparse
from threadpoolctl import threadpool_limits
from torch_geometric.data import Data

sys.path.insert(0, str(Path(__file__).parent))

from made_graphs import wide_graph

from glasshouse.graph import citation_graph, load_graph
from glasshouse.graph.attacks.stacking.features import GraphContext
from glasshouse.graph.attacks.stacking.similar_nodes import RowSums

GRAPHS = ("cora", "citeseer", "pubmed", "amazon-photo", "wide")
_LARGEST = 25_000  # nodes; beyond, the formula that is written out would need many gigabytes


class Cost(NamedTuple):
    """Seconds to prepare, for eight targets and for one; bytes kept, and the most that were held meanwhile."""

    prepare: float
    eight: float
    one: float
    kept: float
    most: float


def written_out(data: Data) -> dict[str, tuple[np.ndarray, ...]]:
    """For both queries matrices whose product maps surprises to fitted values."""
    features, labels = data.x.numpy().astype(np.float64), data.y.numpy()
    source, receiver = data.edge_index.numpy()
    beside = csr_array((np.ones(len(source)), (receiver, source)), shape=(len(labels), len(labels)))
    around = (beside @ features) / np.maximum(beside.sum(axis=1), 1)[:, None]
    both = np.concatenate([part / np.sqrt((part**2).sum(axis=1).mean()) for part in (features, around)], axis=1)
    return {"alone": _fit(features, labels), "whole": _fit(both, labels)}


def _fit(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, ...]:
    centred = features - features.mean(axis=0)
    centred /= np.sqrt((centred**2).sum(axis=1).mean())
    classes = int(labels.max()) + 1
    if len(labels) <= (centred.shape[1] + 1) * (classes - 1):
        alike = (centred @ centred.T + 0.3) * np.where(labels[:, None] == labels, 1, -1 / (classes - 1))
        alike[np.diag_indices_from(alike)] += 0.3
        fit = -0.3 * cho_solve(cho_factor(alike, overwrite_a=True), np.eye(len(alike)), overwrite_b=True)
        fit[np.diag_indices_from(fit)] += 1
        return (fit,)
    corners = np.sqrt(classes / (classes - 1)) * (np.eye(classes) - 1 / classes)
    codes = (corners @ np.linalg.svd(corners)[2][: classes - 1].T)[labels]
    described = np.column_stack([centred, np.full(len(centred), np.sqrt(0.3))])
    columns = (described[:, :, None] * codes[:, None, :]).reshape(len(centred), -1)
    products = columns.T @ columns + 0.3 * np.eye(columns.shape[1])
    half = solve_triangular(np.linalg.cholesky(products), columns.T, lower=True)
    return half.T, half


def held(matrix: Any) -> int:
    """Bytes of a matrix of features."""
    if issparse(matrix):
        return int(matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes)
    return int(matrix.nbytes)


def kept(context: GraphContext) -> int:
    """Bytes that the kin of a graph keep; both queries share the nodes' own features."""
    similar = [kin.solver.matrix for kin in context.kin.values()]
    parts = {id(part): part for one in similar for part in one.described}
    blocks = sum(held(block) for part in parts.values() for block in part.blocks)
    if isinstance(next(iter(parts.values())).mean, torch.Tensor):  # sparse blocks lie there transposed, too
        blocks += sum(held(one) for part in parts.values() for one in part.turned if isinstance(one, RowSums))
    return int(blocks) + sum(
        int(kin.solver.large.nbytes) + kin.own.nbytes + kin.order.nbytes for kin in context.kin.values()
    )


def ours(data: Data) -> Cost:
    """What kin cost as they are."""
    clock = time.process_time if data.x.device.type == "cpu" else _on_gpu
    random = np.random.default_rng(0)
    eight, single = random.normal(size=(8, len(data.y))), random.normal(size=len(data.y))
    tracemalloc.start()
    context = GraphContext.of(data)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bare, prepare = (_timed(clock, partial(GraphContext.of, data, kin=flag)) for flag in (False, True))

    def expected(rows: np.ndarray) -> None:
        for kin in context.kin.values():
            kin.expected(rows)

    together, one = (_timed(clock, partial(expected, asked)) for asked in (eight, single))
    return Cost(prepare - bare, together, one, kept(context), most)


def formula(data: Data) -> Cost:
    """What the formula costs that is written out."""
    eight = np.random.default_rng(0).normal(size=(8, len(data.y)))
    tracemalloc.start()
    started = time.process_time()
    fits = written_out(data)
    prepare = time.process_time() - started
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    def fitted(rows: np.ndarray) -> None:
        for fit in fits.values():
            values = rows.T
            for matrix in reversed(fit):
                values = matrix @ values

    together, one = (_timed(time.process_time, partial(fitted, rows)) for rows in (eight, eight[:1]))
    return Cost(prepare, together, one, sum(matrix.nbytes for fit in fits.values() for matrix in fit[-1:]), most)


def _timed(clock: Callable[[], float], function: Callable[[], Any]) -> float:
    started = clock()
    function()
    return clock() - started


def _on_gpu() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def row(name: str, data: Data, *, compare: bool) -> str:
    """One line of the table."""
    found = ours(data)
    size = f"{len(data.y)} x {data.x.shape[1]}, {float((data.x != 0).float().mean()):.1%}"
    cells = [f"{found.prepare:.2f}", f"{found.eight:.2f}", f"{found.one:.2f}"]
    cells += [f"{found.kept / 2**20:.0f}", f"{found.most / 2**20:.0f}"]
    if compare and len(data.y) <= _LARGEST:
        old = formula(data)
        cells += [f"{old.prepare:.1f}", f"{old.eight:.2f}", f"{old.kept / 2**20:.0f}", f"{old.most / 2**20:.0f}"]
    else:
        cells += ["-"] * 4
    return f"| {name} | {size} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, help="names for load_graph, wide, or a number of nodes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    lines = []
    for name in options.graphs:
        made = citation_graph(nodes=int(name), seed=0) if name.isdigit() else None
        data = made or (wide_graph() if name == "wide" else load_graph(name))
        with threadpool_limits(1):
            lines.append(row(name, data.to(options.device), compare=options.device == "cpu"))
        print(lines[-1], flush=True)
    processor = torch.cuda.get_device_name() if options.device != "cpu" else f"one core, {platform.machine()}"
    clock = "Wall time" if options.device != "cpu" else "Processor time"
    head = f"""# What kin cost

{clock} in seconds on {processor}; MiB of memory on the CPU, both queries together. "written out" is the formula with an
inverse of all pairs of nodes or columns, float64.

| graph | nodes x features, non-zero | prepare | 8 targets | 1 target | kept | peak |\
 written out: prepare | 8 targets | kept | peak |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
    options.out.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
