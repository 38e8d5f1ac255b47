"""Where work runs: this process, local worker processes, or an existing Ray cluster. One interface, equal results."""

from glasshouse.compute.chosen import chosen_compute
from glasshouse.compute.here import Compute, ThisProcess
from glasshouse.compute.local import LocalProcesses
from glasshouse.compute.ray_cluster import RayCluster

__all__ = ["Compute", "LocalProcesses", "RayCluster", "ThisProcess", "chosen_compute"]
