"""Cora against the paper's Table 1: GCN, eight shadow models, ten targets. Writes cora.md beside itself.

Run: GLASSHOUSE_DATA=… python benchmarks/paper/cora.py. The paper's setting: hidden 64, Adam with rate 1e-3 and weight
decay 1e-5, dropout 0.5, 200 epochs, half of the nodes audited, evenly split between members and others; M = 8 samples.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse.attacks import BASE, RMIA, Attack, LiRA, ShadowClassifier
from glasshouse.core.arrays import BoolArray
from glasshouse.core.progress import track
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.evaluation import auc, run_attack, tpr_at_fpr
from glasshouse.graph import GBASE, GClassifier, GNNTrainer, Scene, load_graph
from glasshouse.graph.training.setting import node_accuracy
from glasshouse.graph.training.trainer import adam

# printed mean and standard deviation: AUC, TPR at 1 % FPR, TPR at 0.1 % FPR, in percent
PAPER = {
    "MLP (0-hop)": ((69.84, 1.74), (3.83, 1.32), (0.56, 0.51)),
    "MLP (0+2-hop)": ((70.14, 2.74), (3.96, 1.65), (0.93, 0.82)),
    "LiRA": ((82.35, 1.30), (8.01, 4.42), (1.02, 1.55)),
    "RMIA": ((82.45, 1.45), (17.44, 1.72), (4.64, 2.25)),
    "BASE": ((82.45, 1.45), (17.47, 1.73), (4.64, 2.25)),
    "G-BASE (MI)": ((77.15, 1.51), (7.19, 3.08), (0.68, 0.92)),
    "G-BASE (MIA)": ((77.42, 1.40), (15.36, 3.04), (5.05, 4.60)),
    "G-BASE (Gibbs)": ((76.86, 1.61), (14.02, 2.51), (4.40, 2.84)),
}
ATTACKS: dict[str, Attack[Any]] = {
    "MLP (0-hop)": ShadowClassifier(),
    "MLP (0+2-hop)": GClassifier(),
    "LiRA": LiRA(variance="record"),  # the paper's; "auto" would pool the variance, which is stronger
    "RMIA": RMIA(),
    "BASE": BASE(),
    "G-BASE (MI)": GBASE(sampler="independent"),
    "G-BASE (MIA)": GBASE(sampler="mia"),
    "G-BASE (Gibbs)": GBASE(sampler="gibbs"),
}
TRAINER = GNNTrainer(architecture="gcn", hidden=64, dropout=0.5, epochs=200, optimizer=adam(1e-3, 1e-5))


def balanced_nodes(members: BoolArray, seed: int) -> np.ndarray:
    """Half of the nodes, as many members as others."""
    random = generator(seed, "audited")
    quarter = len(members) // 4
    return np.concatenate([random.permutation(np.flatnonzero(side))[:quarter] for side in (members, ~members)])


def measure(
    targets: int, *, seed: int = 0, attacks: tuple[str, ...] = tuple(ATTACKS), together: bool = False
) -> dict[str, list[list[float]]]:
    """For each attack, AUC, TPR at 1 % and at 0.1 % in percent, one row per target; and accuracies.

    With ``together`` all models are trained at once, as those of a pool: other dropout, in a fraction of the time.
    """
    data = load_graph("cora")
    count = int(data.num_nodes)
    shadow_members = complementary_halves(count, models=8, seed=seed)
    drawn = random_subsets(count, models=targets, fraction=0.5, seed=seed_for(seed, "targets"))
    everyone = np.concatenate([shadow_members, drawn])
    seeds = [seed_for(seed, "shadow", k) for k in range(8)] + [seed_for(seed, "target", k) for k in range(targets)]
    if together:
        models = TRAINER.train_many(data, everyone, seeds)
    else:
        models = [TRAINER(data, who, one) for who, one in zip(everyone, seeds, strict=True)]
    shadows = models[:8]
    found: dict[str, list[list[float]]] = defaultdict(list)
    pairs = zip(models[8:], drawn, strict=True)
    for number, (target, members) in enumerate(track(pairs, total=targets, label="Targets", unit="targets")):
        nodes = balanced_nodes(members, number)
        scene = Scene(data, target, shadows, shadow_members, nodes=nodes)
        found["accuracy"].append([100 * node_accuracy(target, data, who) for who in (members, ~members)])
        for name in attacks:
            scores = run_attack(ATTACKS[name], scene, fprs=()).scores
            truth = members[nodes]
            rates = [tpr_at_fpr(scores, truth, fpr) for fpr in (0.01, 0.001)]
            found[name].append([100 * figure for figure in (auc(scores, truth), *rates)])
    return found


def _plus_minus(figures: np.ndarray) -> str:
    return f"{figures.mean():.2f} ± {figures.std(ddof=1):.2f}"


def main() -> None:
    """Measure, print, and keep the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=10)
    options = parser.parse_args()
    found = measure(options.targets)
    train, test = (_plus_minus(column) for column in np.array(found["accuracy"]).T)
    lines = [
        "# Cora (GCN, K = 8, online) against the paper's Table 1",
        "",
        f"{options.targets} targets, seed 0. In percent: ours, the paper's, and the difference in the paper's standard",
        f"deviations. Accuracy: train {train} (paper 96.07 ± 0.37), test {test} (paper 80.67 ± 1.10).",
        "",
        "| attack | AUC | TPR at 1 % FPR | TPR at 0.1 % FPR |",
        "| --- | --- | --- | --- |",
    ]
    for name, printed in PAPER.items():
        cells = [
            f"{_plus_minus(ours)} (paper {paper:.2f} ± {deviation:.2f}; {(ours.mean() - paper) / deviation:+.1f})"
            for ours, (paper, deviation) in zip(np.array(found[name]).T, printed, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parent / "cora.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
