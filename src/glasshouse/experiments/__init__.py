"""The paper's tables from one command: each a short declarative file over the public API."""

from glasshouse.experiments import accuracy, samplers, table_1, vary_m  # noqa: F401 (they register themselves)
from glasshouse.experiments.runner import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
