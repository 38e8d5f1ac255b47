"""Scripts in processes of their own that import nothing again: forks of pytest as it was before the first test.

A new process imports torch and torch_geometric for five seconds, and most scripts do little else. A fork has imported
what the tests import, ours too, and has begun nothing: no registrations of a test, no threads, no settings. What only a
new process shows (which libraries are imported, what Python looks for when it starts) needs ``subprocess``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

# for a run of a few tests, which may have imported less
_IMPORTED = ("scipy.stats", "sklearn.ensemble", "glasshouse.cli.audit", "glasshouse.cli.saved_runs", "glasshouse.graph")


class Talk(NamedTuple):
    """A script that runs: what it reads, and what it prints."""

    stdin: TextIO
    stdout: TextIO


class Forks:
    """A process that forks a child for each script; its end is told by another, which waits for it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about threads and forks: those of xdist only read and write
            self._process = os.fork()
        if not self._process:
            try:
                self._line.close()
                _serve(theirs)
            finally:
                os._exit(0)
        theirs.close()

    def close(self) -> None:
        """End the process."""
        self._line.close()
        os.waitpid(self._process, 0)

    def run(self, script: str | Path, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
        """Code as ``python -c`` would run it in a folder, or a file as ``python`` would."""
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
            Path(os.devnull).open() as nothing,
        ):
            code = self._begin(script, arguments, folder, [nothing.fileno(), out.fileno(), err.fileno()])()
            told = []
            for file in (out, err):
                file.seek(0)
                told.append(file.read())
        return subprocess.CompletedProcess(self._argv(script, arguments), code, *told)

    @contextlib.contextmanager
    def talking(self, script: str, *arguments: object, folder: Path) -> Iterator[Talk]:
        """Code that answers line by line, and ends well when it is told nothing more."""
        read, write, hear, say = *os.pipe(), *os.pipe()
        code = self._begin(script, arguments, folder, [read, say, 2])
        os.close(read)
        os.close(say)
        with os.fdopen(hear) as stdout:
            with os.fdopen(write, "w") as stdin:
                yield Talk(stdin, stdout)
            assert code() == 0

    @staticmethod
    def _argv(script: str | Path, arguments: tuple[object, ...]) -> list[str]:
        return [str(script) if isinstance(script, Path) else "-c", *map(str, arguments)]

    def _begin(
        self, script: str | Path, arguments: tuple[object, ...], folder: Path, files: list[int]
    ) -> Callable[[], int]:
        """Start a script; what is given back waits for its exit code."""
        asked = {"argv": self._argv(script, arguments), "folder": str(folder), "environment": dict(os.environ)}
        message = json.dumps(asked | {"code": script if isinstance(script, str) else None}).encode()
        mine, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._line, [len(message).to_bytes(8, "big")], [*files, theirs.fileno()])
            self._line.sendall(message)

        def code() -> int:
            with mine:
                return int.from_bytes(mine.recv(8), "big", signed=True)

        return code


def _serve(line: socket.socket) -> None:
    """Fork a child for each request, until nobody asks any more."""
    sys.settrace(None)
    threading.settrace(None)
    logging.getLogger().handlers.clear()  # pytest's
    for name in _IMPORTED:
        importlib.import_module(name)
    waiting = []
    while True:
        length, files, _, _ = socket.recv_fds(line, 8, 4)
        if not length:
            break
        message = b""
        while len(message) < int.from_bytes(length, "big"):
            message += line.recv(1 << 16)
        waiting.append(os.fork())
        if not waiting[-1]:
            line.close()
            _wait_for(json.loads(message), files)
        for file in files:
            os.close(file)
        waiting = [one for one in waiting if not os.waitpid(one, os.WNOHANG)[0]]
    for one in waiting:
        os.waitpid(one, 0)


def _wait_for(asked: dict[str, Any], files: list[int]) -> None:
    """Run a script in a child, and say how it ended."""
    *streams, answer = files
    child = os.fork()
    if not child:
        os.close(answer)
        _become(asked, streams)
    for file in streams:
        os.close(file)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.write(answer, code.to_bytes(8, "big", signed=True))
    os._exit(0)


def _become(asked: dict[str, Any], files: list[int]) -> None:
    """Run a script in this process, and end as it does."""
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        modes = ((0, "r"), (1, "w"), (2, "w"))
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in modes)
        vars(sys).update(__stdin__=sys.stdin, __stdout__=sys.stdout, __stderr__=sys.stderr)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = asked["argv"]
        if asked["code"] is None:
            sys.path.insert(0, str(Path(sys.argv[0]).parent))
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(asked["code"], "<string>", "exec"), main.__dict__)  # noqa: S102 (our own tests)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.__stdout__, sys.stderr, sys.__stderr__):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()  # type: ignore[union-attr]
        os._exit(code)
