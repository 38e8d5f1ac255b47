"""Eight Wide-ResNets 28-2 on images of CIFAR-10's shape: together, one after another, and the fastest single step.

    python benchmarks/scale/wide_resnets.py [--limit 100] [--out FOLDER]     # writes wide_resnets.md into the folder

The images are made up (a class is a pattern under noise). Every way trains with the same recipe: half of 50 000 images,
500 a step, cropped and mirrored, SGD with Nesterov's momentum, bfloat16, channels last.

- *the trainer*: `TorchTrainer`, one model after another, and the same with ``compiled=True``.
- *processes*: the same step, in processes that share the GPU; by NVIDIA's MPS where its server starts.
- *a recorded step*: the whole step is recorded once as a CUDA graph and repeated, so that no kernel waits for Python.
- *recorded together*: the steps of several models in one CUDA graph, each in a stream of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from glasshouse import Population, TorchTrainer
from glasshouse.training import CropAndFlip, OneCycle, WideResNet

CUDA = torch.cuda.is_available()
PLACE = torch.device("cuda" if CUDA else "cpu")
RATE, EIGHT = 0.2, 8


def images(count: int) -> tuple[Tensor, Tensor]:
    """Images [N, 3, 32, 32], a pattern for each of ten classes under noise, and their classes [N]."""
    random = torch.Generator(PLACE).manual_seed(0)
    labels = torch.randint(10, (count,), generator=random, device=PLACE)
    patterns = torch.randn((10, 3, 8, 8), generator=random, device=PLACE)
    wide = patterns.repeat_interleave(4, 2).repeat_interleave(4, 3)
    return torch.randn((count, 3, 32, 32), generator=random, device=PLACE) + wide[labels], labels


def finished() -> float:
    """The time by the clock once the GPU has nothing left to do."""
    if CUDA:
        torch.cuda.synchronize()
    return time.time()


class Model:
    """One model, and a step of its training that reads everything from memory that stays in place."""

    def __init__(self, seed: int, x: Tensor, y: Tensor, *, batch: int, depth: int) -> None:
        torch.manual_seed(seed)
        self.net: nn.Module = WideResNet(classes=10, depth=depth).to(PLACE).train()
        self.net = self.net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.x, self.y = x, y
        members = np.random.default_rng(seed).permutation(len(y))[: len(y) // 2]
        self.members = torch.from_numpy(members).to(PLACE)
        self.rows = self.members[:batch].clone()  # of this step
        self.rate = torch.tensor(RATE, device=PLACE)
        self.optimizer = torch.optim.SGD(
            self.net.parameters(), lr=self.rate, momentum=0.9, nesterov=True, weight_decay=5e-4, fused=True
        )
        self.loss = torch.zeros((), device=PLACE)
        # the device's own generator: a recorded step moves it on at every repetition
        self.random = torch.cuda.default_generators[0] if CUDA else torch.default_generator

    def step(self) -> None:
        """Forwards, backwards, and the optimizer."""
        self.optimizer.zero_grad(set_to_none=True)
        batch = CropAndFlip()(self.x[self.rows], self.random).contiguous(memory_format=torch.channels_last)
        with torch.autocast(PLACE.type, dtype=torch.bfloat16, cache_enabled=False):
            answer = self.net(batch)
        loss = nn.functional.cross_entropy(answer.float(), self.y[self.rows])
        loss.backward()
        self.optimizer.step()
        self.loss.copy_(loss.detach())


def recorded(models: Sequence[Model]) -> Callable[[], None]:
    """One step of all models as a CUDA graph, each model in its own stream."""
    streams = [torch.cuda.Stream() for _ in models]

    def side_by_side() -> None:
        main = torch.cuda.current_stream()
        for one, stream in zip(models, streams, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                one.step()
        for stream in streams:
            main.wait_stream(stream)

    first = torch.cuda.Stream()  # as torch wants it: a few steps beside the main stream, and then the recording
    first.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(first):
        for _ in range(3):
            side_by_side()
    torch.cuda.current_stream().wait_stream(first)
    for one in models:
        one.optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        side_by_side()
    return graph.replay


def epochs_of(models: Sequence[Model], step: Callable[[], None], epochs: int) -> tuple[float, float, float]:
    """Train all models; when it began and ended, and the mean loss of the last step."""
    batch, count = len(models[0].rows), len(models[0].members)
    steps, cycle = count // batch, OneCycle()
    began = finished()
    for epoch in range(epochs):
        orders = [one.members[torch.randperm(count, device=PLACE)] for one in models]
        for number in range(steps):
            for one, order in zip(models, orders, strict=True):
                one.rows.copy_(order[number * batch : (number + 1) * batch])
                one.rate.fill_(RATE * cycle((epoch * steps + number) / (epochs * steps)))
            step()
    ended = finished()
    return began, ended, float(torch.stack([one.loss for one in models]).mean())


class Record:
    """Rows of the table, written as they come."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.file, self.options = folder / "wide_resnets.jsonl", options

    def add(self, way: str, models: int, seconds: float, loss: float, note: str = "") -> None:
        """Seconds in which so many models were trained for all epochs."""
        each = EIGHT * seconds / models / self.options.epochs
        row = {"way": way, "models": models, "eight, s per epoch": round(each, 4), "loss": round(loss, 3), "note": note}
        self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """One line, kept at once."""
        print(json.dumps(row), flush=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def tried(self, way: str, models: int, work: Callable[[], tuple[float, float]]) -> None:
        """Add what the work took, or why it failed."""
        try:
            self.add(way, models, *work())
        except Exception as error:  # a GPU job: what else can be measured still is
            self.write({"way": way, "models": models, "note": f"{type(error).__name__}: {str(error)[:300]}"})


def one_process(options: argparse.Namespace, record: Record, *, compiled: bool) -> None:
    """The trainer, and recorded steps of one model and of several."""
    x, y = images(options.images)
    population = Population(x.cpu().numpy(), y.cpu().numpy())
    members = np.zeros(options.images, dtype=np.bool_)
    members[np.random.default_rng(0).permutation(options.images)[: options.images // 2]] = True
    trainer = functools.partial(
        TorchTrainer,
        module=functools.partial(WideResNet, classes=10, depth=options.depth),
        optimizer=functools.partial(torch.optim.SGD, lr=RATE, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=OneCycle(),
        batch_size=options.batch,
        augmentation=CropAndFlip(),
    )

    def trained(**more: Any) -> tuple[float, float]:
        made = trainer(epochs=options.epochs, **more)
        trainer(epochs=1, **more)(population, members, 0)  # the device and the compiler are ready afterwards
        began = finished()
        model = made(population, members, 1)
        ended = finished()
        with torch.no_grad():
            chosen = torch.from_numpy(members).to(PLACE)
            loss = nn.functional.cross_entropy(model(x[chosen][:1000]), y[chosen][:1000])
        return ended - began, float(loss)

    if compiled:
        record.tried("the trainer, compiled", 1, lambda: trained(compiled=True))
        return
    record.tried("the trainer, one after another", 1, trained)
    make = functools.partial(Model, batch=options.batch, depth=options.depth)

    def steps(models: int, *, graph: bool) -> tuple[float, float]:
        made = [make(seed, x, y) for seed in range(models)]
        step = recorded(made) if graph else made[0].step
        epochs_of(made, step, 1)
        began, ended, loss = epochs_of(made, step, options.epochs)
        return ended - began, loss

    record.tried("this script's step, one after another", 1, lambda: steps(1, graph=False))
    if CUDA:
        torch.backends.cudnn.benchmark = True
        record.tried("the same, convolutions chosen by trial", 1, lambda: steps(1, graph=False))
        for models in (1, 2, 4, 8):
            way = "a recorded step" if models == 1 else "recorded together, one process"
            record.tried(way, models, functools.partial(steps, models, graph=True))


def worker(options: argparse.Namespace) -> None:
    """One of several processes: says when it is ready, and trains its model whenever a line comes."""
    torch.backends.cudnn.benchmark = True
    own = Model(options.worker, *images(options.images), batch=options.batch, depth=options.depth)
    steps = {"plain": own.step} | ({"recorded": recorded([own])} if CUDA else {})
    for step in steps.values():
        for _ in range(3):
            step()
    finished()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(epochs_of([own], steps[line.strip()], options.epochs)), flush=True)


def several_processes(options: argparse.Namespace, record: Record, until: float) -> None:
    """Two, four and eight processes, by MPS if its server starts."""
    with tempfile.TemporaryDirectory() as place:
        where = {"CUDA_MPS_PIPE_DIRECTORY": f"{place}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{place}/log"}
        for folder in where.values():
            Path(folder).mkdir()
        environment, shared = {**os.environ, **where}, "time slices: no MPS"
        try:
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True, timeout=10)
            shared = "MPS"
        except (OSError, subprocess.SubprocessError) as error:
            record.write({"way": "MPS", "models": 0, "note": f"its server does not start: {str(error)[:200]}"})
            environment = {**os.environ}
        own = [sys.executable, __file__, "--images", str(options.images), "--epochs", str(options.epochs)]
        own += ["--batch", str(options.batch), "--depth", str(options.depth), "--worker"]
        processes: list[Any] = [
            subprocess.Popen(
                [*own, str(number)],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
            for number in range(EIGHT)
        ]
        try:
            for one in processes:
                if one.stdout.readline().strip() != "ready":
                    raise RuntimeError("a process ended before it was ready")
            for kind in ("plain", "recorded") if CUDA else ("plain",):
                for count in (1, 2, 4, 8):
                    if time.time() > until:
                        return
                    for one in processes[:count]:
                        one.stdin.write(f"{kind}\n")
                    told = [json.loads(one.stdout.readline()) for one in processes[:count]]
                    seconds = max(end for _, end, _ in told) - min(begin for begin, _, _ in told)
                    loss = float(np.mean([loss for _, _, loss in told]))
                    record.add(f"processes, {kind} steps", count, seconds, loss, shared)
        except (RuntimeError, ValueError, OSError) as error:
            record.write({"way": "processes", "models": EIGHT, "note": str(error)[:300]})
        finally:
            for one in processes:
                one.kill()
            if shared == "MPS":
                subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=environment, timeout=10)


def page(rows: Sequence[dict[str, Any]], options: argparse.Namespace, device: str) -> str:
    """The table."""
    with FlopCounterMode(display=False) as counter:
        WideResNet(classes=10, depth=options.depth)(torch.zeros(1, 3, 32, 32))
    work = 3 * counter.get_total_flops() * (options.images // 2) * EIGHT / 1e12  # backwards twice as much as forwards
    first = next((row["eight, s per epoch"] for row in rows if "eight, s per epoch" in row), None)
    lines = [
        f"# Eight WRN-{options.depth}-2 on {device}",
        "",
        f"Written by `python benchmarks/scale/wide_resnets.py`, torch {torch.__version__}. Each model has",
        f"{options.images // 2:,} images, made up in CIFAR-10's shape, {options.batch} a step, in bfloat16, channels",
        f"last; {options.epochs} epochs after a first one. An epoch of eight models is {work:.0f} TFLOP. The loss is",
        "that of the last step (the trainer's: of members).",
        "",
        "| way | models at once | eight models, s per epoch | TFLOP/s | times the first row's speed | loss | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        seconds = row.get("eight, s per epoch")
        figures = "– | – | – | –"
        if seconds and first:
            figures = f"{seconds:.2f} | {work / seconds:.1f} | {first / seconds:.2f} | {row['loss']:.3f}"
        lines.append(f"| {row['way']} | {row['models']} | {figures} | {row.get('note', '')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure in processes of their own, as far as the limit allows, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--depth", type=int, default=28)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=100.0, help="seconds of all together")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=("single", "compiled"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    record, began = Record(options.out, options), time.time()
    if options.worker is not None:
        worker(options)
        return
    if options.part:
        one_process(options, record, compiled=options.part == "compiled")
        return
    record.file.unlink(missing_ok=True)
    device = torch.cuda.get_device_name() if CUDA else "a CPU"

    def left() -> float:
        return float(options.limit - (time.time() - began))

    def write() -> None:
        rows = [json.loads(line) for line in record.file.read_text(encoding="utf-8").splitlines()]
        (options.out / "wide_resnets.md").write_text(page(rows, options, device), encoding="utf-8")

    def part(name: str) -> None:
        try:
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--part", name], timeout=max(left(), 1))
        except subprocess.TimeoutExpired:
            record.write({"way": f"part {name}", "models": 1, "note": "stopped by the limit"})
        write()

    part("single")
    if left() > 25:
        several_processes(options, record, began + options.limit - 5)
        write()
    if left() > 20:
        part("compiled")
    print((options.out / "wide_resnets.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
