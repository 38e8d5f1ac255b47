"""Killed, crowded or resumed: a pool always ends with the bytes of a run that was left alone."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

SCRIPT = """
import os, sys, time
import numpy as np
import torch
from glasshouse import Population, TorchTrainer
from glasshouse.pool import ShadowPool
from glasshouse.training import mlp

torch.set_num_threads(1)
random = np.random.default_rng(0)
population = Population(random.normal(size=(60, 3)).astype(np.float32), random.integers(2, size=60))
class Slow(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep(float(os.environ["PACE"]))  # not a global: the trainer is the same at any pace
        return super().step(closure)

def optimizer(parameters):
    return Slow(parameters, lr=0.1)

class Trainer(TorchTrainer):
    train_many = property()  # one model at a time, so that kills fall between models too

    def __repr__(self):
        return "the trainer of this test"

def train(folder):
    trainer = Trainer(module=mlp(3, 2), optimizer=optimizer, epochs=4, batch_size=16)
    ShadowPool.plan(population, trainer, shadows=10, folder=folder).train(progress=False)

# torch takes seconds to import and to wake up, so that each run is a fork of one process that has done both
TorchTrainer(module=mlp(3, 2), epochs=1)(population, np.arange(60) < 30, 0)
for line in sys.stdin:
    folder, os.environ["PACE"] = line.split()
    child = os.fork()
    if not child:
        train(folder)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@contextlib.contextmanager
def awake() -> Iterator[subprocess.Popen[str]]:
    """A process that trains a pool in a child for each line "folder pace", and writes the child's id and its end."""
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        yield process
        process.stdin.close()  # type: ignore[union-attr]


def start(process: subprocess.Popen[str], folder: Path, *, pace: float) -> int:
    """The id of a child that has begun to train."""
    assert process.stdin is not None
    process.stdin.write(f"{folder} {pace}\n")
    process.stdin.flush()
    return ended(process)


def ended(process: subprocess.Popen[str]) -> int:
    """The status of the child that has ended: 0, or the signal that killed it."""
    assert process.stdout is not None
    return int(process.stdout.readline())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_twenty_kills_at_random_moments_change_no_byte(tmp_path: Path) -> None:
    chance = random.Random(0)  # noqa: S311
    killed = kept = 0
    with awake() as process:
        start(process, tmp_path / "whole", pace=0.0)
        assert ended(process) == 0
        for _ in range(20):
            child = start(process, tmp_path / "killed", pace=0.04)
            time.sleep(chance.uniform(0.0, 0.5))
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                os.kill(child, signal.SIGKILL)
            killed += ended(process) == signal.SIGKILL
            kept = max(kept, len(list((tmp_path / "killed").glob("model-*.json"))))
        assert killed >= 10
        assert kept >= 1
        start(process, tmp_path / "killed", pace=0.0)
        assert ended(process) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_two_processes_on_one_pool_share_the_work_and_corrupt_nothing(tmp_path: Path) -> None:
    with awake() as one, awake() as other:
        start(one, tmp_path / "alone", pace=0.0)
        assert ended(one) == 0
        for process in (one, other):
            start(process, tmp_path / "shared", pace=0.003)
        assert [ended(one), ended(other)] == [0, 0]
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")
