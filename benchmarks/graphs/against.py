"""Time of the graph rooms beside another version: ``python benchmarks/graphs/against.py TREE [--device cuda]``.

TREE is a checkout of the other version (``git worktree add TREE COMMIT``). Each version has one process, and they call
every case in turns, after one call that compiles; the smallest time of each version counts, since other work on the
machine only adds to it: processor seconds, or with a GPU seconds until it has finished. Data come from
``GLASSHOUSE_DATA``; weights are freshly initialised.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import os
import platform
import statistics
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


class Tree:
    """A process that imports one version and measures the cases that it is told."""

    def __init__(self, tree: Path) -> None:
        paths = os.pathsep.join(str(tree / part) for part in ("src", "experiments"))
        command = [sys.executable, __file__, str(tree), "--worker"]
        environment = dict(os.environ, PYTHONPATH=paths)
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, name: str) -> None:
        """Begin one call of a case; the first one of each case compiles and is not measured."""
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)

    def answer(self) -> float:
        """The seconds that it took."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process that measures ended; its message is above")
        return float(line)


def work_for_others() -> None:
    """Read names of cases, one a line, and print the seconds of a call of each."""
    known: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in known:
            known.clear()
            torch.manual_seed(0)
            known[name] = CASES[name]()
            known[name]()
        start = _now()
        known[name]()
        print(_now() - start, flush=True)
        if DEVICE == "cuda":
            torch.cuda.empty_cache()  # the other process needs the memory


def _now() -> float:
    if DEVICE == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def both(trees: list[Tree], name: str, *, calls: int, most: float) -> list[list[float]]:
    """Seconds of so many calls in each tree, in turns; fewer, but at least two, once a case took ``most`` seconds."""
    for tree in trees:  # at the same time: graphs are loaded, and kernels compiled
        tree.ask(name)
    for tree in trees:
        tree.answer()
    found: list[list[float]] = [[], []]
    start = time.perf_counter()
    while len(found[0]) < calls and (len(found[0]) < 2 or time.perf_counter() - start < most):
        for tree, seconds in zip(trees, found, strict=True):
            tree.ask(name)
            seconds.append(tree.answer())
    return found


def main() -> None:
    """Measure every case in both trees, in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout of the other version")
    parser.add_argument("--cases", nargs="*", default=[""], help="those whose name holds one of these texts")
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--most", type=float, default=60.0, help="seconds of one case")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of all; no case begins after them")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--names", nargs=2, help="of both versions, where git is absent")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.worker:
        work_for_others()
        return
    began = time.perf_counter()
    os.environ["GLASSHOUSE_AGAINST"] = options.device  # for the processes that measure
    on_gpu = options.device == "cuda"
    machine = torch.cuda.get_device_name() if on_gpu else f"{os.cpu_count()} cores"
    commits = options.names or [
        subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=tree, capture_output=True, text=True).stdout.strip()
        for tree in (options.tree, HERE)
    ]
    lines = [
        f"{'Seconds' if on_gpu else 'Processor seconds'} of {commits[0]} and {commits[1]}, {machine},",
        f"torch {torch.__version__}, Python {platform.python_version()}; the smallest of {options.calls} calls",
        "in turns, and the ratio of the medians.",
        "",
        f"| case | {commits[0]} | {commits[1]} | ratio | of medians |",
        "| --- | --- | --- | --- | --- |",
    ]
    trees = [Tree(tree) for tree in (options.tree, HERE)]
    for name in CASES:
        if time.perf_counter() - began > options.seconds or not any(part in name for part in options.cases):
            continue
        if name.startswith("gpu ") and not on_gpu:
            continue
        found = both(trees, name, calls=options.calls, most=options.most)
        (before, now), (usual, usual_now) = map(min, found), map(statistics.median, found)
        lines.append(f"| {name} | {before:.4f} | {now:.4f} | {now / before:.2f} | {usual_now / usual:.2f} |")
        print(lines[-1], flush=True)
        if options.out:
            options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for tree in trees:
        tree.process.communicate()


if __name__ == "__main__":
    main()
