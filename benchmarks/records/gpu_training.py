"""One model per trainer on the GPU: seconds and accuracy. Run: python benchmarks/records/gpu_training.py [--out FILE].

Made-up images of CIFAR's shape (a class is a pattern under noise) for the Wide-ResNet-28-2 with mixed precision and
channels-last, against the same training in plain float32; and a GCN on the synthetic graph.
"""

from __future__ import annotations

import argparse
import functools
import time
from pathlib import Path

import numpy as np
import torch

from glasshouse import Population, TorchTrainer
from glasshouse.evidence import accuracy, query
from glasshouse.graph import GNNTrainer, citation_graph
from glasshouse.graph.training.setting import node_accuracy
from glasshouse.graph.training.trainer import adam
from glasshouse.training import CropAndFlip, WideResNet


def images(count: int) -> Population:
    """Noise with a faint pattern for each of ten classes."""
    random = np.random.default_rng(0)
    labels = random.integers(10, size=count)
    patterns = random.normal(size=(10, 3, 8, 8)).repeat(4, axis=2).repeat(4, axis=3)
    return Population((random.normal(size=(count, 3, 32, 32)) + patterns[labels]).astype(np.float32), labels)


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "gpu_training.md")
    options = parser.parse_args()
    population = images(options.records)
    members = np.arange(options.records) % 2 == 0
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    lines = [
        f"# One model per trainer on {device}",
        "",
        f"torch {torch.__version__}; WRN-28-2 on {int(members.sum())} made-up images, {options.epochs} epochs of 256.",
        "",
        "| trainer | seconds | accuracy on members | on others |",
        "| --- | --- | --- | --- |",
    ]
    for mixed in (True, True, False):  # the first run also warms the device up
        trainer = TorchTrainer(
            module=functools.partial(WideResNet, classes=10),
            optimizer=functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=5e-4),
            epochs=options.epochs,
            batch_size=256,
            augmentation=CropAndFlip(),
            mixed_precision=mixed,
        )
        started = time.perf_counter()
        model = trainer(population, members, 0)
        seconds = time.perf_counter() - started
        answers = query(model, population)
        kind = "bfloat16, channels-last" if mixed else "float32"
        cells = f"{seconds:.1f} | {accuracy(answers, members):.3f} | {accuracy(answers, ~members):.3f}"
        lines.append(f"| TorchTrainer, {kind} | {cells} |")
    data = citation_graph()
    half = np.arange(int(data.num_nodes)) % 2 == 0
    started = time.perf_counter()
    gnn = GNNTrainer(epochs=200, optimizer=adam(0.01))(data, half, 0)
    seconds = time.perf_counter() - started
    cells = f"{seconds:.1f} | {node_accuracy(gnn, data, half):.3f} | {node_accuracy(gnn, data, ~half):.3f}"
    lines.append(f"| GNNTrainer, GCN 64, 200 epochs, synthetic graph | {cells} |")
    text = "\n".join(lines) + "\n"
    print(text)
    options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
