"""An existing Ray cluster. Whether it answers is asked first: Ray itself tries for a quarter of an hour."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from glasshouse.compute.base import TRIES, Elsewhere, Workers, do_task
from glasshouse.compute.serialise import Parcels, receive_from
from glasshouse.core.errors import InputError, first_line, needs_extra

_PORTS = {True: 10001, False: 6379}  # Ray's own defaults: of ray://, and of the cluster itself
# Every server of Ray speaks gRPC, which is HTTP/2: greeted like this, it must send its settings first.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4
_JOINING = 180.0  # seconds; a busy cluster takes up to a minute to start a server for a client
_WITH_GPU = 15.0  # seconds
_FROM = [""]  # the connection whose parcels this worker has


def check_answers(address: str, *, seconds: float = 10.0) -> None:
    """Refuse an address, ``host:port`` or ``ray://host:port``, at which nothing answers, or something else than Ray."""
    host, colon, port = address.removeprefix("ray://").split("?")[0].rpartition(":")
    if not colon:
        host, port = port, str(_PORTS[address.startswith("ray://")])
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"cluster: {address!r} is not an address. Use auto, host:port or ray://host:port.")
    ends = time.monotonic() + seconds
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=seconds) as line:
            if os.environ.get("RAY_USE_TLS", "0") not in ("", "0"):
                return  # it answers only to those that have its keys
            line.sendall(_GREETING)
            header = b""
            while len(header) < 9:
                line.settimeout(max(ends - time.monotonic(), 0.01))
                more = line.recv(9 - len(header))
                if not more:
                    raise ConnectionError("something else than Ray closed the connection")
                header += more
            if header[3] != _SETTINGS:
                raise ConnectionError("something else than Ray answers")
    except (OSError, UnicodeError) as error:  # UnicodeError: a host that cannot be a name
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(
            f"cluster: no Ray cluster answers at {address!r} ({reason}). Start it, give another address, or leave "
            f"--cluster out."
        ) from error


@dataclass(frozen=True, kw_only=True)
class RayCluster(Elsewhere):
    """An existing Ray cluster; data goes to its object store once, and tasks of a lost node run elsewhere.

    The connection is closed when the work ends, and work that nobody waits for any more is stopped.

    Args:
        address: ``"auto"`` for the cluster of this machine, ``"host:port"``, or ``"ray://host:port"``.
        cpus: cores per task.
        gpus: GPUs per task, which no other task gets meanwhile; 0.5 lets two tasks share one. None by default.

    Example:
        >>> RayCluster(address="ray://head:10001", gpus=0.5).gpus
        0.5
    """

    address: str = "auto"
    cpus: float = 1
    gpus: float = 0

    def __post_init__(self) -> None:
        if self.cpus < 0 or self.gpus < 0:
            raise InputError(f"cpus, gpus: {self.cpus}, {self.gpus}; a task cannot reserve less than none.")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise InputError(f"gpus: {self.gpus}; a task reserves a part of one GPU, or whole ones. Use 0.5, 1 or 2.")

    @contextmanager
    def _workers(self, tasks: int | None) -> Iterator[_Connected]:
        with self._connected() as ray:
            yield _Connected(self, ray, apart=tasks is None)

    def check(self) -> None:
        """Refuse an address at which no cluster answers, within seconds: call it before the long work."""
        check_answers(self._found(_imported()))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Ray, connected to the cluster; a connection of the user's own is used, and stays."""
        ray = _imported()
        if ray.is_initialized():
            yield ray
            return
        address = self._found(ray)
        check_answers(address)
        try:
            _join(ray, address)
        except ImportError as error:  # of grpc, which ray:// needs
            raise InputError(
                f"cluster: {address!r} needs Ray's client ({first_line(error)}). Run: pip install 'glasshouse[cluster]'"
            ) from error
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"cluster: no Ray cluster at {address!r}: {first_line(error)}.") from error
        try:
            yield ray
        finally:
            ray.shutdown()

    def _found(self, ray: Any) -> str:
        """The address itself; for ``auto``, that of the cluster of this machine."""
        address = os.environ.get("RAY_ADDRESS") or self.address if self.address == "auto" else self.address
        if address != "auto":
            return address
        try:
            return str(ray._private.services.canonicalize_bootstrap_address_or_die("auto"))
        except ConnectionError as error:
            reason = first_line(error).split(". ")[0]  # the rest is about options that are not ours
            raise InputError(f"cluster: there is no cluster to find by 'auto' ({reason}). Give its address.") from error


def _join(ray: Any, address: str) -> None:
    """Connect to a cluster; once more if it broke off, as Ray does when it looks at its new server too early."""
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": logging.ERROR}
    failed: list[BaseException] = []

    def join() -> None:
        try:
            try:
                ray.init(**options)
            except ConnectionAbortedError:
                ray.init(**options)
        except BaseException as error:
            failed.append(error)

    if not address.startswith("ray://"):
        join()
    else:  # in a thread that may be left behind: where its server fails to start, Ray's client waits without end
        thread = threading.Thread(target=join, daemon=True)
        thread.start()
        thread.join(timeout=_JOINING)
        if thread.is_alive():
            raise TimeoutError(
                f"its server for clients did not start within {_JOINING:.0f} s. Retry, or give host:port"
            )
    if failed:
        raise failed[0]


class _Connected(Workers):
    """A cluster to which this process is connected, and the parcels that lie in its object store."""

    def __init__(self, cluster: RayCluster, ray: Any, *, apart: bool = True) -> None:
        self.cluster, self.ray = cluster, ray
        self._held: dict[str, Any] = {}  # references to parcels; without one, the store drops the parcel
        self._name = f"{os.getpid()} {id(self)} {os.urandom(4).hex()}"
        # Ray starts a process for each task with a GPU, which keeps no memory there: such tasks should be long
        self.bundle = _WITH_GPU if cluster.gpus else None
        self.parcels = Parcels(self._put, self._held.__delitem__, gpus=cluster.gpus > 0, apart=apart)

    def _results(self, key: str, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        ray, cluster = self.ray, self.cluster
        options = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus, "max_retries": TRIES}
        work = ray.remote(**options)(_on_ray)
        held = [dict(self._held)]  # in a list: workers ask for those that they do not have yet
        waiting = {work.remote(self._name, held, key, cluster.cpus, task): at for at, task in enumerate(tasks)}
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), num_returns=1)
                for reference in done:
                    position = waiting.pop(reference)
                    yield position, ray.get(reference)
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _put(self, key: str, content: bytes) -> None:
        self._held[key] = self.ray.put(content)


def _imported() -> Any:
    with needs_extra("A cluster", package="ray", extra="cluster"):
        import ray
    return ray


def _on_ray(sender: str, held: list[dict[str, Any]], key: str, cpus: float, task: Any) -> Any:
    """What a worker of the cluster does."""
    import ray

    receive_from(lambda wanted: bytes(ray.get(held[0][wanted])), anew=_FROM[0] != sender)
    _FROM[0] = sender
    return do_task(key, max(1, int(cpus)), task)
