"""Train the models of CIFAR-10's tables with the paper's training on one GPU that is lent for minutes.

Several processes train models side by side (one alone leaves most of a GPU idle), the first eight shadow models and the
targets first. The losses of every finished model are written to ``targets.safetensors`` and ``shadows.safetensors``,
from which `kept_losses` reads them; the models are not kept. A later call with the same ``--parts`` trains what is
missing.

    nvidia-cuda-mps-control -d     # without it, processes take turns on a GPU
    python benchmarks/paper/cifar_models.py --out FOLDER --parts SCRATCH --seconds 540
    python benchmarks/paper/cifar_models.py --bring FOLDER --out runs/pools    # where the attacks are then run
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import time
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from glasshouse import InputError
from glasshouse.io.files import write_file
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import accuracy, query
from glasshouse_experiments.iid_bench import IidBench
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.kept_losses import BROUGHT, brought_bytes, brought_losses
from glasshouse_experiments.settings import Preset
from glasshouse_experiments.source_commit import source_commit

_FIRST = 8  # shadow models without which there is no table; the targets come next
_LOOK = 5.0  # seconds between two looks at what is finished
_LAST = 20.0  # seconds at the end that are left for writing


class Model(NamedTuple):
    """Which model of which pool."""

    kind: str
    number: int


def in_order(targets: int, shadows: int) -> list[Model]:
    """The first shadow models, the targets, then the other shadow models.

    Example:
        >>> [f"{kind} {number}" for kind, number in in_order(1, 9)][7:]
        ['shadows 7', 'targets 0', 'shadows 8']
    """
    models = [Model("shadows", number) for number in range(shadows)]
    return models[:_FIRST] + [Model("targets", number) for number in range(targets)] + models[_FIRST:]


def train(pool: ShadowPool, number: int, title: str = "") -> dict[str, Any]:
    """One model of a pool: its losses on every record, its accuracy, how many epochs and seconds it took."""
    began = time.monotonic()
    epochs: list[float] = []

    def tell(_: object) -> None:
        epochs.append(time.monotonic() - began)
        if len(epochs) % 10 == 1:
            print(f"{title}: epoch {len(epochs)} after {epochs[-1]:.0f} s", flush=True)

    seed = [seed for group in pool._groups() for seed in group.seeds][number]
    trainer: Any = pool.trainer
    model = trainer(pool.population, pool.members[number], seed, after_epoch=tell)
    model.eval()
    answers = query(model, pool.population)
    inside = pool.members[number]
    return {
        "loss": answers.loss,
        "train_accuracy": accuracy(answers, inside),
        "test_accuracy": accuracy(answers, ~inside),
        "epochs": len(epochs),
        "seconds": time.monotonic() - began,
    }


def work(pools: dict[str, ShadowPool], order: list[Model], taken: Any, place: Path, deadline: float) -> None:
    """Train one model after another, until none is left or the time is up."""
    torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = True
    longest = 0.0
    while time.monotonic() + longest < deadline:
        with taken.get_lock():
            index, taken.value = taken.value, taken.value + 1
        if index >= len(order):
            return
        kind, number = order[index]
        if (place / f"{kind}-{number}.npz").is_file():  # of an earlier call
            continue
        found = train(pools[kind], number, f"{kind} {number}")
        longest = max(longest, 0.8 * found["seconds"])
        np.savez(place / f".{kind}-{number}.npz", **found)
        (place / f".{kind}-{number}.npz").replace(place / f"{kind}-{number}.npz")
        figures = f"{found['train_accuracy']:.4f} {found['test_accuracy']:.4f}"
        print(f"{kind} {number}: {found['epochs']} epochs, {found['seconds']:.0f} s, {figures}", flush=True)


def planned(options: argparse.Namespace) -> tuple[dict[str, ShadowPool], list[Model]]:
    """The pools by kind, and the order of their models; reads the data."""
    preset = Preset(targets=options.targets, datasets=(), most_shadows=options.shadows, epochs=options.epochs)
    bench = IidBench(setting=RECORD_SETTINGS.find(options.setting), preset=preset, folder=options.out)
    return {"targets": bench.target_models, "shadows": bench.shadows}, in_order(options.targets, bench.models)


def worker(options: argparse.Namespace, taken: Any, place: Path, deadline: float) -> None:
    """What a process does; the monotonic clock is one for all processes."""
    work(*planned(options), taken, place, deadline)


def gather(pool: ShadowPool, kind: str, place: Path, out: Path, machine: str) -> int:
    """Write the losses of a pool's first models, as far as they are finished; return how many there are."""
    found: list[dict[str, Any]] = []
    for number in range(len(pool)):
        path = place / f"{kind}-{number}.npz"
        if not path.is_file():
            break
        with np.load(path, allow_pickle=False) as kept:
            found.append({name: kept[name] for name in kept})
    if found:
        stacked = {name: np.stack([one[name] for one in found]) for name in found[0]}
        made_by = {"commit": source_commit(), "machine": machine, "torch": str(torch.__version__)}
        write_file(out / f"{kind}.safetensors", brought_bytes(pool, stacked, made_by))
    return len(found)


def bring(bench: IidBench, found: Path) -> None:
    """Put the losses that another machine made where the experiments look for them, after a check."""
    for kind in ("targets", "shadows"):
        place = bench._place(kind)
        place.mkdir(parents=True, exist_ok=True)
        write_file(place / BROUGHT, (found / f"{kind}.safetensors").read_bytes())
    for kind, pool in (("targets", bench.target_models), ("shadows", bench.shadows)):
        kept = brought_losses(pool)
        if kept is None:
            raise InputError(f"{found}: holds no losses of {kind}.")
        figures = f"{100 * kept.train_accuracy.mean():.2f} and {100 * kept.test_accuracy.mean():.2f} %"
        print(f"{len(pool)} {kind}: right on {figures} of members and others, {kept.made_by}", flush=True)


def main() -> None:
    """Train, and keep what is finished; or bring it."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--setting", default="cifar10")
    parser.add_argument(
        "--parts", type=Path, help="where finished models are kept for later calls; in --out by default"
    )
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--shadows", type=int, default=32)
    parser.add_argument("--epochs", type=float, default=1.0, help="share of the setting's epochs")
    parser.add_argument("--bring", type=Path, help="put the files of this folder into the pools under --out, and end")
    options = parser.parse_args()
    if options.bring:
        preset = Preset(targets=options.targets, datasets=(), epochs=options.epochs)
        bring(IidBench(setting=RECORD_SETTINGS.find(options.setting), preset=preset, folder=options.out), options.bring)
        return
    deadline = began + options.seconds - _LAST
    place: Path = options.parts or options.out / "parts"
    for folder in (options.out, place):
        folder.mkdir(parents=True, exist_ok=True)
    # started anew: a process that has used CUDA, as some imports do, cannot fork one that uses it
    context = multiprocessing.get_context("spawn")
    taken = context.Value("i", 0)
    workers = [
        context.Process(target=worker, args=(options, taken, place, deadline), daemon=True)
        for _ in range(min(options.workers, options.targets + options.shadows))
    ]
    for one in workers:
        one.start()
    pools, _ = planned(options)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    machine, finished = f"{platform.machine()}, {device}", -1
    while True:
        ended = time.monotonic() > deadline or not any(one.is_alive() for one in workers)
        if len(found := list(place.glob("[!.]*.npz"))) > finished:
            finished = len(found)
            done = {kind: gather(pool, kind, place, options.out, machine) for kind, pool in pools.items()}
            print(f"{time.monotonic() - began:.0f} s: {done}, kept for {BROUGHT}", flush=True)
        if ended:
            break
        wait([one.sentinel for one in workers if one.is_alive()], timeout=_LOOK)
    for one in workers:
        one.terminate()


if __name__ == "__main__":
    main()
