"""The entry point: how a command begins and ends, whatever happens to it or to where it prints.

A finished command cannot fail for its output: what a terminal cannot show is replaced, and a reader that has gone or a
full disk changes no exit code. Faults of input, too little memory and a request to end become one line each.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from glasshouse.cli.app import Terminated, app, say
from glasshouse.compute import safe_path
from glasshouse.core.errors import InputError, LeftOutError
from glasshouse.core.progress import work_so_far
from glasshouse.io.limits import lacks_memory


def main() -> NoReturn:
    """Entry point: input faults are one line each on standard error, and exit code 2."""
    _open_outputs()
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        with safe_path():  # a library may start processes too, such as scikit-learn with n_jobs
            app(standalone_mode=True)
    except InputError as error:
        say(*error.faults, err=True)
        count = len(error.faults)
        problems = f"{count} problem{'s' if count > 1 else ''}"
        if not work_so_far():
            ended = ", nothing was run."
        elif isinstance(error, LeftOutError):
            ended = "; everything else is finished and kept."
        else:
            ended = "; the run was stopped. " + " ".join(work_so_far())
        say(problems + ended, err=True)
        raise SystemExit(2) from None
    except Exception as error:
        if not lacks_memory(error):
            raise
        told = "There is not enough memory. If the input is right, raise the limit, such as --memory 8GiB."
        say(" ".join([told, *work_so_far()]), err=True)
        raise SystemExit(2) from None
    finally:
        signal.signal(signal.SIGTERM, before)  # of a program that called this, such as a test
    raise SystemExit(0)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


class _Unfailing(io.FileIO):
    """Bytes for a reader who may go away, or for a disk that may be full: what cannot be written is dropped."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _open_outputs() -> None:
    """Let nothing that is printed raise: characters that an output cannot hold are replaced, lost bytes are dropped."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # an output that was closed: a file that is opened later must not get its number, and what is printed
    os.close(handle)
    for name, number in (("stdout", 1), ("stderr", 2)):
        given = getattr(sys, name)
        if given is not getattr(sys, f"__{name}__"):
            continue  # whoever called this has put something else in its place
        encoding = getattr(given, "encoding", None) or "utf-8"
        raw = io.BufferedWriter(_Unfailing(number, "w", closefd=False))
        setattr(sys, name, io.TextIOWrapper(raw, encoding=encoding, errors="replace", write_through=True))
