"""Killed, crowded or resumed: a pool always ends with the bytes of a run that was left alone."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Forks, Talk

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

# torch takes a while to wake up, so that each run is a fork of one process in which it has
TorchTrainer(module=mlp(3, 2), epochs=1)(population, np.arange(60) < 30, 0)
for line in sys.stdin:
    folder, os.environ["PACE"], count = line.split()
    children = []
    for _ in range(int(count)):
        children.append(os.fork())
        if not children[-1]:
            train(folder)
            os._exit(0)
        print(children[-1], flush=True)
    for child in children:
        print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture(scope="module")
def awake(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A process that trains a pool in children for each line "folder pace count", and writes their ids and ends."""
    with forks.talking(SCRIPT, folder=tmp_path_factory.mktemp("awake")) as talk:
        yield talk


def start(process: Talk, folder: Path, *, pace: float, children: int = 1) -> list[int]:
    """The ids of children that have begun to train."""
    process.stdin.write(f"{folder} {pace} {children}\n")
    process.stdin.flush()
    return [ended(process) for _ in range(children)]


def ended(process: Talk) -> int:
    """The status of the child that has ended: 0, or the signal that killed it."""
    return int(process.stdout.readline())


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.iterdir()) if not path.name.startswith(".claims"))  # locks, which are empty
    return {path.name: path.read_bytes() for path in files}


def test_twenty_kills_at_random_moments_change_no_byte(awake: Talk, tmp_path: Path) -> None:
    chance = random.Random(0)  # noqa: S311
    killed = kept = 0
    start(awake, tmp_path / "whole", pace=0.0)
    assert ended(awake) == 0
    for number in range(20):
        [child] = start(awake, tmp_path / "killed", pace=0.02)
        time.sleep(chance.uniform(0.0, 0.25))
        while number >= 15 and not any((tmp_path / "killed").glob("model-*.json")):  # a busy machine takes longer
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):  # it may have ended
            os.kill(child, signal.SIGKILL)
        killed += ended(awake) == signal.SIGKILL
        kept = max(kept, len(list((tmp_path / "killed").glob("model-*.json"))))
    assert killed >= 10
    assert kept >= 1
    start(awake, tmp_path / "killed", pace=0.0)
    assert ended(awake) == 0
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_two_processes_on_one_pool_share_the_work_and_corrupt_nothing(awake: Talk, tmp_path: Path) -> None:
    start(awake, tmp_path / "alone", pace=0.0)
    assert ended(awake) == 0
    assert len(set(start(awake, tmp_path / "shared", pace=0.003, children=2))) == 2
    assert [ended(awake), ended(awake)] == [0, 0]
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")
