"""Where to run, from what a user asked for."""

from __future__ import annotations

from glasshouse.compute.here import Compute, ThisProcess
from glasshouse.compute.local import LocalProcesses
from glasshouse.compute.ray_cluster import RayCluster
from glasshouse.errors import InputError

__all__ = ["chosen_compute"]


def chosen_compute(*, workers: int | None = None, cluster: str | None = None, gpus: float | None = None) -> Compute:
    """Where to run, from what a user asked for on the command line.

    Example:
        >>> chosen_compute(workers=2)
        LocalProcesses(workers=2)
    """
    if cluster is not None:
        if workers is not None:
            raise InputError("--workers, --cluster: give one of them; a cluster has its own workers.")
        return RayCluster(address=cluster, gpus=gpus or 0)
    if gpus is not None:
        raise InputError("--gpus: is what a task reserves on a cluster; give --cluster too, or leave it out.")
    if workers is None or workers == 1:
        return ThisProcess()
    if workers < 1:
        raise InputError(f"--workers: {workers} is not a number of processes; use 1 or more.")
    return LocalProcesses(workers=workers)
