"""A fresh test of a quick look's estimate: tables that it was not learned from. Writes cheap_fresh.md beside itself.

Run: GLASSHOUSE_DATA=… python benchmarks/cheap_fresh.py. The node features of three graphs serve as plain tables: 2 000
rows and 100 columns each. What eight shadow models find is the figure of the verdict's attack, as in cheap.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from glasshouse import Evidence, Population, SklearnTrainer, audit
from glasshouse.evaluation.foreseen import foresee
from glasshouse.graph import load_graph

GRAPHS = ("pubmed", "amazon-photo", "citeseer")
MODELS: dict[str, Any] = {
    "forest": RandomForestClassifier(50),
    "shallow forest": RandomForestClassifier(50, max_depth=8),
    "logistic": LogisticRegression(C=10, max_iter=200),
    "boosting": HistGradientBoostingClassifier(max_iter=30),
}


class Try(NamedTuple):
    """One target: what eight shadow models found, and the estimate's intervals from ``models`` of them."""

    graph: str
    model: str
    models: int
    auc: float
    auc_interval: tuple[float, float]
    tpr: float
    tpr_interval: tuple[float, float]

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether the intervals hold the AUC and the TPR."""
        low, high = self.auc_interval
        least, most = self.tpr_interval
        return low <= self.auc <= high, least <= self.tpr <= most


def tries(name: str, x: np.ndarray, y: np.ndarray, *, seed: int, records: int = 2000) -> Iterator[Try]:
    """Every model on one draw of rows and columns; estimates that are withheld are left out."""
    random = np.random.default_rng(seed)
    rows, columns = random.permutation(len(x))[:records], random.permutation(x.shape[1])[:100]
    population = Population(x[rows][:, columns], y[rows])
    members = np.zeros(len(rows), dtype=np.bool_)
    members[random.permutation(len(rows))[: len(rows) // 2]] = True
    for label, model in MODELS.items():
        full = audit(population, members=members, trainer=SklearnTrainer(estimator=model), fprs=[0.01], seed=seed)
        assert full.headline is not None
        metrics, evidence = full.outcomes[full.headline.attack].metrics, full.evidence
        assert metrics is not None
        for models in (0, 1):
            pool: dict[str, Any] = {
                "shadow_loss": evidence.shadow_loss[:1],
                "shadow_members": evidence.shadow_members[:1],
            }
            found = foresee(Evidence(target_loss=evidence.target_loss, **(pool if models else {})), members)
            if found is not None:
                auc, tpr = tuple(found.auc_interval), tuple(found.tpr_interval)
                yield Try(name, label, models, metrics.auc, auc, metrics.rates[0].tpr, tpr)  # type: ignore[arg-type]


def page(found: list[Try]) -> list[str]:
    """The page, line by line."""
    held = np.array([one.held for one in found])
    area, rate = held.sum(axis=0)
    lines = [
        "# The estimate of a quick look, on fresh tables",
        "",
        "Node features of three graphs as plain tables (2 000 rows, 100 columns), which the relation was not learned",
        "from and on which nothing was chosen. What eight shadow models found, and the 90 % intervals from no shadow",
        "model and from one.",
        "",
        f"The interval held the AUC of {area} of {len(held)} and the TPR of {rate} of {len(held)}.",
        "",
        "| table | model | from | AUC | interval | TPR at 1 % | interval |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        first, second = ("" if inside else " (outside)" for inside in one.held)
        lines.append(
            f"| {one.graph} | {one.model} | {one.models} | {one.auc:.3f}{first} | {one.auc_interval[0]:.3f} to "
            f"{one.auc_interval[1]:.3f} | {100 * one.tpr:.1f} %{second} | {100 * one.tpr_interval[0]:.1f} to "
            f"{100 * one.tpr_interval[1]:.1f} % |"
        )
    return lines


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = parser.parse_args().seeds
    found = []
    for name in GRAPHS:
        data = load_graph(name)
        for seed in range(seeds):
            found += list(tries(name, data.x.numpy(), data.y.numpy(), seed=seed))
    lines = page(found)
    print("\n".join(lines))
    (Path(__file__).parent / "cheap_fresh.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
