"""Worker processes on this machine, and the socket at which they ask for what they need."""

from __future__ import annotations

import functools
import itertools
import multiprocessing.resource_tracker
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, cast

from glasshouse.compute.base import TRIES, Elsewhere, Workers, available_cores, do_task, share_gpu
from glasshouse.compute.serialise import Parcels, receive_from
from glasshouse.core.errors import InputError
from glasshouse.io.limits import keep_limits, limits_for_workers

_NUMBER = "number"
_LOOK = 1.0  # seconds between two looks at the parent
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SAFE_PATH = "PYTHONSAFEPATH"
Address = tuple[str, int, bytes]  # host and port of a desk, and the secret without which it does not answer


class Desk:
    """Answers workers from memory with parcels by key, and a number each; they send no more than the name of one."""

    def __init__(self) -> None:
        self.parcels: dict[str, bytes] = {}
        self.numbers = itertools.count()
        self._listener = Listener(("127.0.0.1", 0), backlog=128)  # the secret is asked for in a thread for each caller
        self.address: Address = (*cast("tuple[str, int]", self._listener.address), os.urandom(32))
        self._open = True
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer nobody any more."""
        self._open = False
        with suppress(OSError, EOFError, AuthenticationError):  # it waits for a caller: be one
            Client(self.address[:2], authkey=self.address[2]).close()
        self._thread.join(timeout=5)
        self._listener.close()
        self.parcels.clear()

    def _serve(self) -> None:
        while self._open:
            with suppress(OSError, EOFError):
                line = self._listener.accept()
                threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: Connection[Any, Any]) -> None:
        # a worker that was killed, a stranger, or a worker that asks for what nobody waits for any more
        with suppress(OSError, EOFError, AuthenticationError, KeyError), line:
            deliver_challenge(line, self.address[2])
            answer_challenge(line, self.address[2])
            asked = line.recv_bytes(64).decode()
            line.send_bytes(str(next(self.numbers)).encode() if asked == _NUMBER else self.parcels[asked])


def ask_desk(address: Address, what: str) -> bytes:
    """A parcel by its key, or this worker's ``"number"``, counted from 0."""
    host, port, secret = address
    with Client((host, port), authkey=secret) as line:
        line.send_bytes(what.encode())
        return line.recv_bytes()


@dataclass(frozen=True, kw_only=True)
class LocalProcesses(Elsewhere):
    """Worker processes on this machine (joblib's loky); each uses only its share of the cores, and one of the GPUs.

    There are never more of them than tasks, and none is left when the last task has ended, or this process was killed.
    A worker that dies is replaced, and its tasks are run again. Code travels by value (cloudpickle, as within joblib),
    so that functions of a notebook, lambdas and closures work too; models and graphs are sent to each worker once.
    Limits on memory that hold here hold for each of them. On a machine with several GPUs, worker i sees only GPU i, as
    ``cuda:0``; if there are more workers than GPUs, they share them evenly.

    Args:
        workers: how many; as many as there are cores by default.

    Example:
        >>> LocalProcesses(workers=2).threads >= 1
        True
    """

    workers: int | None = None

    @property
    def count(self) -> int:
        """How many workers there are."""
        return self.workers or available_cores()

    @property
    def threads(self) -> int:
        """How many threads each has."""
        return max(1, available_cores() // self.count)

    def _workers(self, tasks: int | None) -> AbstractContextManager[_Crew]:
        count = self.count if tasks is None else min(self.count, tasks)
        return closing(_Crew(count, threads=self.threads, apart=tasks is None))


class _Crew(Workers):
    """Workers that stay, and the desk where they ask for parcels."""

    def __init__(self, workers: int, *, threads: int, apart: bool = True) -> None:
        self.workers, self.threads = workers, threads
        self.desk = Desk()
        self.parcels = Parcels(self.desk.parcels.__setitem__, self.desk.parcels.__delitem__, apart=apart)
        self._executor: Any = None

    def _results(self, key: str, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """The tasks of a worker that died are run again."""
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        left, died = set(range(len(tasks))), 0
        try:
            while left:
                try:
                    executor = self._started()
                    waiting = {executor.submit(do_task, key, self.threads, tasks[at]): at for at in sorted(left)}
                    for future in as_completed(list(waiting)):
                        position, result = waiting.pop(future), future.result()
                        left.remove(position)
                        yield position, result
                except TerminatedWorkerError:
                    self._end()
                    died += 1
                    if died == TRIES:
                        raise InputError(
                            f"compute: workers died {TRIES} times with {len(left)} tasks left, perhaps for lack of "
                            f"memory. Use fewer workers."
                        ) from None
        finally:
            if left:
                self._end()  # nobody waits any more for what they do

    def close(self) -> None:
        """End the workers; loky would keep them, and what they hold."""
        self._end()
        self.desk.close()

    def _started(self) -> Any:
        if self._executor is None:
            from joblib.externals.loky.process_executor import ProcessPoolExecutor

            _start_trackers()
            start = (self.desk.address, os.getpid(), self.workers, _gpus(), limits_for_workers())
            alone = {_SAFE_PATH: "1"}
            self._executor = ProcessPoolExecutor(self.workers, initializer=_begin, initargs=start, env=alone)
        return self._executor

    def _end(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def safe_path(**variables: str) -> Iterator[None]:
    """Within the block, processes that anything starts have these variables, and import nothing of this folder."""
    variables |= {_SAFE_PATH: "1"}
    given = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in given.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _start_trackers() -> None:
    """Start the processes that remove what workers leave; they are given the environment of this process."""
    from joblib.externals.loky.backend import resource_tracker

    # a thread that ends with this process may remove a lock and not say so; the tracker would warn of each such lock
    with safe_path(PYTHONWARNINGS="ignore:resource_tracker"):
        multiprocessing.resource_tracker.ensure_running()
        resource_tracker.ensure_running()


def _gpus() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    named = [name.strip() for name in os.environ.get(_VISIBLE, "").split(",") if name.strip()]
    torch: Any = sys.modules.get("torch")  # without it, the work itself may import it in the workers
    count = len(list(Path("/dev").glob("nvidia[0-9]*"))) if torch is None else torch.cuda.device_count()
    return named[:count] if named else [str(number) for number in range(count)]


def _begin(desk: Address, parent: int, workers: int, gpus: Sequence[str], limits: tuple[int, bool]) -> None:
    """What a worker does first. It ends when the process that waits for its results is gone, also by a kill."""
    end_with(parent)
    keep_limits(*limits)
    receive_from(functools.partial(ask_desk, desk))
    if gpus:  # before anything touches a GPU
        os.environ[_VISIBLE] = gpus[int(ask_desk(desk, "number")) % len(gpus)]
        share_gpu(-(-workers // len(gpus)))


@functools.cache
def end_with(parent: int) -> None:
    """Watch a parent process from now on, and end with it; once in a process."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os._exit(1)  # nobody is left to whom an exception could be told

    threading.Thread(target=watch, daemon=True).start()
