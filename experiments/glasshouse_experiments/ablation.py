"""Beyond the paper: what each signal adds to `g-stacked`, by leaving out one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from joblib import cpu_count

from glasshouse.core.table import Table
from glasshouse.graph import GStacked
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.measures import collected, ranking

__all__ = ["ablation", "ablation_page"]

ROUNDS = (8,)  # one: later rounds start from the first one's posterior, and could add what it does not know yet
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "kin": ("kin",),
    "the query about the node alone": ("alone",),
    "the query about the whole graph": ("whole",),
    "sampled training sets": ("sampled", "gain", "g-base"),
    "neighbours": ("neighbours",),
    "degree and label": ("degree", "label"),
}
_METRICS = {"auc_pct": "AUC %", "tpr_at_fpr1_pct": "TPR % at 1 % FPR", "tpr_at_fpr0.1_pct": "TPR % at 0.1 % FPR"}


def ablation_page(table: Table, title: str, notes: Sequence[str] = ()) -> str:
    """As Markdown, one row per signal that is left out, and how much that changes the mean.

    Example:
        >>> settings = ["without nothing", "without kin"]
        >>> columns = {"dataset": ["Cora"] * 2, "setting": settings, "metric": ["auc_pct"] * 2}
        >>> table = Table(columns | {"mean": [91.6, 89.2], "std": [0.5, 0.4]})
        >>> print(ablation_page(table, "ablation").splitlines()[-1])
        | Cora | kin | 89.20 ± 0.40 (-2.40) | – | – |
    """
    found = {(row["dataset"], row["setting"], row["metric"]): (row["mean"], row["std"]) for row in table.rows()}
    lines = [
        f"# {title}",
        "",
        *[f"{note}\n" for note in notes],
        f"| data set | left out | {' | '.join(_METRICS.values())} |",
    ]
    lines.append("|" + " --- |" * (2 + len(_METRICS)))
    for dataset, setting in dict.fromkeys((row["dataset"], row["setting"]) for row in table.rows()):
        cells = []
        for metric in _METRICS:
            mean, std = found.get((dataset, setting, metric), (None, None))
            whole, _ = found.get((dataset, "without nothing", metric), (mean, std))
            change = "" if setting == "without nothing" or mean is None else f" ({mean - whole:+.2f})"
            cells.append("–" if mean is None else f"{mean:.2f} ± {std:.2f}{change}")
        lines.append(f"| {dataset} | {setting.removeprefix('without ')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@experiment("ablation", heavy=("citeseer",), page=ablation_page)
def ablation(bench: Bench) -> list[Cell]:
    """K = 8 online, one round; one attack at a time, because each keeps all of the pool's answers in memory."""
    cells = []
    for left_out, signals in LEFT_OUT.items():
        name = "online", "8", f"without {left_out}", "g-stacked"
        attack = GStacked(samples=ROUNDS, without=signals, jobs=cpu_count())
        found = bench.judged({name: attack}, shadows=8)
        cells += collected(found, ranking, table="ablation", dataset=bench.setting.paper_name)
    return cells
