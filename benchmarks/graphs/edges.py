"""How well edges are recognised: ``python benchmarks/graphs/edges.py --out benchmarks/graphs/edges.md``.

For each graph and each kind of pairs that are not edges, a pool of shadow models and several targets: area under the
ROC curve and true-positive rate at 1 % false positives of the rule for edges, of attacks on records that look at the
signal of each edge, and of three published families. Then the time of a signal beside two passes over the whole graph,
as processor time on one thread, so that other work on the machine does not matter. The graphs come from
``GLASSHOUSE_DATA``; ``citation`` is made up.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.attacks import BASE, LiRA
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.graph import (
    CandidateEdges,
    EdgeFeatures,
    EdgeInfluence,
    EdgePosteriors,
    EdgeScene,
    GEdge,
    GNNTrainer,
    candidate_edges,
    citation_graph,
    load_graph,
    toggle_edges,
)
from glasshouse.graph.data.audited import Others

KINDS: tuple[Others, ...] = ("distance", "random", "held out")


def attacks_of(samples: int) -> Mapping[str, Any]:
    """The rule in three forms, attacks on records, and the published families."""
    return {
        "g-edge": GEdge(samples=samples),
        "g-edge, offline": GEdge(mode="offline", samples=samples),
        "g-edge, learned prior": GEdge(prior="learned", samples=samples),
        "base on S": BASE(),
        "lira on S": LiRA(),
        "edge-posteriors": EdgePosteriors(),
        "edge-features": EdgeFeatures(),
        "edge-influence": EdgeInfluence(),
    }


def trained(trainer: GNNTrainer, pairs: CandidateEdges, chosen: np.ndarray, seed: int) -> Any:
    """A model of all nodes, with the chosen pairs as edges."""
    return trainer(pairs.graph(chosen), np.ones(int(pairs.known.num_nodes), dtype=np.bool_), seed)


def rates(
    data: Data, trainer: GNNTrainer, *, others: Others, edges: int, shadows: int, targets: int, samples: int, seed: int
) -> dict[str, np.ndarray]:
    """For each attack [targets, 2]: AUC, and TPR at 1 % FPR."""
    pairs = candidate_edges(data, count=edges, others=others, seed=seed)
    plan = complementary_halves(len(pairs.present), models=shadows, seed=seed)
    pool = [trained(trainer, pairs, who, seed_for(seed, "shadow", k)) for k, who in enumerate(plan)]
    truths = [pairs.present] * targets
    if others == "held out":  # each target has another half of them
        truths = [generator(seed, "half", place).permutation(pairs.present) for place in range(targets)]
    made = [trained(trainer, pairs, who, seed_for(seed, "target", place)) for place, who in enumerate(truths)]
    whole = EdgeScene(
        pairs.known, made[0], [*pool, *made], np.vstack([plan, *truths]), pairs=pairs.pairs, others=others
    )  # so that no model is asked twice; each target is compared with the pool alone
    attacks = attacks_of(samples)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in attacks}
    for place, truth in enumerate(truths):
        scene = whole._among(np.arange(shadows), model=shadows + place)
        for name, attack in attacks.items():
            scores = attack.score(scene.evidence if attack.kind == "records" else scene)
            found[name].append((auc(scores, truth), tpr_at_fpr(scores, truth, 0.01)))
    return {name: np.array(some) for name, some in found.items()}


def speed(data: Data, architecture: str, *, pairs: int, few: int) -> tuple[float, float]:
    """Processor seconds of one signal: by changed rows, and by two passes over the whole graph."""
    drawn = candidate_edges(data, count=pairs, others="random", seed=0)
    ends = torch.from_numpy(drawn.pairs)
    masks = torch.rand(2, ends.shape[1], generator=torch.Generator().manual_seed(0)) < 0.5
    models = [GNNTrainer(architecture=architecture, device="cpu").untrained(data).eval() for _ in range(4)]

    def seconds(count: int, masks: torch.Tensor, ends: torch.Tensor, engine: Any) -> float:
        began = time.process_time()
        toggle_edges(models[:count], drawn.known, masks, ends, engine=engine)
        return (time.process_time() - began) / (count * masks.numel())

    seconds(1, masks[:1, :few], ends[:, :few], "auto")
    return seconds(4, masks, ends, "auto"), seconds(1, masks[:1, :few], ends[:, :few], "reference")


def lines(args: argparse.Namespace) -> list[str]:
    """The page."""
    trainer = GNNTrainer(architecture=args.architecture, hidden=args.hidden, epochs=args.epochs, device="cpu")
    page = [
        f"*{args.targets} targets for each graph and kind, {args.shadows} shadow models, {args.edges} edges and as "
        f"many other pairs, {args.samples} graphs sampled; "
        f"{args.architecture} with {args.hidden} hidden values, {args.epochs} epochs, all nodes as "
        f"members; {platform.machine()}, torch {torch.__version__}, seed {args.seed}.*",
        "",
        "AUC and TPR at 1 % FPR in %, mean over targets, with the standard deviation over targets.",
        "",
    ]
    for name in args.graphs:
        data = citation_graph(nodes=args.nodes) if name == "citation" else load_graph(name)
        page += [f"**{name}**", "", "| attack | " + " | ".join(f"{kind}: AUC / TPR" for kind in args.kinds) + " |"]
        page += ["| --- |" + " --- |" * len(args.kinds)]
        columns = []
        for kind in args.kinds:
            found = rates(
                data,
                trainer,
                others=kind,
                edges=args.edges,
                shadows=args.shadows,
                targets=args.targets,
                samples=args.samples,
                seed=args.seed,
            )
            columns.append({attack: _cell(some) for attack, some in found.items()})
            print(name, kind, columns[-1], flush=True)
        page += [f"| {attack} | " + " | ".join(column[attack] for column in columns) + " |" for attack in columns[0]]
        page.append("")
    page += ["| graph, model | a signal by changed rows | two passes | ratio |", "| --- | --- | --- | --- |"]
    for name in args.graphs:
        data = citation_graph(nodes=args.nodes) if name == "citation" else load_graph(name)
        for architecture in ("gcn", "sage", "gat"):
            fast, slow = speed(data, architecture, pairs=min(200, args.edges), few=4)
            page.append(f"| {name}, {architecture} | {1e3 * fast:.2f} ms | {1e3 * slow:.1f} ms | {slow / fast:.0f} |")
    return page


def _cell(some: np.ndarray) -> str:
    mean, spread = 100 * some.mean(axis=0), 100 * some.std(axis=0, ddof=min(1, len(some) - 1))
    return f"{mean[0]:.1f} ± {spread[0]:.1f} / {mean[1]:.1f} ± {spread[1]:.1f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--architecture", default="gcn")
    parser.add_argument("--nodes", type=int, default=400, help="of the graph that is made up")
    sizes = {"edges": 500, "shadows": 8, "targets": 10, "samples": 8, "hidden": 64, "epochs": 50, "seed": 0}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    page = "\n".join(["# Edges of the training graph", "", *lines(args)]) + "\n"
    print(page)
    if args.out is not None:
        args.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
