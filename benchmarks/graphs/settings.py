"""How often a target that saw the whole graph is noticed in an audit that takes it as inductive, and false alarms.

Run: python benchmarks/graphs/settings.py [--graphs synthetic cora] [--models 6] [--seeds 1]. Writes settings.md beside
itself; about ten minutes on one free core. Cora needs GLASSHOUSE_DATA.

For each graph, network and recipe, models are trained in both settings, each on half of the nodes. Each model is the
target once. *Beside ours*: the others of the inductive models are its shadow models, and it is known that they are, as
with `GNNTrainer`. *Alone*: nothing is known of the shadow models, as with a trainer of the user's own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.graph import GNNTrainer
from glasshouse.graph.data.load import load_graph
from glasshouse.graph.training.setting import Setting, fit_ratios, looks_transductive
from glasshouse.graph.training.trainer import adam

NETWORKS = ("gcn", "sage", "gat")
RECIPES = {
    "5 epochs": {"epochs": 5, "dropout": 0.0, "decay": 0.0},
    "20 epochs": {"epochs": 20, "dropout": 0.0, "decay": 0.0},
    "50 epochs, dropout 0.5": {"epochs": 50, "dropout": 0.5, "decay": 1e-5},
    "100 epochs, dropout 0.5, weight decay": {"epochs": 100, "dropout": 0.5, "decay": 5e-4},
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of the targets of one graph, network and recipe."""

    what: str
    inductive: FloatArray  # ratios of inductive targets
    transductive: FloatArray
    alarms: int  # inductive targets that are noticed, beside ours
    noticed: int  # transductive targets that are
    alarms_alone: int
    noticed_alone: int

    def line(self) -> str:
        """For the table."""
        low, high = self.transductive, self.inductive
        return (
            f"| {self.what} | {low.min():.3f}–{low.max():.3f} | {high.min():.2f}–{high.max():.2f} | "
            f"{self.noticed} of {len(low)} | {self.alarms} of {len(high)} | {self.noticed_alone} of {len(low)} | "
            f"{self.alarms_alone} of {len(high)} |"
        )


def ratios(data: Data, network: str, recipe: str, setting: Setting, members: BoolArray, *, seed: int) -> FloatArray:
    """Of models that one trainer made, [K]."""
    how = RECIPES[recipe]
    trainer = GNNTrainer(
        architecture=network,
        hidden=32,
        epochs=int(how["epochs"]),
        dropout=how["dropout"],
        optimizer=adam(lr=0.01, weight_decay=how["decay"]),
        setting=setting,
        device="cpu",
    )
    models = trainer.train_many(data, members, [seed * 100 + k for k in range(len(members))])
    return fit_ratios(models, data, members)


def measure(data: Data, name: str, network: str, recipe: str, *, models: int, seeds: int) -> Row:
    """Targets of both settings, judged beside inductive shadow models and alone."""
    found: dict[Setting, list[FloatArray]] = {"inductive": [], "transductive": []}
    alarms = noticed = 0
    for seed in range(seeds):
        half = np.random.default_rng(seed).random((models, int(data.num_nodes))) < 0.5
        inductive = ratios(data, network, recipe, "inductive", half, seed=seed)
        transductive = ratios(data, network, recipe, "transductive", half, seed=seed)
        for k in range(models):
            others = np.delete(inductive, k)
            alarms += looks_transductive(inductive[[k]], inductive=others)
            noticed += looks_transductive(transductive[[k]], inductive=others)
        found["inductive"].append(inductive)
        found["transductive"].append(transductive)
    known, other = (np.concatenate(found[setting]) for setting in ("inductive", "transductive"))
    return Row(
        what=f"{name}, {network}, {recipe}",
        inductive=known,
        transductive=other,
        alarms=alarms,
        noticed=noticed,
        alarms_alone=sum(looks_transductive(known[[k]]) for k in range(len(known))),
        noticed_alone=sum(looks_transductive(other[[k]]) for k in range(len(other))),
    )


def table(rows: Sequence[Row]) -> str:
    """The page."""
    targets = sum(len(row.inductive) for row in rows)
    sums = [sum(getattr(row, name) for row in rows) for name in ("noticed", "alarms", "noticed_alone", "alarms_alone")]
    return "\n".join(
        [
            "# Targets that saw the whole graph, in an audit that takes them as inductive",
            "",
            "The ratio is the mean loss on members in the whole graph over that in the graph of the members alone.",
            "Written by `benchmarks/graphs/settings.py`, which says what *beside ours* and *alone* mean.",
            "",
            "| models | ratio, transductive | ratio, inductive | noticed beside ours | false alarms beside ours | "
            "noticed alone | false alarms alone |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(row.line() for row in rows),
            "",
            f"Of {targets} targets in each setting: {sums[0]} noticed and {sums[1]} false alarms beside ours; "
            f"{sums[2]} noticed and {sums[3]} false alarms alone.",
            "",
        ]
    )


def main() -> None:
    """Measure, and write the table beside this file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["synthetic", "cora"])
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    chosen = parser.parse_args()
    began, rows = time.perf_counter(), []
    for name in chosen.graphs:
        data = load_graph(name)
        for network in NETWORKS:
            for recipe in RECIPES:
                rows.append(measure(data, name, network, recipe, models=chosen.models, seeds=chosen.seeds))
                print(f"{time.perf_counter() - began:.0f} s {rows[-1].line()}", flush=True)
                Path(__file__).with_suffix(".md").write_text(table(rows))


if __name__ == "__main__":
    main()
