"""Train and test accuracy of the target models on i.i.d. data (paper, text of App. "i.i.d. Data")."""

from __future__ import annotations

from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.iid_bench import IidBench
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.kept_losses import kept_accuracy

__all__ = ["accuracy_iid"]


@experiment("accuracy", settings=RECORD_SETTINGS, bench=IidBench)
def accuracy_iid(bench: IidBench) -> list[Cell]:
    """Correct answers among members and among others, as the pool stored them when it trained the targets."""
    sides = zip(("train", "test"), kept_accuracy(bench.target_models, progress=bench.progress), strict=True)
    names = ("accuracy_iid", bench.setting.paper_name, "", "", "", "")
    return [Cell(*names, f"{side}_accuracy_pct", tuple((100 * found).tolist())) for side, found in sides]
