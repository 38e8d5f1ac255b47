"""The paper's tables from one command: each is a short file that uses the public API."""

# they register themselves, in the order in which `reproduce all` runs them
from glasshouse_experiments import (  # noqa: F401, I001
    accuracy,
    table_1,
    thresholds,
    estimated_threshold,
    rmia_beta,
    mismatch,
    authors,
    samplers,
    vary_m,
    wall_clock,
    iid,
    roc,
    dp_bound,
    beyond,
    ablation,
)
from glasshouse_experiments.experiment import EXPERIMENTS
from glasshouse_experiments.runner import reproduce, reproduce_all

from glasshouse_experiments.show import show

__all__ = ["EXPERIMENTS", "reproduce", "reproduce_all", "show"]
