"""Where work runs: this process, local worker processes, or an existing Ray cluster. One interface, equal results."""

from __future__ import annotations

from glasshouse.compute.base import (
    Compute,
    ThisProcess,
    available_cores,
    gpu_share,
    is_worth_spreading,
    spread,
    spread_in_order,
    spreading_over,
)
from glasshouse.compute.local import LocalProcesses, safe_path
from glasshouse.compute.ray import RayCluster
from glasshouse.core.errors import InputError

__all__ = [
    "Compute",
    "LocalProcesses",
    "RayCluster",
    "ThisProcess",
    "available_cores",
    "chosen_compute",
    "gpu_share",
    "is_worth_spreading",
    "safe_path",
    "spread",
    "spread_in_order",
    "spreading_over",
]


def chosen_compute(*, workers: int | None = None, cluster: str | None = None, gpus: float | None = None) -> Compute:
    """Where to run, from what a user asked for on the command line."""
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
