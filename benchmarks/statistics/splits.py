"""False ε where nothing leaks, by how the split was made: ``python benchmarks/statistics/splits.py --out …/splits.md``.

One fixed graph of several components, one pool of shadow models, and targets that never saw the split: each was trained
on another random half of the nodes, so its leak about the split is 0, whatever the split. Members are random nodes, a
snowball, or whole components. Counted over runs: how often ε is withheld, how often a bound above 0 is shown all the
same (which must stay at 5 % at most), and how often it would be shown if the split was not checked. And how often
a test of a leak alarms where the draw is declared as what it was, and where it is declared as one of random nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data

from glasshouse.attacks import BASE, LiRA
from glasshouse.core.randomness import generator
from glasshouse.data import complementary_halves
from glasshouse.data.design import ByComponent, Design, RecordsAtRandom, Snowball
from glasshouse.evaluation import Known, check_random_members, judge_claim, leak_test
from glasshouse.graph import GNNTrainer, Scene, citation_graph, snowball_subset

Split = Callable[[Data, int], np.ndarray]


def fixed_graph(parts: int, nodes: int) -> Data:
    """Several citation graphs side by side, with the number of its component for each node."""
    graph = Batch.from_data_list([citation_graph(nodes=nodes, classes=4, seed=seed) for seed in range(parts)])
    return Data(x=graph.x, edge_index=graph.edge_index, y=graph.y, component=graph.batch)


def random_nodes(data: Data, seed: int) -> np.ndarray:
    """Each node by itself, half of them."""
    count = int(data.num_nodes)
    return generator(seed, "random split").permutation(count) < count // 2


def snowball(data: Data, seed: int) -> np.ndarray:
    """Half of the nodes, wave by wave."""
    return snowball_subset(data, fraction=0.5, seed=seed)


def components(data: Data, seed: int) -> np.ndarray:
    """Half of the components, whole."""
    part = data.component.numpy()
    drawn = generator(seed, "components").permutation(part.max() + 1) < (part.max() + 1) // 2
    return np.asarray(drawn[part])


SPLITS: Mapping[str, tuple[Split, Design]] = {
    "random nodes": (random_nodes, RecordsAtRandom()),
    "snowball": (snowball, Snowball()),
    "by component": (components, ByComponent()),
}


def counts(data: Data, scenes: Sequence[Scene], split: Split, design: Design, *, runs: int) -> tuple[int, ...]:
    """Of the runs: ε withheld; a bound above 0 shown, with and without the check; alarms by declared draw and nodes."""
    withheld = shown = unchecked = alarms = by_nodes = 0
    graph = {"component": data.component.numpy(), "edges": data.edge_index.numpy()}
    known = Known(x=data.x, labels=data.y.numpy(), pairs=data.edge_index.numpy(), audited=np.arange(len(data.x)))
    for run in range(runs):
        scene, members = scenes[run % len(scenes)], split(data, run)
        scores = {"base": BASE().score(scene.evidence), "lira": LiRA().score(scene.evidence)}
        bound = judge_claim(None, scores, members=members, unit="node").epsilon > 0
        found = check_random_members(known, scene.evidence, members, seed=run)
        refused = found is not None and found.found
        withheld, shown, unchecked = withheld + refused, shown + (bound and not refused), unchecked + bound
        draw = design.drawn(len(members), None, {**graph, "members": members})
        options: dict[str, Any] = {"fprs": (0.05,), "permutations": 199, "seed": run}
        alarms += leak_test(scores, members, draw=draw, **options).leak
        by_nodes += leak_test(scores, members, **options).leak
    return withheld, shown, unchecked, alarms, by_nodes


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"runs": 200, "parts": 8, "nodes": 100, "targets": 10, "shadows": 4, "epochs": 40}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = fixed_graph(args.parts, args.nodes)
    trainer, count = GNNTrainer(hidden=16, epochs=args.epochs, device="cpu"), int(data.num_nodes)
    plan = complementary_halves(count, models=args.shadows, seed=0)
    others = complementary_halves(count, models=args.targets, seed=1)
    pool = trainer.train_many(data, plan, range(args.shadows))
    targets = trainer.train_many(data, others, range(100, 100 + args.targets))
    scenes = [Scene(data, target, pool, plan) for target in targets]
    page = [
        "# False ε on a fixed graph, by split",
        "",
        f"*{args.runs} runs per split, {count} nodes in {args.parts} components, {args.targets} targets that never saw "
        f"the split, {args.shadows} shadow models, attacks base and lira; 95 % bounds at δ = 1e-5.*",
        "",
        "| split | ε withheld | ε > 0 shown | ε > 0 if the split was not checked "
        "| alarms by the declared draw | alarms by a draw of nodes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, (split, design) in SPLITS.items():
        page.append(f"| {name} | {' | '.join(map(str, counts(data, scenes, split, design, runs=args.runs)))} |")
        print(page[-1], flush=True)
    text = "\n".join(page) + "\n"
    print(text)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
