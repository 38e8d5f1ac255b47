"""The paper's tables from one command: each is a short file that uses the public API."""

# they register themselves, in the order in which `reproduce all` runs them
from glasshouse_experiments import (  # noqa: F401, I001
    accuracy,
    accuracy_iid,
    table_1,
    thresholds,
    thresholds_iid,
    estimated_threshold,
    rmia_beta,
    rmia_beta_iid,
    mismatch,
    authors,
    samplers,
    vary_m,
    wall_clock,
    iid,
    roc,
    dp_bound,
    beyond,
    beyond_iid,
    beyond_samplers,
    ablation,
)
from glasshouse_experiments.experiment import EXPERIMENTS
from glasshouse_experiments.runner import reproduce, reproduce_all

from glasshouse_experiments.show import show

__all__ = ["EXPERIMENTS", "reproduce", "reproduce_all", "show"]
