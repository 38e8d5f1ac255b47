"""Where work runs: this process, local worker processes, or an existing Ray cluster. One interface, equal results."""

from __future__ import annotations

from glasshouse.compute.base import Compute as Compute
from glasshouse.compute.base import ThisProcess as ThisProcess
from glasshouse.compute.base import available_cores as available_cores
from glasshouse.compute.base import gpu_share as gpu_share
from glasshouse.compute.base import is_worth_spreading as is_worth_spreading
from glasshouse.compute.base import spread as spread
from glasshouse.compute.base import spread_in_order as spread_in_order
from glasshouse.compute.base import spreading_over as spreading_over
from glasshouse.compute.local import LocalProcesses as LocalProcesses
from glasshouse.compute.local import safe_path as safe_path
from glasshouse.compute.ray import RayCluster as RayCluster
from glasshouse.core.errors import InputError


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
