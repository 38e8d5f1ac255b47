"""Tasks and a trainer for workers, apart from the tests: a worker that imported those would import torch and more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def about(model: Any, task: int) -> tuple[int, str, int]:
    """Who did a task, which GPU it saw, and where its model lies; long enough that every worker gets one."""
    time.sleep(0.3)
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES", ""), id(model)


def dies_once(marker: str, task: int) -> int:
    """A task whose worker is killed the first time it is tried."""
    if task == 1 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task * 10


def workers_of(parent: int) -> int:
    """How many of joblib's worker processes a process has."""
    command = ["ps", "-ww", "-o", "args=", "--ppid", str(parent)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return listed.stdout.count("LokyProcess")


def counted(task: int) -> tuple[int, int]:
    """The process that runs a task, and how many workers its parent has; -1 if it imports from the working folder."""
    return os.getpid(), workers_of(os.getppid()) if sys.flags.safe_path else -1


def crowd(task: int) -> tuple[float, float, str]:
    """When a task ran, and on which device."""
    began = time.monotonic()  # of one machine, so that the times of two processes can be compared
    time.sleep(0.5)
    return began, time.monotonic(), os.environ.get("CUDA_VISIBLE_DEVICES", "")


class SlowTrainer:
    """Trains long enough for a node to be lost meanwhile, and says the same wherever it runs."""

    def __call__(self, population: Any, members: Any, seed: int) -> Any:
        time.sleep(float(os.environ.get("PACE", "0.5")))  # not a global: the trainer is the same at any pace
        share = float(members.mean())
        return lambda x: np.stack([x[:, 0] * share, x[:, 1]], axis=1)

    def __repr__(self) -> str:
        return "SlowTrainer()"
