"""From the scores of attacks to the figures in the paper's tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from glasshouse.evaluation import auc, roc, tpr_at_fpr
from glasshouse_experiments.bench import Judged, Name
from glasshouse_experiments.cells import Cell

__all__ = ["Measure", "at_shares", "at_threshold", "collected", "cut_at", "cuts", "ranking"]

Measure = Callable[[Judged], Mapping[str, float]]


def collected(rounds: Iterable[Mapping[Name, Judged]], measure: Measure, *, table: str, dataset: str) -> list[Cell]:
    """One cell per attack and figure, with one value per target.

    Args:
        rounds: for each target, the result of every attack.
        measure: from one attack on one target to figures by the paper's names.
        table: the paper's table.
        dataset: the paper's name of the data set.

    Example:
        >>> judged = Judged(np.array([0.9, 0.1]), np.array([True, False]), 0.0)
        >>> collected([{("online", "8", "", "BASE"): judged}], ranking, table="MIAGNN", dataset="Cora")[0].values
        (100.0,)
    """
    found: dict[tuple[Name, str], list[float]] = {}
    for one in rounds:
        for name, judged in one.items():
            for metric, value in measure(judged).items():
                found.setdefault((name, metric), []).append(value)
    return [Cell(table, dataset, *name, metric, tuple(values)) for (name, metric), values in found.items()]


def ranking(judged: Judged) -> dict[str, float]:
    """AUC and TPR at 1 % and 0.1 % FPR, in percent."""
    scores, truth = judged.scores, judged.truth
    return {
        "auc_pct": 100 * auc(scores, truth),
        "tpr_at_fpr1_pct": 100 * tpr_at_fpr(scores, truth, 0.01),
        "tpr_at_fpr0.1_pct": 100 * tpr_at_fpr(scores, truth, 0.001),
    }


def cut_at(judged: Judged, fpr: float) -> float:
    """The lowest score that keeps the false-positive rate; the highest score if none does.

    Example:
        >>> cut_at(Judged(np.arange(4.0), np.array([False, False, True, True]), 0.0), 0.5)
        1.0
    """
    curve = roc(judged.scores, judged.truth)
    cut = float(curve.thresholds[curve.point_at(fpr)])
    return cut if np.isfinite(cut) else float(judged.scores.max())


def cuts(judged: Judged) -> dict[str, float]:
    """Where to cut for a false-positive rate of 1 % and of 0.1 %."""
    return {"threshold_at_fpr1": cut_at(judged, 0.01), "threshold_at_fpr0.1": cut_at(judged, 0.001)}


def at_shares(judged: Judged, shares: Sequence[float]) -> dict[str, float]:
    """TPR and FPR, in percent, cut at each of RMIA's shares β."""
    found = {}
    for beta in shares:
        found[f"tpr_at_beta{beta}_pct"], found[f"fpr_at_beta{beta}_pct"] = at_threshold(judged, beta)
    return found


def at_threshold(judged: Judged, threshold: float) -> tuple[float, float]:
    """TPR and FPR, in percent, if every node that scores at least ``threshold`` is called a member."""
    called = judged.scores >= threshold
    return 100 * float(called[judged.truth].mean()), 100 * float(called[~judged.truth].mean())
