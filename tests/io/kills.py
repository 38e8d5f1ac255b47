"""A process that is killed at a chosen call: every state of the disk that a kill can leave behind, one by one."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "os.symlink", "os.link")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def changes(event: str, given: tuple[Any, ...]) -> bool:
    """Whether a call changes what is on the disk; a kill before one that only reads leaves nothing else behind."""
    return event in CHANGES or (event == "open" and bool(given[2] & WRITING))


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Run work in a child that is killed before its change number ``step`` of the disk; False if it ended first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and forks; the child only writes files
        child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), "the work failed before it was killed"
        return status != 0
    count = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if changes(event, arguments):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(hook)
        work()
        os._exit(0)
    finally:
        os._exit(1)
