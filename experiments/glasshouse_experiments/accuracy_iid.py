"""Train and test accuracy of the target models on i.i.d. data (paper, text of App. "i.i.d. Data")."""

from __future__ import annotations

from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid_bench import IidBench
from glasshouse_experiments.iid_settings import RECORD_SETTINGS

__all__ = ["accuracy_iid"]


@experiment("accuracy", settings=RECORD_SETTINGS, bench=IidBench)
def accuracy_iid(bench: IidBench) -> list[Cell]:
    """Correct answers among members and among others, as the pool stored them when it trained the targets."""
    folder = bench.target_models.train(progress=bench.progress)
    metrics = [folder.manifest(index)["metrics"] for index in range(bench.preset.targets)]
    names = ("accuracy_iid", bench.setting.paper_name, "", "", "", "")
    return [
        Cell(*names, f"{side}_accuracy_pct", tuple(100 * one[f"{side}_accuracy"] for one in metrics))
        for side in ("train", "test")
    ]
