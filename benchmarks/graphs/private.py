"""Node-level privacy and its price: ``python benchmarks/graphs/private.py --out benchmarks/graphs/private.md``.

For each graph, ε and number of hops: accuracy on nodes that were not trained on, the largest area under the ROC curve
of some attacks, and the lower bound on ε that the audit shows beside the claim, in several runs with other members and
other noise. 0 hops is DP-SGD on the features alone, which has no edges to protect. The graphs come from
``GLASSHOUSE_DATA``; ``citation`` is made up.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from glasshouse import Evaluation
from glasshouse.graph import PrivateGNNTrainer, audit, citation_graph, load_graph

ATTACKS = ("base", "lira", "g-base")


def measured(
    graph: str,
    trainer: PrivateGNNTrainer,
    *,
    attacks: Sequence[str],
    samples: int,
    shadows: int,
    nodes: int,
    seed: int,
) -> tuple[float, ...]:
    """Accuracy on non-members, the largest AUC, the bound at the claim's δ, and whether it contradicts the claim."""
    data = citation_graph(nodes=400) if graph == "citation" else load_graph(graph)
    result = audit(
        data,
        trainer=trainer,
        attacks=[{"name": name, "samples": samples} if name == "g-base" else name for name in attacks],
        shadows=shadows,
        nodes=min(nodes, int(data.num_nodes)),
        evaluation=Evaluation(claim=trainer.claim),
        seed=seed,
        progress=False,
    )
    assert result.privacy is not None
    found = result.privacy
    accuracy = result.context.test_accuracy or 0.0
    return accuracy, float(np.max(result.table()["auc"])), found.shown, float(found.contradicted)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["cora", "pubmed"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[2.0, 8.0, math.inf])
    parser.add_argument("--attacks", nargs="+", default=list(ATTACKS))
    parser.add_argument("--lr", type=float, default=5.0)
    sizes = {"runs": 10, "shadows": 8, "nodes": 2000, "samples": 8, "epochs": 30, "degree": 3}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    page = [
        "# Node-level privacy",
        "",
        f"*{args.runs} runs each, {args.shadows} shadow models, {args.nodes} nodes audited at most, attacks "
        f"{', '.join(args.attacks)} ({args.samples} training sets sampled); "
        f"{args.epochs} steps, learning rate {args.lr:g}, degrees of at most "
        f"{args.degree}, δ = 1e-5, a linear model on features beside means over "
        "neighbours. Mean over runs; the bound is the largest.*",
        "",
        "| graph | hops | claimed ε | accuracy (%) | largest AUC (%) | largest bound on ε | claims contradicted |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for graph in args.graphs:
        for hops in (0, 1):
            for epsilon in args.epsilons:
                trainer = PrivateGNNTrainer(
                    epsilon=epsilon, hops=hops, epochs=args.epochs, lr=args.lr, degree=args.degree
                )
                size = {name: getattr(args, name) for name in ("attacks", "samples", "shadows", "nodes")}
                some = np.array([measured(graph, trainer, seed=seed, **size) for seed in range(args.runs)])
                accuracy, area = 100 * some[:, :2].mean(axis=0)
                broken = "-" if math.isinf(epsilon) else f"{int(some[:, 3].sum())} of {args.runs}"
                cells = [
                    graph,
                    hops,
                    f"{epsilon:g}",
                    f"{accuracy:.1f}",
                    f"{area:.1f}",
                    f"{some[:, 2].max():.2f}",
                    broken,
                ]
                page.append(f"| {' | '.join(map(str, cells))} |")
                print(page[-1], flush=True)
    text = "\n".join(page) + "\n"
    print(text)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
