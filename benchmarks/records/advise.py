"""What `glasshouse.advise` advises, and whether it holds on a fresh target: ``python benchmarks/records/advise.py``.

A forest, boosting and a perceptron on people of Adult, and a GCN on Cora; data come from ``GLASSHOUSE_DATA``. It
writes a table beside itself, and a page with the trade-off as a picture for each into the folder ``--pages``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from glasshouse import TorchTrainer, advise, mlp
from glasshouse.data.named import adult
from glasshouse.graph import GNNTrainer, load_graph
from glasshouse.report import Advice, render_advice


def on_adult(trainer: Any, records: int) -> Callable[[], Advice]:
    """An estimator, or what makes a trainer from the number of columns."""

    def work() -> Advice:
        population = adult(records=records).population
        made = trainer(population.features.shape[1]) if callable(trainer) else trainer
        return advise(population, trainer=made, attacks=["base", "rmia"])

    return work


def perceptron(columns: int) -> TorchTrainer:
    """A network of torch that overfits."""
    return TorchTrainer(module=mlp(columns, 2), epochs=60)


def cora() -> Advice:
    """A GCN on Cora."""
    trainer = GNNTrainer(architecture="gcn", hidden=64, epochs=200, dropout=0.0)
    return advise(load_graph("cora"), trainer=trainer, attacks=["base", "g-base"])


def main() -> None:
    """Measure, print, and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    cases: dict[str, Callable[[], Advice]] = {
        "Adult, forest": on_adult(RandomForestClassifier(n_estimators=100), options.records),
        "Adult, boosting": on_adult(HistGradientBoostingClassifier(max_iter=200), options.records),
        "Adult, perceptron": on_adult(perceptron, options.records),
        "Cora, GCN": cora,
    }
    lines = [f"# What `advise` advises\n\n{options.records} records of Adult, eight shadow models, seed 0."]
    for name, work in cases.items():
        if options.only not in name:
            continue
        started = time.perf_counter()
        found = work()
        lines += ["", f"## {name}", "", f"{time.perf_counter() - started:.0f} s.", "", *found.sentences(), ""]
        lines += ["| model | leak | on simulated targets | accuracy |", "| --- | --- | --- | --- |"]
        lines += [
            f"| {one.name} | {found.shown(one)} | {100 * one.simulated:.1f} % | {100 * one.accuracy:.1f} % |"
            for _, one in found.models
        ]
        print("\n".join(lines[-8 - len(found.models) :]), flush=True)
        if options.pages:
            options.pages.mkdir(parents=True, exist_ok=True)
            page = render_advice(found, title=name)
            (options.pages / f"{name.replace(', ', '-').lower()}.html").write_text(page, encoding="utf-8")
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
