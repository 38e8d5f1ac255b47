"""Regressions and labels alone: what attacks find, and how often they find what is not there.

Run: python benchmarks/records/regression.py [--targets 5] [--nulls 100]. Writes regression.md beside itself.

- *Regressions*: made data, y = 2x₁ + sin 3x₂ + x₃x₄ + noise, 600 records, members drawn at random.
- *Null*: every model is trained on another random half than it is said to be, so nothing can be found.
- *Labels alone*: the embedded digits, asked for probabilities and for labels.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from glasshouse import (
    Attacker,
    Evaluation,
    LabelOnly,
    Population,
    QueryOptions,
    SklearnTrainer,
    TorchTrainer,
    audit,
    digits,
    mlp,
)
from glasshouse.core.arrays import BoolArray
from glasshouse.data import random_subsets
from glasshouse.evaluation import clopper_pearson

ATTACKS = ("base", "lira", "rmia", "regressed", "stacked")
FOUR = ("base", "lira", "rmia", "stacked")
FEW = ("base", "lira", "rmia")


def made_records(records: int, features: int, seed: int = 0) -> Population:
    """Made data of a regression."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, features)).astype(np.float32)
    y = 2 * x[:, 0] + np.sin(3 * x[:, 1]) + x[:, 2] * x[:, 3] + rng.normal(size=records)
    return Population(x, y, regression=True)


def regressors() -> dict[str, tuple[Population, Any]]:
    """By name: the records, and what trains a model on them."""
    wide, narrow = made_records(600, 100), made_records(600, 8)
    adam = functools.partial(torch.optim.Adam, lr=0.01)
    network = TorchTrainer(module=mlp(8, 1, hidden=[64]), optimizer=adam, epochs=60, batch_size=32)
    return {
        "linear, 100 features": (wide, SklearnTrainer(estimator=LinearRegression())),
        "ridge, 100 features": (wide, SklearnTrainer(estimator=Ridge(alpha=50.0))),
        "random forest": (narrow, SklearnTrainer(estimator=RandomForestRegressor(50))),
        "gradient boosting": (narrow, SklearnTrainer(estimator=GradientBoostingRegressor(max_depth=4))),
        "network of 64 units": (narrow, network),
    }


def measured(population: Population, trainer: Any, attacks: Any, targets: int, query: QueryOptions | None) -> list[str]:
    """AUC and TPR at 1 % FPR of each attack, means over targets, and seconds of processor time per audit."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in attacks}
    began = time.process_time()
    for seed in range(targets):
        result = audit(
            population,
            trainer=trainer,
            attacks=list(attacks),
            evaluation=Evaluation(fprs=[0.01]),
            attacker=Attacker(query=query),
            seed=seed,
        )
        for name, outcome in result.outcomes.items():
            assert outcome.metrics is not None
            found[name].append((outcome.metrics.auc, outcome.metrics.rates[0].tpr))
    seconds = (time.process_time() - began) / targets
    cells = [f"{np.mean([a for a, _ in one]):.3f} / {100 * np.mean([t for _, t in one]):.1f}" for one in found.values()]
    return [*cells, f"{seconds:.1f}"]


def untold(population: Population, members: BoolArray, seed: int) -> Any:
    """A forest on another half than it is said to be trained on."""
    drawn = random_subsets(len(members), models=1, fraction=0.5, seed=seed, stream="untold")[0]
    return RandomForestRegressor(10, random_state=seed % 2**32).fit(population.x[drawn], population.y[drawn])


def false_alarms(runs: int) -> tuple[int, Mapping[str, float]]:
    """How many audits without a leak show one, and the mean AUC of each attack."""
    shown, areas = 0, dict[str, list[float]]((name, []) for name in FEW)
    for seed in range(runs):
        result = audit(made_records(200, 8, seed), trainer=untold, attacks=list(FEW), shadows=4, seed=seed)
        assert result.verdict_attack is not None
        shown += bool(result.verdict_attack.test.leak)
        for name in FEW:
            metrics = result.outcomes[name].metrics
            assert metrics is not None
            areas[name].append(metrics.auc)
    return shown, {name: float(np.mean(values)) for name, values in areas.items()}


def classifiers() -> dict[str, Any]:
    """What trains a model on the digits, by name."""
    adam = functools.partial(torch.optim.Adam, lr=3e-3)
    return {
        "network of 512 units": TorchTrainer(
            module=mlp(64, 10, hidden=[512]), optimizer=adam, epochs=30, batch_size=64
        ),
        "logistic regression": SklearnTrainer(estimator=LogisticRegression(max_iter=60, C=10.0, tol=0.01)),
        "linear SVM (labels only)": SklearnTrainer(estimator=LinearSVC(max_iter=2000, tol=0.01)),
    }


def main(targets: int, nulls: int) -> str:
    """The page."""
    lines = [
        "# Regressions, and labels alone",
        "",
        f"By `python benchmarks/records/regression.py --targets {targets} --nulls {nulls}`. AUC / TPR at 1 % "
        f"FPR in %, means",
        f"over {targets} targets, 8 shadow models, online; seconds of processor time per audit.",
        "",
        "## Regressions",
        "",
        "Made data, y = 2x₁ + sin 3x₂ + x₃x₄ + noise, 600 records.",
        "",
        f"| model | {' | '.join(ATTACKS)} | seconds |",
        f"| --- {'| --- ' * (len(ATTACKS) + 1)}|",
    ]
    for name, (population, trainer) in regressors().items():
        lines.append(f"| {name} | {' | '.join(measured(population, trainer, ATTACKS, targets, None))} |")
    shown, areas = false_alarms(nulls)
    low, high = clopper_pearson(shown, nulls)
    lines += [
        "",
        "Without a leak (every model is trained on another random half than it is said to be; 200 records, 4 shadow",
        f"models): {shown} of {nulls} audits show one at the 5 % level, 95 % interval {100 * low:.1f} to "
        f"{100 * high:.1f} %; mean AUC " + ", ".join(f"{name} {value:.3f}" for name, value in areas.items()) + ".",
        "",
        "## Labels alone",
        "",
        "Digits with a tenth of the labels wrong, 1 797 records.",
        "",
        f"| model | asked for | {' | '.join(FOUR)} | seconds |",
        f"| --- | --- {'| --- ' * (len(FOUR) + 1)}|",
    ]
    data = digits(seed=0).population
    for name, trainer in classifiers().items():
        ways: dict[str, QueryOptions | None] = {"probabilities": None, "32 labels": LabelOnly()}
        ways["128 labels"] = LabelOnly(votes=128)
        for way, query in ways.items():
            if query is not None or "labels only" not in name:
                lines.append(f"| {name} | {way} | {' | '.join(measured(data, trainer, FOUR, targets, query))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=5)
    parser.add_argument("--nulls", type=int, default=100)
    given = parser.parse_args()
    Path(__file__).with_suffix(".md").write_text(main(given.targets, given.nulls))
