"""An existing Ray cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from glasshouse.compute.answering import check_answers
from glasshouse.compute.here import TRIES, with_threads
from glasshouse.errors import InputError, first_line, needs_extra

__all__ = ["RayCluster"]

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class RayCluster:
    """An existing Ray cluster; data goes to its object store once, and tasks of a lost node run elsewhere.

    The connection is closed when the work ends, and work that nobody waits for any more is stopped.

    Args:
        address: ``"auto"`` for the cluster of this machine, ``"host:port"``, or ``"ray://host:port"``.
        cpus: cores per task.
    """

    address: str = "auto"
    cpus: float = 1

    def run(
        self, function: Callable[..., Result], shared: tuple[Any, ...], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Result]]:
        """Results in the order in which tasks end."""
        if not tasks:
            return
        with self._connected() as ray:
            held = [ray.put(one) for one in shared]
            work = ray.remote(num_cpus=self.cpus, max_retries=TRIES)(_on_ray)
            waiting = {work.remote(function, self.cpus, task, *held): at for at, task in enumerate(tasks)}
            try:
                while waiting:
                    done, _ = ray.wait(list(waiting), num_returns=1)
                    for reference in done:
                        position = waiting.pop(reference)
                        yield position, ray.get(reference)
            finally:
                for reference in waiting:
                    ray.cancel(reference, force=True)

    def check(self) -> None:
        """Refuse an address at which no cluster answers, within seconds: call it before the long work."""
        address = self._found(_imported())
        check_answers(address)

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
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
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


def _imported() -> Any:
    with needs_extra("A cluster", package="ray", extra="cluster"):
        import ray
    return ray


def _on_ray(function: Callable[..., Any], cpus: float, task: Any, *shared: Any) -> Any:
    return with_threads(max(1, int(cpus)), function, shared, task, 0)[1]
