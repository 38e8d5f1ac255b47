"""A process that is killed at a chosen system call: every place where a power cut or a kill could fall, one by one."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

CALLS = ("open", "os.", "shutil.", "tempfile.", "fcntl.")  # audit events of whatever touches the disk


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Run work in a child that is killed before its call number ``step`` to the disk; False if the work ended first."""
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
        if event.startswith(CALLS):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(hook)
        work()
        os._exit(0)
    finally:
        os._exit(1)
