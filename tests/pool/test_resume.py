"""Killed, crowded or resumed: a pool always ends with the bytes of a run that was left alone."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = """
import sys, time
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
        time.sleep(float(sys.argv[2]))  # not a global: the trainer is the same at any pace
        return super().step(closure)

def optimizer(parameters):
    return Slow(parameters, lr=0.1)

class Trainer(TorchTrainer):
    train_many = property()  # one model at a time, so that kills fall between models too

    def __repr__(self):
        return "the trainer of this test"

pool = ShadowPool.plan(
    population, Trainer(module=mlp(3, 2), optimizer=optimizer, epochs=4, batch_size=16), shadows=10, folder=sys.argv[1]
)
TorchTrainer(module=mlp(3, 2), epochs=1)(population, pool.members[0], 0)  # torch takes a second to wake up
print("ready", flush=True)
pool.train(progress=False)
print("done", flush=True)
"""


def start(folder: Path, *, pace: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, str(folder), str(pace)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def finished(process: subprocess.Popen[str]) -> bool:
    output, _ = process.communicate(timeout=120)
    return process.returncode == 0 and "done" in output


def test_twenty_kills_at_random_moments_change_no_byte(tmp_path: Path) -> None:
    assert finished(start(tmp_path / "whole", pace=0.0))
    chance = random.Random(0)  # noqa: S311
    killed = kept = 0
    for _ in range(20):
        process = start(tmp_path / "killed", pace=0.002)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        time.sleep(chance.uniform(0.0, 0.5))
        if process.poll() is None:
            process.kill()
            killed += 1
        process.wait()
        process.stdout.close()
        kept = max(kept, len(list((tmp_path / "killed").glob("model-*.json"))))
    assert killed >= 10
    assert kept >= 1
    assert finished(start(tmp_path / "killed", pace=0.0))
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_two_processes_on_one_pool_share_the_work_and_corrupt_nothing(tmp_path: Path) -> None:
    assert finished(start(tmp_path / "alone", pace=0.0))
    both = [start(tmp_path / "shared", pace=0.003) for _ in range(2)]
    assert all(finished(process) for process in both)
    assert contents(tmp_path / "shared") == contents(tmp_path / "alone")
