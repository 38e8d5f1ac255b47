"""Attacks on records by the number of shadow models, from 2 to 64: which is strongest, and which cannot be used.

Run: python benchmarks/records/shadows.py [--losses FILE.npz ...]. Without files it trains scikit-learn's digits, which
takes some minutes on two cores. A file holds ``loss`` and ``members``, [models, N] each, the last ``targets`` models
being targets, and ``labels`` [N]; its name is the name of the data. Writes shadows.md beside itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from glasshouse import Evidence, InputError, Population, TorchTrainer
from glasshouse.attacks import Attack, create
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.data.named import load_dataset
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.query.classify import query
from glasshouse.training import mlp

ATTACKS = ("base", "rmia", "informia", "lira", "bavaria", "shrunk-lira", "regressed", "quantile", "stacked")
SIZES = (2, 4, 8, 16, 32, 64)
RATES = (0.01, 0.001)


class Pool(NamedTuple):
    """Losses [models, N] and members [models, N] of shadow models, the last ``targets`` rows being targets."""

    loss: FloatArray
    members: BoolArray
    labels: IntArray
    targets: int

    def target(self, number: int, models: int) -> tuple[Evidence, BoolArray]:
        """Evidence about one target with the first shadow models only, and the target's members [N]."""
        row = len(self.loss) - self.targets + number
        evidence = Evidence(
            target_loss=self.loss[row],
            shadow_loss=self.loss[:models],
            shadow_members=self.members[:models],
            labels=self.labels,
        )
        return evidence, self.members[row]


def trained(models: int, targets: int, *, records: int | None = None, epochs: int = 200, seed: int = 0) -> Pool:
    """A pool on scikit-learn's digits, with a perceptron."""
    known = load_dataset("digits").population
    data = Population(x=known.x[:records], y=known.y[:records])
    members = np.concatenate(
        [
            complementary_halves(len(data), models=models, seed=seed),
            random_subsets(len(data), models=targets, fraction=0.5, seed=seed + 1000),
        ]
    )
    trainer = TorchTrainer(module=mlp(data.x.shape[1], 10), epochs=epochs)
    made = [trainer(data, row, seed + number) for number, row in enumerate(members)]
    loss = np.stack([query(model, data).loss for model in made])
    return Pool(loss, members, data.y, targets)


def figures(pool: Pool, *, sizes: Sequence[int] = SIZES, attacks: Sequence[str] = ATTACKS) -> dict[str, dict[int, str]]:
    """AUC and TPRs in %, mean over targets and standard error, by attack and number of models; "-" if it refuses."""
    found: dict[str, dict[int, str]] = {name: {} for name in attacks}
    for size in sizes:
        for name in attacks:
            try:
                attack: Attack = create(name).tuned(pool.target(0, size)[0])
                figure = np.array([_figures(attack, *pool.target(t, size)) for t in range(pool.targets)])
            except InputError:
                found[name][size] = "-"
                continue
            error = figure.std(axis=0, ddof=1) / np.sqrt(len(figure))
            found[name][size] = " / ".join(
                f"{m:.1f} ± {e:.1f}" for m, e in zip(figure.mean(axis=0), error, strict=True)
            )
    return found


def _figures(attack: Attack, evidence: Evidence, members: BoolArray) -> list[float]:
    scores = attack.score(evidence)
    return [100 * auc(scores, members), *(100 * tpr_at_fpr(scores, members, rate) for rate in RATES)]


def table(title: str, found: Mapping[str, Mapping[int, str]]) -> str:
    """One row per attack, one column per number of models."""
    sizes = list(next(iter(found.values())))
    head = [f"| {title} | " + " | ".join(f"K = {size}" for size in sizes) + " |", "| --- " * (len(sizes) + 1) + "|"]
    return "\n".join(head + [f"| `{name}` | " + " | ".join(row.values()) + " |" for name, row in found.items()])


def main() -> None:
    """Measure, print, and keep the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    pools = {}
    for file in options.losses:
        with np.load(file) as kept:
            loss, members = np.asarray(kept["loss"], dtype=np.float64), np.asarray(kept["members"], dtype=np.bool_)
            pools[file.stem] = Pool(loss, members, np.asarray(kept["labels"], dtype=np.int64), int(kept["targets"]))
    tables = [table(name, figures(pool)) for name, pool in (pools or {"digits": trained(64, 8)}).items()]
    text = "\n\n".join(
        [
            "# Shadow models: from 2 to 64",
            "AUC / TPR at 1 % / TPR at 0.1 % FPR in %, mean over targets outside the pool and its standard error,\n"
            "online (`quantile` has no online form). A dash: the attack refuses so few models, with one line that\n"
            "says how many it needs.",
            *tables,
        ]
    )
    print(text)
    (Path(__file__).parent / "shadows.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
