"""Where work runs: this process, local worker processes, or an existing Ray cluster. One interface, equal results."""

from glasshouse.compute.chosen import chosen_compute
from glasshouse.compute.here import Compute, ThisProcess, available_cores, gpu_share
from glasshouse.compute.local import LocalProcesses, safe_path
from glasshouse.compute.ray_cluster import RayCluster
from glasshouse.compute.spreading import is_worth_spreading, spread, spread_in_order, spreading_over

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
