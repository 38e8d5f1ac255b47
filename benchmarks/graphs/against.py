"""Time of the graph rooms beside another version: ``python benchmarks/graphs/against.py TREE [--device cuda]``.

TREE is a checkout of the other version (``git worktree add TREE COMMIT``). Every case runs in fresh processes (on a GPU
all cases in one), both versions in turns, each after one call that compiles; the smallest time of each version counts,
since other work on the machine only adds to it: processor seconds, or with a GPU seconds until it has finished. Data
come from ``GLASSHOUSE_DATA``; weights are freshly initialised.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from users_module import Mine

from glasshouse.graph import GBASE, GNNTrainer, GStacked, Scene, build_gnn, citation_graph, load_graph, toggle_losses

HERE = Path(__file__).parents[2]
DEVICE = os.environ.get("GLASSHOUSE_AGAINST", "cpu")
Work = Callable[[], object]


def _found(*places: str) -> Any:
    """A function by the first of its places that this version has."""
    for place in places:
        module, name = place.rsplit(".", 1)
        try:
            return getattr(importlib.import_module(f"glasshouse.graph.{module}"), name)
        except ImportError:
            continue
    return lambda models, _: models  # a version that looks models up itself


def _load(graph: str) -> Any:
    return load_graph(graph).to(DEVICE)


def _models(data: Any, architecture: str, hidden: int, layers: int = 2) -> list[Any]:
    torch.manual_seed(0)
    sizes = {"features": data.x.shape[1], "hidden": hidden, "classes": int(data.y.max()) + 1, "layers": layers}
    return [build_gnn(architecture, **sizes).eval().to(DEVICE) for _ in range(9)]


def _known(models: list[Any], data: Any) -> Any:
    """Models as a scene knows them, which profiles each once."""
    return _found("models.profile.profile_models")(models, data)


def toggles(graph: str, architecture: str, hidden: int, *, layers: int = 2, engine: str = "auto", share: float = 0.5,
            masks: int = 8, wrapped: str = "") -> Work:  # fmt: skip
    """Toggling a share of the nodes of nine models under eight masks."""
    data = _load(graph)
    models = _models(data, architecture, hidden, layers)
    if wrapped:
        models = [Mine(list(model.convolutions), rich=wrapped == "rich").eval().to(DEVICE) for model in models]
    drawn, nodes = torch.rand(masks, len(data.x)) < 0.5, torch.randperm(len(data.x))[: int(share * len(data.x))]
    drawn, nodes = drawn.to(DEVICE), nodes.to(DEVICE)
    known = _known(models, data)
    return lambda: toggle_losses(known, data, drawn, nodes, engine=engine)


def gibbs(graph: str, architecture: str, hidden: int) -> Work:
    """One sweep of eight Gibbs chains."""
    data = _load(graph)
    walk = _found("sampling.gibbs.gibbs_masks", "sampling.chains.gibbs.gibbs_masks")
    known = _known(_models(data, architecture, hidden), data)
    return lambda: walk(known, data, chains=8)


def metropolis(graph: str, architecture: str = "gcn") -> Work:
    """Two thousand steps of Metropolis–Hastings, four flips each on average."""
    data = _load(graph)
    walk = _found("sampling.metropolis.metropolis_masks", "sampling.chains.metropolis.metropolis_masks")
    known, flips = _known(_models(data, architecture, 64), data), 4 / len(data.x)
    return lambda: walk(known, data, samples=1, burn_in=0, thinning=2000, flip_share=flips)


def attack(kind: Any, graph: str) -> Work:
    """An attack on a scene of eight shadow models, tuned and scored; other models for every call."""
    data = _load(graph)
    models = _models(data, "gcn", 64)
    half = torch.rand(4, len(data.x), generator=torch.Generator().manual_seed(1)) < 0.5
    members = torch.stack([half, ~half], dim=1).reshape(8, -1).numpy()

    def work() -> object:
        fresh = copy.deepcopy(models)  # an earlier version looks known models up
        scene = Scene(data, fresh[8], fresh[:8], members)
        return kind().tuned(scene).score(scene)

    return work


def small_audit(kind: str) -> Work:
    """A whole audit of a made-up graph with four shadow models."""
    from glasshouse.graph import audit

    data = citation_graph(nodes=300)
    trainer = GNNTrainer(architecture="gcn", hidden=16, epochs=30, device=DEVICE)
    return lambda: audit(data, trainer=trainer, shadows=4, attacks=[kind], seed=0)


def training() -> Work:
    """Nine models in one pass on Cora."""
    data = load_graph("cora")
    members = torch.rand(9, len(data.x), generator=torch.Generator().manual_seed(1)) < 0.5
    trainer = GNNTrainer(architecture="gcn", hidden=64, epochs=20, device=DEVICE)
    return lambda: trainer.train_many(data, members.numpy(), list(range(9)))


CASES: dict[str, Callable[[], Work]] = {
    "toggle: cora gcn 64": lambda: toggles("cora", "gcn", 64),
    "toggle: pubmed gcn 64": lambda: toggles("pubmed", "gcn", 64),
    "toggle: pubmed sage 128": lambda: toggles("pubmed", "sage", 128),
    "toggle: photo gat 64, 10 % of nodes": lambda: toggles("amazon-photo", "gat", 64, share=0.1, masks=4),
    "gpu toggle: photo gat 64": lambda: toggles("amazon-photo", "gat", 64),
    "gpu toggle: github sage 64": lambda: toggles("github", "sage", 64),
    "toggle: github sage 64, 100 nodes, layered": lambda: toggles(
        "github", "sage", 64, share=0.0027, masks=2, engine="layered"
    ),
    "toggle: photo gat 64, 2 % of nodes, layered": lambda: toggles(
        "amazon-photo", "gat", 64, share=0.02, masks=2, engine="layered"
    ),
    "programs: your 2 x gcn, cora": lambda: toggles("cora", "gcn", 64, wrapped="plain"),
    "programs: your 2 x sage, cora": lambda: toggles("cora", "sage", 64, wrapped="plain"),
    "programs: your 2 x gat, cora": lambda: toggles("cora", "gat", 64, wrapped="plain"),
    "programs: your 3 x gcn, BatchNorm and residual, cora": lambda: toggles(
        "cora", "gcn", 64, layers=3, wrapped="rich", share=0.2
    ),
    "programs: 3 x gcn, cora": lambda: toggles("cora", "gcn", 64, layers=3, share=0.2),
    "programs: 2 x gin, cora": lambda: toggles("cora", "gin", 64),
    "chains: gibbs, cora gcn 64": lambda: gibbs("cora", "gcn", 64),
    "chains: gibbs, pubmed gcn 64": lambda: gibbs("pubmed", "gcn", 64),
    "chains: gibbs, cora sage 64": lambda: gibbs("cora", "sage", 64),
    "chains: metropolis, cora gcn 64": lambda: metropolis("cora"),
    "chains: metropolis, pubmed gcn 64": lambda: metropolis("pubmed"),
    "chains: metropolis, cora sage 64": lambda: metropolis("cora", "sage"),
    "stacked: g-stacked, cora": lambda: attack(GStacked, "cora"),
    "g-base, cora": lambda: attack(GBASE, "cora"),
    "small audit: g-base": lambda: small_audit("g-base"),
    "small audit: g-stacked": lambda: small_audit("g-stacked"),
    "training: nine models on cora, 20 epochs": training,
}


def measure(name: str, repeats: int) -> float:
    """The smallest time of a case in this process, after one call."""
    torch.manual_seed(0)
    work = CASES[name]()
    work()
    found = []
    for _ in range(repeats):
        start = _now()
        work()
        found.append(_now() - start)
    return min(found)


def _now() -> float:
    if DEVICE == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def in_tree(tree: Path, names: list[str], repeats: int) -> list[float]:
    """The same in a process of its own that imports another tree."""
    paths = os.pathsep.join(str(tree / part) for part in ("src", "experiments"))
    command = [sys.executable, __file__, str(tree), "--repeats", str(repeats), "--measure", *names]
    ran = subprocess.run(command, env=dict(os.environ, PYTHONPATH=paths), capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{tree}:\n{ran.stderr}")
    return [float(line) for line in ran.stdout.splitlines()[-len(names) :]]


def main() -> None:
    """Measure every case in both trees, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of the other version")
    parser.add_argument("--cases", default="", help="those whose name holds this text")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--names", nargs=2, help="of both versions, where git is absent")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.measure:
        for name in options.measure:
            print(measure(name, options.repeats), flush=True)
        return
    os.environ["GLASSHOUSE_AGAINST"] = options.device  # for the processes that measure
    on_gpu = options.device == "cuda"
    machine = torch.cuda.get_device_name() if on_gpu else f"{os.cpu_count()} cores"
    commits = options.names or [
        subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tree, capture_output=True, text=True).stdout.strip()
        for tree in (options.tree, HERE)
    ]
    lines = [
        f"{'Seconds' if on_gpu else 'Processor seconds'} of {commits[0]} and {commits[1]}, {machine},",
        f"torch {torch.__version__},",
        f"Python {platform.python_version()}; the smallest of {options.turns} processes with {options.repeats} calls.",
        "",
        f"| case | {commits[0]} | {commits[1]} | ratio |",
        "| --- | --- | --- | --- |",
    ]
    names = [name for name in CASES if options.cases in name and (on_gpu or not name.startswith("gpu "))]
    for several in [names] if on_gpu else [[name] for name in names]:  # a GPU's kernels are compiled once for all
        turns = [
            [in_tree(tree, several, options.repeats) for tree in (options.tree, HERE)] for _ in range(options.turns)
        ]
        for index, name in enumerate(several):
            before, now = (min(turn[tree][index] for turn in turns) for tree in (0, 1))
            lines.append(f"| {name} | {before:.3f} | {now:.3f} | {now / before:.2f} |")
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
