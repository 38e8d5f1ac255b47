"""What every attack costs on a graph of Flickr's size, with the paper's models. Writes flickr_size.md.

Flickr's features are not at hand. The graph has its real edges where they are under ``GLASSHOUSE_DATA``, and made-up
labels and features of its shape: seconds and memory say something about Flickr, the AUC only that the attack ran.

    python benchmarks/graphs/flickr_size.py                      # all attacks, in the order of their cost
    python benchmarks/graphs/flickr_size.py --out benchmarks/graphs/flickr_size-cpu.md    # kept beside it: two CPU
    cores python benchmarks/graphs/flickr_size.py --nodes 2000 --epochs 5 --attacks base g-base-mia
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import platform
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from made_graphs import flickr_graph
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.attacks import Attack, attack_names, create
from glasshouse.compute import available_cores
from glasshouse.data import random_subsets
from glasshouse.evaluation import auc, run_attack
from glasshouse.graph import GBASE, Scene
from glasshouse.pool import ShadowPool
from glasshouse_experiments.settings import SETTINGS

SHADOWS = 8
CHAINS = ("g-base-gibbs", "g-base-metropolis")


def attacks() -> dict[str, Attack[Any]]:
    """Every attack that needs nothing but a scene, the cheapest first; G-BASE with every sampler that has no truth."""
    small = [name for name in attack_names(graph=False) if name != "best"]
    found = {name: create(name) for name in small}
    found |= {f"g-base-{sampler}": GBASE(sampler=sampler) for sampler in ("independent", "mia")}
    found |= {name: create(name) for name in ("g-regressed", "g-classifier")}
    found["g-stacked"] = create("g-stacked", samples=(8,), jobs=available_cores())
    return found | {name: GBASE(sampler=name.removeprefix("g-base-")) for name in CHAINS}


HEAD = ("attack", "seconds", "processor seconds", "peak GiB of the process", "peak GiB of the GPU", "AUC %")


def trained(data: Data, *, epochs: int | None, folder: Path) -> tuple[Scene, np.ndarray, float]:
    """A scene of the paper's setting with half of the nodes audited, who trained the target, and how long that took."""
    trainer = SETTINGS.find("flickr").trainer
    trainer = dataclasses.replace(trainer, epochs=epochs or trainer.epochs)
    began = time.perf_counter()
    shadows = ShadowPool.plan(data, trainer, shadows=SHADOWS, seed=0, folder=folder / "shadows")
    members = random_subsets(int(data.num_nodes), models=1, fraction=0.5, seed=1)
    target = ShadowPool(population=data, trainer=trainer, members=members, seed=1, folder=folder / "target")
    models = [list(dataclasses.replace(pool, together=SHADOWS)) for pool in (target, shadows)]
    seconds = time.perf_counter() - began
    nodes = np.random.default_rng(0).permutation(int(data.num_nodes))[: int(data.num_nodes) // 2]
    return Scene(data, models[0][0], models[1], shadows.members, nodes=nodes), members[0][nodes], seconds


def measured(attack: Attack[Any], scene: Scene, truth: np.ndarray) -> tuple[float, ...]:
    """Seconds, processor seconds, peak memory of the process and of the GPU in GiB, and AUC in percent."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    began, busy = time.perf_counter(), time.process_time()
    outcome = run_attack(attack, scene, fprs=())
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    on_gpu = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else float("nan")
    return seconds, busy, most, on_gpu, 100 * auc(outcome.scores, truth)


def part_of(data: Data, nodes: int) -> Data:
    """The graph that the first nodes induce."""
    inside = (data.edge_index < nodes).all(0)
    return Data(x=data.x[:nodes], edge_index=data.edge_index[:, inside], y=data.y[:nodes])


def main() -> None:
    """Measure, print, and keep the table after every attack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "flickr_size.md")
    parser.add_argument("--nodes", type=int, help="only the first so many")
    parser.add_argument("--epochs", type=int, help="the paper's 800 by default")
    known = attacks()
    parser.add_argument("--attacks", nargs="+", choices=list(known), default=list(known))
    options = parser.parse_args()
    whole = flickr_graph()
    data = whole if options.nodes is None else part_of(whole, options.nodes)
    with tempfile.TemporaryDirectory() as folder:
        scene, truth, seconds = trained(data, epochs=options.epochs, folder=Path(folder))
        epochs = options.epochs or SETTINGS.find("flickr").trainer.epochs
        machine = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
        lines = [
            "# Every attack on a graph of Flickr's size",
            "",
            f"{machine}, {available_cores()} cores, torch {torch.__version__}. {data.num_nodes} nodes,",
            f"{data.num_edges} edges; features and labels are made up. {SHADOWS} shadow models and the target",
            f"took {seconds:.0f} s to train ({epochs} epochs); half of the nodes are audited. The first attack also",
            "compiles and copies the graph.",
            "",
            f"| {' | '.join(HEAD)} |",
            "|" + " --- |" * len(HEAD),
        ]
        for name in options.attacks:
            try:
                told = [
                    "–" if math.isnan(figure) else f"{figure:.2f}" for figure in measured(known[name], scene, truth)
                ]
            except InputError as error:  # it needs something that this audit does not have
                told = [*["–"] * (len(HEAD) - 2), str(error)]
            lines.append(f"| {name} | {' | '.join(told)} |")
            print(lines[-1], flush=True)
            options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
