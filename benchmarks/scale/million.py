"""A graph of a million nodes and ten million edges, audited by a sample of 20 000 nodes.

    python benchmarks/scale/million.py                          # one GPU; a million nodes
    python benchmarks/scale/million.py --nodes 30000 --device cpu --audited 1000 --epochs 3

Makes a graph with hubs by the project's own generator, trains a target and shadow models (two-layer GraphSAGE), and
audits a sample of nodes with zero-hop attacks, G-BASE and the learned attack, then writes the run with its report.
Every step prints its seconds and the largest memory so far, of the host and of the device, so that a run that is cut
off still tells something. Written to ``benchmarks/scale/million.md``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from glasshouse.graph import GNNTrainer, RandomNodes, audit, citation_graph

GIB = 2**30
WORDS = 128  # features per node
PARTS = {  # what is timed: a function by its module and name, and what a line says about it
    ("glasshouse.graph.audit", "train_shadows"): "train the target",
    ("glasshouse.pool.shadow_pool", "train_group"): "train the shadow models",
    ("glasshouse.graph.audit", "node_accuracy"): "accuracy of the target",
    ("glasshouse.graph.audit", "check_engine"): "compare the engine with the rule",
    ("glasshouse.graph.audit", "Surroundings"): "neighbours of every node",
    ("glasshouse.auditing.steps", "run_attack"): "attack:",
    ("glasshouse.auditing.steps", "check_random_members"): "were members drawn at random",
    ("glasshouse.auditing.steps", "verdict_attack"): "choose the strongest, test for a leak",
    ("glasshouse.auditing.steps", "judge_claim"): "bound on epsilon",
}


def said(line: str) -> None:
    """Print a line, and keep it on disk at once in the file that MILLION_LOG names: a machine may go away."""
    print(line, flush=True)
    if place := os.environ.get("MILLION_LOG"):
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


@dataclass
class Steps:
    """Seconds and memory of each step, printed as they end."""

    rows: list[tuple[str, float, float, float]] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def note(self, name: str, seconds: float) -> None:
        """Keep and print one row."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        device = torch.cuda.max_memory_allocated() / GIB if torch.cuda.is_available() else 0.0
        self.rows.append((name, seconds, host, device))
        total = time.perf_counter() - self.began
        line = f"{name:<44} {seconds:8.1f} s   host {host:6.2f} GiB   device {device:6.2f} GiB"
        said(f"{line}   {total:7.1f} s so far")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        began = time.perf_counter()
        yield
        self.note(name, time.perf_counter() - began)


def made_graph(nodes: int, *, degree: float, seed: int = 0) -> Data:
    """The project's citation-like graph: a power law of degrees, seven classes, features of a bag of words."""
    return citation_graph(nodes=nodes, words=WORDS, topic_words=32, words_a_node=12.0, mean_degree=degree, seed=seed)


def watched(steps: Steps) -> None:
    """Print a line whenever a part of the audit ends: the audit is one call, and its parts take different times."""
    for (module, name), label in PARTS.items():
        place = importlib.import_module(module)
        setattr(place, name, _timed(getattr(place, name), label, steps))


def _timed(function: Callable[..., Any], label: str, steps: Steps) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        found = function(*arguments, **options)
        name = f"{label} {getattr(arguments[0], 'name', '')}" if label.endswith(":") else label
        steps.note(name, time.perf_counter() - began)
        return found

    return run


def measure(options: argparse.Namespace) -> tuple[Steps, list[str]]:
    """Run everything once: seconds and memory of each step, and what was found."""
    nodes, shadows, attacks = options.nodes, options.shadows, options.attacks.split(",")
    steps, lines = Steps(), []
    with steps.step("make the graph"):
        data = made_graph(nodes, degree=options.degree)
    degrees = torch.bincount(data.edge_index[1], minlength=nodes).double()
    about = (
        f"{nodes:,} nodes, {data.num_edges // 2:,} undirected edges ({data.num_edges:,} directed), largest degree "
        f"{int(degrees.max()):,}, sum of squared degrees {float((degrees**2).sum()):.3g}"
    )
    said(about)
    lines.append(about)
    trainer = GNNTrainer(
        architecture="sage",
        hidden=options.hidden,
        layers=2,
        epochs=options.epochs,
        device=options.device,
        batches=RandomNodes(parts=options.parts) if options.parts > 1 else None,
    )
    watched(steps)
    with steps.step("audit, everything above"):
        result = audit(data, trainer=trainer, attacks=attacks, shadows=shadows, nodes=options.audited, progress=False)
    with steps.step("report and files"), tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / "run")
    context = result.context
    lines.append(f"accuracy {context.train_accuracy:.3f} on members, {context.test_accuracy:.3f} on others")
    lines.append(f"engine: {context.settings['engine']}")
    lines += [str(note) for note in context.notes]
    lines += [f"{name} was left out: {why}" for name, why in result.left_out.items()]
    for name, outcome in result.outcomes.items():
        whole = outcome.sampling_intervals
        if whole is None:
            continue
        rates = ", ".join(
            f"TPR at {100 * one.wanted:g} % FPR {one.tpr:.4f} ({one.interval.low:.4f} to {one.interval.high:.4f})"
            for one in whole.rates
        )
        low, high = whole.auc_interval
        lines.append(f"{name}: AUC {whole.auc:.4f} ({low:.4f} to {high:.4f} for the whole graph); {rates}")
    for line in lines[1:]:
        said(line)
    return steps, lines


def written(steps: Steps, lines: Sequence[str], options: argparse.Namespace) -> str:
    """The page."""
    place = torch.cuda.get_device_name() if torch.cuda.is_available() and options.device != "cpu" else "the CPU"
    training = f"in {options.parts} random parts" if options.parts > 1 else "on all members at once"
    rows = [f"| {name} | {seconds:.1f} | {host:.2f} | {device:.2f} |" for name, seconds, host, device in steps.rows]
    return "\n".join(
        [
            "# A sample of a large graph",
            "",
            f"Written by `benchmarks/scale/million.py` on {place}, Python {platform.python_version()}, torch "
            f"{torch.__version__}. Two-layer GraphSAGE of width {options.hidden}, {options.epochs} epochs {training}, "
            f"{options.shadows} shadow models, a sample of {options.audited:,} nodes. Memory is the largest so far: of "
            f"the host what the whole process held, of the device what torch had allocated.",
            "",
            "| step | seconds | host, GiB | device, GiB |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            *[f"- {line}" for line in lines],
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--audited", type=int, default=20_000)
    parser.add_argument("--degree", type=float, default=20.0, help="mean number of neighbours")
    parser.add_argument("--shadows", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--parts", type=int, default=1, help="train by so many random parts of the graph")
    parser.add_argument("--attacks", default="base,lira,rmia,classifier,g-base,g-stacked")
    parser.add_argument("--device", default=None)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args(arguments)
    steps, lines = measure(options)
    options.out.write_text(written(steps, lines, options), encoding="utf-8")


if __name__ == "__main__":
    main()
