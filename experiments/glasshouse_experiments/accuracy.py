"""Train and test accuracy of the target models (paper, App. A)."""

from __future__ import annotations

from glasshouse.graph.training.setting import node_accuracy
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment

__all__ = ["accuracy"]


@experiment("accuracy")
def accuracy(bench: Bench) -> list[Cell]:
    """Members on the graph that they induce; the others on the graph without any member."""
    found: dict[str, list[float]] = {"train_accuracy_pct": [], "test_accuracy_pct": []}
    for target, members in bench.targets():
        for metric, who in zip(found, (members, ~members), strict=True):
            found[metric].append(100 * node_accuracy(target, bench.data, who))
    names = ("accuracy", bench.setting.paper_name, "", "", "", "")
    return [Cell(*names, metric, tuple(values)) for metric, values in found.items()]
