"""How often a wrong mask of members is noticed, and how often a right one is called wrong.

Run: python benchmarks/robustness/moved.py [RUNS]; writes moved.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Evidence, audit_evidence
from glasshouse.evaluation.checks.members import doubtful_members

ABOUT = """\
# Masks that are moved or mixed up

Audits of a given model whose mask of members is right, moved by one record, reversed or permuted: how many of {runs}
get a warning (`evaluation/checks/members.py`). "Leak shown" counts those in which BASE (without shadow models: the
loss) shows a leak with the right mask; in the others a wrong mask changes no verdict. Made-up records, two classes,
half of them members.

"""
MODELS: dict[str, Callable[[int], Any]] = {
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "tree, leaves of 3": lambda seed: DecisionTreeClassifier(min_samples_leaf=3, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(20, random_state=seed),
    "forest, leaves of 5": lambda seed: RandomForestClassifier(20, min_samples_leaf=5, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=30, random_state=seed),
    "MLP": lambda seed: MLPClassifier((32,), max_iter=150, random_state=seed),
    "logistic regression": lambda _: LogisticRegression(),
}
SIZES = ((120, 4), (160, 2), (300, 4), (300, 0), (1000, 4))  # records, shadow models


def evidence_of(make: Callable[[int], Any], records: int, models: int, seed: int) -> tuple[Evidence, Any]:
    """Losses of a target and its shadow models, in complementary pairs, and the target's members."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(records, 8))
    y = (x[:, 0] + random.normal(size=records) > 0).astype(int)
    halves = [random.permutation(records) < records // 2 for _ in range(1 + models // 2)]
    masks = np.array([halves[0], *(side for half in halves[1:] for side in (half, ~half))])
    fitted = [make(100 * seed + at).fit(x[mask], y[mask]) for at, mask in enumerate(masks)]
    losses = [-np.log(model.predict_proba(x)[np.arange(records), y].clip(1e-12)) for model in fitted]
    return Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=masks[1:]) if models else Evidence(
        target_loss=losses[0]
    ), masks[0]


def main(runs: int) -> None:
    """Every model and size."""
    warnings.simplefilter("ignore")
    lines = ["| model | records | shadow models | leak shown | right | moved by one | reversed | permuted |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- |"]
    totals = np.zeros(5, dtype=int)
    for name, make in MODELS.items():
        for records, models in SIZES:
            counts = np.zeros(5, dtype=int)
            for seed in range(runs):
                evidence, members = evidence_of(make, records, models, seed)
                shuffled = np.random.default_rng(seed).permutation(members)
                found = audit_evidence(evidence, members=members, attacks=["base" if models else "loss"])
                counts[0] += found.summary().conclusion.leak is True
                for at, mask in enumerate((members, np.roll(members, 1), members[::-1], shuffled)):
                    counts[1 + at] += bool(doubtful_members(evidence, mask))
            totals += counts
            lines.append(f"| {name} | {records} | {models} | {' | '.join(map(str, counts))} |")
            print(lines[-1], flush=True)
    all_runs = runs * len(MODELS) * len(SIZES)
    lines.append(f"| all | | | {' | '.join(f'{100 * count / all_runs:.1f} %' for count in totals)} |")
    text = "\n".join(lines) + "\n\nMade by `python benchmarks/robustness/moved.py`.\n"
    Path(__file__).with_suffix(".md").write_text(ABOUT.format(runs=runs) + text, encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
