"""Many models together against one at a time.

Run: GLASSHOUSE_DATA=… python benchmarks/graphs/together.py [--device cuda].

On the CPU: 8 Cora GCN models (hidden 64, 200 epochs), 8 of modules as users write them (three layers, plain and with
BatchNorm, a residual and dropout of the features) and 32 models on scikit-learn's digits. On a GPU: 128 Cora GCN
models against 8 one at a time. The plain loop is the same trainer called for one model after another: dense features,
PyTorch Geometric's own layers, with one thread or all, whichever is faster for the first model.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.nn import GCNConv

from glasshouse import Population, TorchTrainer
from glasshouse.core.arrays import BoolArray
from glasshouse.data import as_population, complementary_halves
from glasshouse.graph import GNNTrainer, load_graph
from glasshouse.training import mlp

CORA = GNNTrainer(architecture="gcn", hidden=64, epochs=200)
PERCEPTRON = TorchTrainer(module=mlp(64, 10), epochs=50)


class Plain(nn.Module):
    """Three GCNConv with ReLU and dropout between them, as users write it."""

    def __init__(self, features: int, classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, hidden), GCNConv(hidden, hidden)
        self.last = GCNConv(hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits [n, classes]."""
        x = F.dropout(self.first(x, edge_index).relu(), p=0.5, training=self.training)
        x = F.dropout(self.second(x, edge_index).relu(), p=0.5, training=self.training)
        return self.last(x, edge_index)  # type: ignore[no-any-return]


class Residual(nn.Module):
    """Three GCNConv with BatchNorm, a residual and log-probabilities, as users write it."""

    def __init__(self, features: int, classes: int, hidden: int = 64, input_dropout: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, hidden), GCNConv(hidden, hidden)
        self.last = GCNConv(hidden, classes)
        self.norms = nn.ModuleList([nn.BatchNorm1d(hidden), nn.BatchNorm1d(hidden)])
        self.input_dropout = input_dropout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Log-probabilities [n, classes]."""
        x = F.dropout(x, p=self.input_dropout, training=self.training)
        x = F.dropout(F.relu(self.norms[0](self.first(x, edge_index))), p=0.5, training=self.training)
        x = x + F.dropout(F.relu(self.norms[1](self.second(x, edge_index))), p=0.5, training=self.training)
        return F.log_softmax(self.last(x, edge_index), dim=1)


def users(make: Callable[[int, int], nn.Module], data: Any, **options: Any) -> GNNTrainer:
    """A trainer of a user's module for this graph."""
    features, classes = int(data.x.shape[1]), int(data.y.max()) + 1
    return GNNTrainer(model=lambda: make(features, classes), **options)


def cnn() -> nn.Module:
    """Two convolutions for 8 x 8 images."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def digits() -> Population:
    """1 797 digits of 8 x 8 pixels."""
    raw = load_digits()
    return Population((raw.data / 16).astype(np.float32), raw.target)


def seconds(work: Callable[[], object], device: str) -> tuple[float, float]:
    """Wall-clock time of one call, and its processor time on all cores."""
    started, worked = time.perf_counter(), time.process_time()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started, time.process_time() - worked


def compare(
    trainer: Any, data: Any, *, models: int, plain: int | None = None, threads: int = 2, repeats: int = 2
) -> dict[str, float]:
    """Seconds for ``models`` models together and for ``plain`` (as many by default) one at a time, the best of each.

    ``work_ratio`` compares processor time on all cores, which other programs hardly change.
    """
    plain = plain or models
    members = complementary_halves(len(as_population(data)), models=models, seed=0)
    device = trainer.place.type

    def together() -> None:
        trainer.train_many(data, members, range(models))

    def one_at_a_time(who: BoolArray, how: Any = trainer) -> None:
        for seed, row in enumerate(who):
            how(data, row, seed)

    before = torch.get_num_threads()
    try:
        short = replace(trainer, epochs=3)
        short.train_many(data, members, range(models))  # libraries are loaded, a GPU is awake
        one_at_a_time(members[:1], short)
        trials = {}
        for count in {1, threads}:
            torch.set_num_threads(count)
            trials[seconds(lambda: one_at_a_time(members[:1], short), device)] = count
        alone, at_once = [], []
        for _ in range(repeats):  # in turns, so that both have the same noise
            torch.set_num_threads(threads)
            at_once.append(seconds(together, device))
            torch.set_num_threads(trials[min(trials)])
            alone.append(seconds(lambda: one_at_a_time(members[:plain]), device))
    finally:
        torch.set_num_threads(before)
    (plain_wall, plain_work), (wall, work) = (map(min, zip(*times, strict=True)) for times in (alone, at_once))
    return {"plain": plain_wall, "together": wall, "ratio": plain_wall / wall, "work_ratio": plain_work / work}


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--graph", default="cora", help="a graph by name; synthetic needs no files")
    parser.add_argument("--only", default="", help="only rows with these words in their names")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    graph, images = load_graph(options.graph), digits()
    cpu = options.device == "cpu"
    gcn, perceptron = replace(CORA, device=options.device), replace(PERCEPTRON, device=options.device)
    convolutional = replace(perceptron, module=cnn, epochs=5)
    perceptron32 = replace(perceptron, batch_size=32, epochs=20)
    runs: list[tuple[str, Any, Any, int, int]] = [
        (f"GCN, {options.graph}, 200 epochs", gcn, graph, 8 if cpu else 128, 8),
        *[
            (f"{kind}, {options.graph}, 20 epochs", replace(gcn, architecture=kind, epochs=20), graph, 8, 8)
            for kind in ("sage", "gat", "gin", "sgc")
        ],
        *[
            (
                f"your module: {words}, {options.graph}, 100 epochs",
                users(make, graph, epochs=100, device=options.device),
                graph,
                8,
                8,
            )
            for words, make in (
                ("three GCNConv", Plain),
                ("three GCNConv, BatchNorm, residual", Residual),
                ("the same, dropout of features", functools.partial(Residual, input_dropout=0.5)),
            )
        ],
        ("MLP, digits, batches of 128", perceptron, images, 32, 32),
        ("MLP, digits, batches of 32", perceptron32, images, 32, 32),
        ("CNN, digits, batches of 128", convolutional, images, 32, 32),
    ]
    place = f"{torch.get_num_threads()} CPU cores" if cpu else torch.cuda.get_device_name()
    lines = [
        f"# Models trained together against one at a time, on {place}",
        "",
        f"torch {torch.__version__}; seconds, the best of {options.repeats} runs of each, in turns. The plain loop",
        "calls the same trainer for one model after another, with one thread or all, whichever was faster.",
        "The last column compares processor time on all cores, which other programs hardly change.",
        "",
        "| models | together | seconds | one at a time | seconds | times faster per model | less work per model |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, trainer, data, together, plain in [run for run in runs if options.only in run[0]]:
        threads = torch.get_num_threads() if cpu else 1
        found = compare(trainer, data, models=together, plain=plain, threads=threads, repeats=options.repeats)
        faster, cheaper = (found[ratio] * together / plain for ratio in ("ratio", "work_ratio"))
        cells = f"{together} | {found['together']:.2f} | {plain} | {found['plain']:.2f} | {faster:.1f} | {cheaper:.1f}"
        lines.append(f"| {name} | {cells} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines) + "\n"
    out = options.out or Path(__file__).parent / ("together.md" if cpu else "together-gpu.md")
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
