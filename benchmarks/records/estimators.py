"""Ten ordinary estimators on the digits: how many members each attack finds, beside the loss threshold.

Run: python benchmarks/records/estimators.py [--targets 2] [--records 1797]. Writes estimators.md beside itself.

Each estimator is audited with eight shadow models, online and offline, on all 1 797 records; figures are means over
targets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Population, SklearnTrainer
from glasshouse.attacks import attack_names, create
from glasshouse.attacks.attack import find_attack
from glasshouse.attacks.learners import Boosted
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import seed_for
from glasshouse.data import random_subsets
from glasshouse.data.named import load_dataset
from glasshouse.evaluation import auc, roc
from glasshouse.evidence import Evidence, Mode, QueryOptions, collect
from glasshouse.pool import ShadowPool

# "best" is one of the others; the rest need more than a pool of shadow models and one loss per record
MORE = ("best", "public-quantile", "trace")
ATTACKS = tuple(name for name in attack_names(graph=False) if name not in MORE and not find_attack(name).needs_parts)
Figures = dict[str, tuple[float, float, float]]  # by attack: AUC, TPR at 1 % and at 0.1 % FPR


def estimators(size: int = 100) -> dict[str, Any]:
    """The ten, by name, with ensembles of a given size."""
    return {
        "random forest": RandomForestClassifier(size),
        "extra trees": ExtraTreesClassifier(size),
        "full tree": DecisionTreeClassifier(),
        "1-nearest neighbour": KNeighborsClassifier(1),
        "5-nearest neighbours": KNeighborsClassifier(5),
        "bagged trees": BaggingClassifier(DecisionTreeClassifier(), n_estimators=max(10, size // 3)),
        "boosting": HistGradientBoostingClassifier(max_iter=max(10, size // 2), early_stopping=False),
        "calibrated": CalibratedClassifierCV(LinearSVC(), cv=3),
        "SVC": CalibratedClassifierCV(SVC(), ensemble=False, cv=3),  # the same as the former SVC(probability=True)
        "logistic": LogisticRegression(C=10, max_iter=5000),
    }


def digits(records: int | None = None) -> Population:
    """The digits, a tenth of the labels wrong; or some of them, drawn at random."""
    whole = load_dataset("digits").population
    rows = np.random.default_rng(0).permutation(len(whole))[:records]
    return Population(whole.x[rows], whole.y[rows], classes=whole.classes)


def evidences(
    estimator: Any, population: Population, *, shadows: int, targets: int
) -> Iterator[tuple[Evidence, BoolArray]]:
    """Evidence against targets that share their shadow models, and who trained each [N]."""
    trainer = SklearnTrainer(estimator=estimator)
    known: dict[bytes, Any] = {}

    def once(population: Population, members: BoolArray, seed: int) -> Any:
        if members.tobytes() not in known:
            known[members.tobytes()] = trainer(population, members, seed)
        return known[members.tobytes()]

    pool = ShadowPool.plan(population, once, shadows=shadows, seed=0)
    for number, members in enumerate(random_subsets(len(population), models=targets, fraction=0.5, seed=7)):
        target = trainer(population, members, seed_for(0, "benchmark target", number))
        yield collect(target, pool, how=QueryOptions(keep_logits=True), progress=False)[0], members


def measure(
    estimator: Any,
    population: Population,
    *,
    mode: Mode = "online",
    shadows: int = 8,
    targets: int = 1,
    attacks: Sequence[str] = ATTACKS,
    rounds: int = 150,
) -> Figures:
    """AUC, TPR at 1 % and TPR at 0.1 % of every attack, means over targets; ``rounds`` of boosting when stacking."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for evidence, members in evidences(estimator, population, shadows=shadows, targets=targets):
        for name in attacks:
            scores = create(name, shared={"mode": mode, "boosted": Boosted(rounds=rounds)}).score(evidence)
            rates = (_rate(scores, members, 0.01), _rate(scores, members, 0.001))
            found.setdefault(name, []).append((auc(scores, members), *rates))
    return {name: tuple(np.mean(figures, axis=0).tolist()) for name, figures in found.items()}


def table(figures: dict[str, Figures], number: int, form: Callable[[float], str]) -> list[str]:
    """Rows of a table: estimators by attacks, one of the three figures."""
    attacks = list(next(iter(figures.values())))
    lines = ["| estimator | " + " | ".join(attacks) + " |", "| --- |" + " --- |" * len(attacks)]
    for estimator, found in figures.items():
        lines.append(f"| {estimator} | " + " | ".join(form(found[name][number]) for name in attacks) + " |")
    return lines


def _plain(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{100 * value:.1f}"


def _rate(scores: FloatArray, members: BoolArray, fpr: float) -> float:
    """TPR at a rate; NaN if scores are tied so that no threshold keeps it."""
    curve = roc(scores, members)
    point = curve.point_at(fpr)
    return float(curve.tpr[point]) if point else float("nan")


def main() -> None:
    """Measure all ten in both modes and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=2)
    parser.add_argument("--records", type=int, default=None)
    options = parser.parse_args()
    population = digits(options.records)
    lines = [
        "# Ten ordinary estimators",
        "",
        f"The digits ({len(population)} records, a tenth of the labels wrong), 8 shadow models, means over "
        f"{options.targets} targets; ensembles of 100 (bagging 33, boosting 50 rounds).",
        "`python benchmarks/records/estimators.py`. A dash: scores are tied, and no threshold keeps the rate "
        "for every target.",
    ]
    for mode in get_args(Mode):
        figures: dict[str, Figures] = {}
        for name, estimator in estimators().items():
            began = time.perf_counter()
            attacks = ATTACKS if mode == "online" else [each for each in ATTACKS if each != "stacked"]  # minutes each
            figures[name] = measure(estimator, population, mode=mode, targets=options.targets, attacks=attacks)
            print(f"{mode}: {name}: {time.perf_counter() - began:.0f} s", flush=True)
        below = [
            f"{name}: {attack} {figure[attack][0]:.3f} (loss {figure['loss'][0]:.3f})"
            for name, figure in figures.items()
            for attack in figure
            if figure[attack][0] < figure["loss"][0] - 0.02
        ]
        for number, (title, form) in enumerate(
            [("AUC", _plain), ("TPR at 1 % FPR, in %", _percent), ("TPR at 0.1 % FPR, in %", _percent)]
        ):
            lines += ["", f"## {title}, {mode}", "", *table(figures, number, form)]
        lines += ["", f"AUC more than 0.02 below the loss threshold, {mode}: {'; '.join(below) or 'none'}."]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
