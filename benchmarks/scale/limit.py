"""How far the engines are from what the machine allows: ``python benchmarks/scale/limit.py``.

The least that a method must touch, over the copy bandwidth and the FLOP/s that are measured in the same run; the larger
of the two times is the bound. What comes on top in any program (losses, index arrays, random numbers) is left out, so a
bound cannot be reached.

- toggles: for every target, mask and model, each row that a toggle changes is read and written once, after the first
  layer with the hidden width and after the second with one number per class. A toggle changes the first layer's rows
  one hop away, and with GCN, which divides by degrees, two hops away. With GraphSAGE the largest hidden values of the
  second layer's rows are read too: without them nobody knows whether they change.
- chains: one sweep asks the same about every node under the mask of every chain; flips are not counted.
- queries: what `g-stacked` asks besides toggles, the whole graph and every node alone: non-zero features times weights,
  and each message read once per layer.
- training: per epoch and model, non-zero features times weights forwards and for the gradient, messages both ways.
- trees: each tree reads one byte per row and feature, and the row's gradient, once per level of a balanced tree.
- scores: losses and members of all shadow models are read once, scores are written.

Data come from ``GLASSHOUSE_DATA``; weights are freshly initialised. On the CPU times are processor seconds: other work
on the machine then counts only by what it takes of caches and bandwidth. Set OMP_NUM_THREADS=1 there, since threads
that wait are counted too. Writes ``limit.md``, or on a GPU ``limit-gpu.md``, beside itself. With ``--profile`` it also
prints which kernels a GPU runs in a call of each case, and how much of the call it waits.
"""

from __future__ import annotations

import argparse
import functools
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array

from glasshouse import Evidence
from glasshouse.attacks import create
from glasshouse.attacks.learners import Boosted
from glasshouse.graph import GNNTrainer, Scene
from glasshouse.graph.data.load import load_graph
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.toggling import toggle_losses
from glasshouse.graph.sampling.gibbs import gibbs_masks

MODELS, MASKS = 9, 8  # eight shadow models and the target
EPOCHS, HIDDEN = 20, 64


class Case(NamedTuple):
    """A piece of work, and the least that it must touch."""

    what: str
    bytes: float
    flop: float
    work: Callable[[], object]


def _masks(nodes: int) -> torch.Tensor:
    """The same half of the nodes for every kind of model, [M, N]."""
    return torch.rand(MASKS, nodes, generator=torch.Generator().manual_seed(0)) < 0.5


@functools.cache
def changed_rows(graph: str) -> tuple[int, int]:
    """How many rows are within one hop and within two of a target, over all targets and masks."""
    data = load_graph(graph)
    edges, nodes = data.edge_index.numpy(), int(data.num_nodes)
    whole = csr_array((np.ones(edges.shape[1], dtype=np.float32), (edges[0], edges[1])), shape=(nodes, nodes))
    first = second = 0
    for mask in _masks(nodes).numpy():
        inside = np.flatnonzero(mask)
        once = whole[:, inside]
        twice = once @ whole[inside][:, inside] + once
        first, second = first + once.nnz + nodes, second + twice.nnz + nodes
    return first, second


def _drawn(graph: str, kind: str, device: str) -> tuple[Any, list[Any], torch.Tensor]:
    """A graph, models that were not trained, and masks of half of the nodes."""
    torch.manual_seed(0)
    data = load_graph(graph)
    sizes = {"features": data.num_features, "hidden": HIDDEN, "classes": int(data.y.max()) + 1}
    models = [build_gnn(kind, **sizes).eval().to(device) for _ in range(MODELS)]
    return data.to(device), models, _masks(int(data.num_nodes))


def _of_toggles(graph: str, kind: str, data: Any) -> tuple[str, float]:
    near, both = changed_rows(graph)
    first = both if kind == "gcn" else near
    values = 2 * first * HIDDEN + 2 * both * (int(data.y.max()) + 1) + (both * HIDDEN if kind == "sage" else 0)
    return f"{first:,} rows after layer 1, {both:,} after layer 2", MODELS * 4 * values


def toggles(graph: str, kind: str, device: str) -> Case:
    """Every node, under all masks."""
    data, models, masks = _drawn(graph, kind, device)
    what, least = _of_toggles(graph, kind, data)
    known, masks = profile_models(models, data), masks.to(device)
    every = torch.arange(data.num_nodes, device=device)
    return Case(what, least, 0, lambda: toggle_losses(known, data, masks, every))


def chains(graph: str, kind: str, device: str) -> Case:
    """One sweep of eight Gibbs chains."""
    data, models, _ = _drawn(graph, kind, device)
    what, least = _of_toggles(graph, kind, data)
    known = profile_models(models, data)
    return Case(what, least, 0, lambda: gibbs_masks(known, data, chains=MASKS))


def _passes(data: Any) -> tuple[float, float]:
    """Bytes and operations of one forward pass of a two-layer GCN over a graph."""
    nodes, edges, classes = data.num_nodes, data.edge_index.shape[1] + data.num_nodes, int(data.y.max()) + 1
    entries = int((data.x != 0).sum())
    flop = 2 * (entries * HIDDEN + edges * HIDDEN + nodes * HIDDEN * classes + edges * classes)
    return 8 * entries + 4 * (edges + nodes) * (HIDDEN + classes), flop


def queries(graph: str, device: str) -> Case:
    """The whole graph and every node alone, asked of all models."""
    data, models, masks = _drawn(graph, "gcn", device)
    size, flop = _passes(data)
    members = np.concatenate([masks[:4].numpy(), ~masks[:4].numpy()])

    def work() -> object:
        scene = Scene(data, models[0], models[1:], members)
        return scene.zero_hop, scene.whole_graph

    return Case(f"2 queries, {int((data.x != 0).sum()):,} features", 2 * MODELS * size, 2 * MODELS * flop, work)


def training(graph: str, device: str) -> Case:
    """Nine models in one pass."""
    data, _, masks = _drawn(graph, "gcn", device)
    size, flop = _passes(data)
    members = torch.cat([masks, masks[:1]]).numpy()
    trainer = GNNTrainer(architecture="gcn", hidden=HIDDEN, epochs=EPOCHS, device=device)
    # half of the nodes and a quarter of the edges: features count half, and they are what it costs
    steps = EPOCHS * MODELS * 2 * 0.5
    seeds = list(range(MODELS))
    return Case(f"{EPOCHS} epochs", steps * size, steps * flop, lambda: trainer.train_many(data, members, seeds))


def trees(rows: int, features: int) -> Case:
    """One fit of the trees of ``stacked`` and ``g-stacked``."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, features))
    members = values[:, :3].sum(axis=1) + rng.normal(size=rows) > 0
    learner = Boosted(examples=rows)
    levels = np.log2(learner.leaves)
    least = learner.rounds * levels * rows * (features * learner.share + 8)
    what = f"{learner.rounds} trees, {rows:,} rows, {features} features"
    return Case(what, least, 0, lambda: learner.fit(values, members, seed=0))


def scores(attack: str, records: int, models: int = 16) -> Case:
    """The scores of one target."""
    rng = np.random.default_rng(0)
    members = np.repeat([[True], [False]], models // 2, axis=1).reshape(-1, 1) ^ (rng.random((1, records)) < 0.5)
    loss = rng.exponential(np.where(members, 0.5, 1.0))
    evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
    tuned = create(attack).tuned(evidence)
    return Case(f"{records:,} records, {models} models", evidence.shadow_loss.nbytes + members.nbytes + 16 * records, 0,
                lambda: tuned.score(evidence))  # fmt: skip


def cases(device: str) -> dict[str, Callable[[], Case]]:
    """All of them by name; what runs on the CPU alone is left out on a GPU, and the largest on the CPU."""
    graphs = ("cora", "pubmed", "github") if device == "cuda" else ("cora", "pubmed")  # 315 million rows
    named: dict[str, Callable[[], Case]] = {
        f"toggles: {graph} {kind} {HIDDEN}": functools.partial(toggles, graph, kind, device)
        for graph in graphs
        for kind in ("gcn", "sage", "gat")
    }
    for graph in ("cora", "pubmed"):
        named[f"queries: {graph} gcn {HIDDEN}"] = functools.partial(queries, graph, device)
        named[f"training: {graph} gcn {HIDDEN}"] = functools.partial(training, graph, device)
        named[f"chains: {graph} gcn {HIDDEN}"] = functools.partial(
            chains, graph, "gcn", device
        )  # on the CPU in any case
    if device == "cpu":
        named["trees"] = functools.partial(trees, 200_000, 30)
        for attack in ("base", "lira", "rmia"):
            named[f"scores: {attack}"] = functools.partial(scores, attack, 100_000)
    return named


def smallest(work: Callable[[], object], device: str, repeats: int) -> float:
    """Seconds of the fastest of several calls, after one that compiles; on the CPU processor seconds."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    work()
    found = []
    for _ in range(repeats):
        start = clock()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(clock() - start)
    return min(found)


def where_a_gpu_spends(work: Callable[[], object], seconds: float, *, most: int = 14) -> list[str]:
    """The kernels of one call that take longest, and those operations of the program that do, as lines of text.

    ``seconds`` is how long a call takes without a profiler.
    """
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profiler:
        work()
        torch.cuda.synchronize()
    found = list(profiler.key_averages())
    kernels = [one for one in found if str(one.device_type).endswith("CUDA")]
    busy = sum(one.self_device_time_total for one in kernels) / 1e6
    host = [one for one in found if one not in kernels]
    waits = sum(one.count for one in host if one.key in ("cudaStreamSynchronize", "cudaDeviceSynchronize"))
    lines = [
        f"{sum(one.count for one in kernels):,} kernels, {1e3 * busy:.1f} ms of {1e3 * seconds:.1f} ms; the GPU waits "
        f"{100 * (1 - busy / seconds):.0f} %; the program waits for the GPU {waits:,} times"
    ]
    spent = [("", one.self_device_time_total, one) for one in kernels]
    called = [("host ", one.self_cpu_time_total, one) for one in host]
    for some, count in ((spent, most), (called, most // 2)):
        for where, time_us, one in sorted(some, key=lambda each: -each[1])[:count]:
            lines.append(f"  {where}{time_us / 1e3:9.2f} ms {one.count:6,} x {one.key[:100]}")
    return lines


def bandwidth(device: str) -> float:
    """Bytes per second that a copy reads and writes."""
    values = torch.zeros(2**28, dtype=torch.uint8, device=device)
    other = torch.empty_like(values)
    return 2 * values.nbytes / smallest(lambda: other.copy_(values), device, 20)


def arithmetic(device: str) -> float:
    """Operations per second of a product of matrices in float32."""
    values = torch.rand(2048, 2048, device=device)
    return 2 * 2048**3 / smallest(lambda: values @ values, device, 10)


def main() -> None:
    """Measure every case and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--cases", nargs="*", default=[""], help="those whose name holds one of these texts")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="on a GPU: print the kernels of each case")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no case begins after them")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device, began = options.device, time.perf_counter()
    name = "limit-gpu.md" if device == "cuda" else "limit.md"
    out = options.out or Path(__file__).with_name(name)
    speed, most = bandwidth(device), arithmetic(device)
    place = torch.cuda.get_device_name() if device == "cuda" else f"{torch.get_num_threads()} thread(s)"
    lines = [
        f"{place}, torch {torch.__version__}, Python {platform.python_version()}, load {os.getloadavg()[0]:.0f}; a "
        f"copy moves {speed / 1e9:.1f} GB/s, a product does {most / 1e9:.0f} GFLOP/s. {MODELS} models, {MASKS} masks "
        f"of half of the nodes, all nodes as targets, two layers. {'Wall' if device == 'cuda' else 'Processor'} time, "
        f"the smallest of {options.repeats} calls.",
        "",
        "| case | what | least GB | least GFLOP | bound ms | measured ms | times the bound |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, make in cases(device).items():
        if time.perf_counter() - began > options.seconds or not any(part in name for part in options.cases):
            continue
        case = make()
        seconds = smallest(case.work, device, options.repeats)
        bound = max(case.bytes / speed, case.flop / most)
        lines.append(
            f"| {name} | {case.what} | {case.bytes / 1e9:.3f} | {case.flop / 1e9:.2f} | {1e3 * bound:.2f} | "
            f"{1e3 * seconds:.1f} | {seconds / bound:.1f} |"
        )
        print(lines[-1], flush=True)
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        if options.profile:
            print(*where_a_gpu_spends(case.work, seconds), sep="\n", flush=True)


if __name__ == "__main__":
    main()
