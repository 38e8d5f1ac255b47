"""How much faster the rule is than the loop over nodes.

Run: ``python benchmarks/graphs/toggle.py --cases cora-gcn pubmed-gcn``.

Every case is measured in one run against the per-node ego-net loop (``ego_losses``, all K + 1 models) on sampled
pairs (node, mask): with ego-nets as large as exactness needs, and with plain 2-hop ones, which are cheaper but wrong
near their border. Weights are freshly initialised: time does not depend on them. Data come from ``GLASSHOUSE_DATA``.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from made_graphs import flickr_graph, hub_graph, wide_graph
from torch import Tensor
from torch_geometric.data import Data
from users_module import Mine

from glasshouse.graph.data.load import load_graph
from glasshouse.graph.models.networks import GNN, build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.toggling import toggle_losses
from glasshouse_experiments.ego_nets import ego_losses


@dataclass(frozen=True, kw_only=True)
class Case:
    """A data set, an architecture, the paper's hidden width for the pair, and how many nodes are targets."""

    data: str
    architecture: str
    hidden: int
    layers: int = 2
    targets: int | None = None  # None: half of the nodes


CASES = {
    "cora-gcn": Case(data="cora", architecture="gcn", hidden=64),
    "pubmed-gcn": Case(data="pubmed", architecture="gcn", hidden=64),
    "pubmed-sage": Case(data="pubmed", architecture="sage", hidden=128),
    "photo-gat": Case(data="amazon-photo", architecture="gat", hidden=64),
    "github-sage": Case(data="github", architecture="sage", hidden=64),
    "flickr-gcn": Case(data="flickr", architecture="gcn", hidden=128),
    "hubs-gcn": Case(data="hubs", architecture="gcn", hidden=64, targets=169_343),
    "hubs-gcn-3": Case(data="hubs", architecture="gcn", hidden=64, layers=3, targets=4000),
    "hubs-gcn-3-all": Case(data="hubs", architecture="gcn", hidden=64, layers=3, targets=169_343),
    "wide-sage": Case(data="wide", architecture="sage", hidden=128),
}


def load(name: str) -> Data:
    """A graph by name; Flickr's features are made up, because the file that holds them was not available."""
    made = {"flickr": flickr_graph, "hubs": hub_graph, "wide": wide_graph}
    return made[name]() if name in made else load_graph(name)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What all cases share."""

    device: str
    shadows: int
    masks: int
    sampled: int
    engine: str
    memory: int | None
    repeats: int


def _seconds(work: Callable[[], object], device: str) -> float:
    """Wall-clock seconds of one call, waiting for the device to finish."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _best_of_threads(work: Callable[[], object], device: str) -> float:
    """Seconds with one thread or with all, whichever is less: small graphs lose more by waiting than they gain."""
    threads = torch.get_num_threads()
    seconds = []
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        seconds.append(_seconds(work, device))
    torch.set_num_threads(threads)
    return min(seconds)


def _peak(device: str) -> float:
    """Largest memory so far, GiB: of the GPU, or of this process."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**30
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(name: str, options: Options) -> str:
    """One row of the table."""
    case = CASES[name]
    torch.manual_seed(0)
    data = load(case.data).to(options.device)
    size, classes = int(data.num_nodes or 0), int(data.y.max()) + 1
    models: list[GNN] = [
        build_gnn(case.architecture, features=data.x.shape[1], hidden=case.hidden, classes=classes, layers=case.layers)
        .to(options.device)
        .eval()
        for _ in range(options.shadows + 1)
    ]
    masks = (torch.rand(options.masks, size) < 0.5).to(options.device)
    nodes = torch.randperm(size)[: case.targets or size // 2].to(options.device)
    results: list[Tensor] = []
    known = profile_models(models, data)  # as a scene does once

    def run() -> None:
        results[:] = [toggle_losses(known, data, masks, nodes, engine=options.engine, memory=options.memory)]

    if options.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    first = _seconds(run, options.device)
    pairs = options.masks * len(nodes)
    if options.repeats == 0:
        peak = _peak(options.device)
        return (
            f"| {name} | {size} | {pairs} | {first:.3f} | - | - | {1e6 * first / pairs:.1f} | {peak:.2f} |" + " - |" * 6
        )
    fast = min(_seconds(run, options.device) for _ in range(options.repeats))
    yours = [Mine(list(model.convolutions)).to(options.device).eval() for model in models]  # the very same weights

    known_yours = profile_models(yours, data)

    def run_yours() -> None:
        toggle_losses(known_yours, data, masks, nodes, engine=options.engine, memory=options.memory)

    run_yours()
    own = min(_seconds(run_yours, options.device) for _ in range(options.repeats))
    peak = _peak(options.device)
    row = (
        f"| {name} | {size} | {pairs} | {first:.3f} | {fast:.3f} | {own:.3f} | {1e6 * fast / pairs:.1f} | {peak:.2f} |"
    )
    if options.sampled == 0:
        return row + " - | - | - | - | - | - |"
    slow_results: list[Tensor] = []
    some = nodes[: options.sampled]

    def loop(radius: int | None) -> None:
        slow_results[:] = [ego_losses(models, data, masks[:1], some, radius=radius)]

    _seconds(lambda: ego_losses(models, data, masks[:1], nodes[:1]), options.device)  # warm
    lean = _best_of_threads(lambda: loop(2), options.device) / options.sampled
    exact = _best_of_threads(lambda: loop(None), options.device) / options.sampled
    error = float((results[0][:, :1, : options.sampled].cpu() - slow_results[0].cpu()).abs().max())
    ratios = f" {1e3 * exact:.1f} | {exact * pairs / fast:.0f} | {exact * pairs / own:.0f} |"
    ratios += f" {1e3 * lean:.1f} | {lean * pairs / fast:.0f} |"
    return row + ratios + f" {error:.1e} |"


def main() -> None:
    """Measure, print and save the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [name for name in CASES if not name.endswith("-all")]  # minutes
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES), default=every)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--shadows", type=int, default=8)
    parser.add_argument("--masks", type=int, default=8)
    parser.add_argument("--sampled", type=int, default=20, help="pairs for the per-node loop; 0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3, help="0: the first call alone")
    parser.add_argument("--memory", type=int, default=None, help="bytes for the engine")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/graphs/toggle.md"))
    chosen = parser.parse_args()
    options = Options(
        device=chosen.device,
        shadows=chosen.shadows,
        masks=chosen.masks,
        sampled=chosen.sampled,
        engine=chosen.engine,
        memory=chosen.memory,
        repeats=chosen.repeats,
    )
    machine = torch.cuda.get_device_name() if options.device == "cuda" else f"{torch.get_num_threads()} CPU threads"
    lines = [
        f"Engine `{options.engine}` on {machine}, torch {torch.__version__}, Python {platform.python_version()};",
        f"{options.shadows} shadow models and the target, {options.masks} masks, half of the nodes as targets.",
        "`hubs` and `wide` are made up (made_graphs.py); hubs-gcn has all nodes as targets, hubs-gcn-3 (three layers)",
        "4 000 of them, hubs-gcn-3-all all.",
        f"Both loops are measured on {options.sampled} sampled pairs, with one thread or all, whichever is faster: the",
        "exact one with ego-nets as large as needed, the lean one with 2-hop ego-nets, wrong at the border. The",
        "first call includes compiling. Peak memory is the GPU's, or the whole process's on a CPU. Error is the",
        "largest difference in S from the exact loop on the sampled pairs. *Your module*: the same weights in a module",
        "as users write it (users_module.py), with dropout and log_softmax, traced.",
        "",
        "| case | nodes | pairs | first call s | s | your module s | µs per pair | peak GiB | exact loop ms per pair |"
        " times faster | your module times faster | lean loop ms per pair | times faster | error |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for name in chosen.cases:
        lines.append(measure(name, options))
        print(lines[-1], flush=True)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
