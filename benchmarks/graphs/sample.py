"""How often intervals from a sample of nodes hold the figure of the whole graph: a simulation, truth by its own code.

    python benchmarks/graphs/sample.py

Scores, members, classes and edges of a graph are made once and stay. Samples are drawn from it again and again, as
`glasshouse.graph.audit` draws them for ``nodes=20_000``. The truth is counted over all nodes, by code that shares
nothing with the package: for the AUC every score is compared by sorting, and the threshold is the score of the
non-member that is the first too many. Written to ``benchmarks/graphs/sample.md``.
"""

from __future__ import annotations

import argparse
import bisect
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.evaluation import delong, tpr_intervals
from glasshouse.evaluation.intervals import Sampled, sampling_intervals
from glasshouse.evaluation.roc import roc
from glasshouse.graph.data.audited import sample_nodes

RATES = (0.05, 0.01)


@dataclass(frozen=True)
class Row:
    """What was found with samples of one size."""

    nodes: int
    audited: int
    figure: str
    truth: float
    bias: float  # of the mean estimate, in standard errors of the mean
    coverage: float
    width: float
    usual_coverage: float
    usual_width: float


def made_graph(size: int, *, seed: int) -> tuple[Data, np.ndarray, np.ndarray]:
    """A graph with hubs and unequal classes, scores [n] that depend on both, and members [n]."""
    random = np.random.default_rng(seed)
    weight = random.pareto(1.5, size) + 1
    ends = random.choice(size, (2, 4 * size), p=weight / weight.sum())
    labels = random.choice(5, size, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    degree = np.bincount(ends[1], minlength=size)
    members = random.random(size) < 0.5
    leak = 0.3 + 0.5 * labels - 0.2 * np.log1p(degree)  # differs by class and degree, which strata can use
    scores = random.normal(np.log1p(degree) + 0.7 * labels + members * leak, 1.0)
    data = Data(x=torch.zeros(size, 1), edge_index=torch.from_numpy(ends), y=torch.from_numpy(labels))
    return data, scores, members


def true_auc(scores: np.ndarray, members: np.ndarray) -> float:
    """The share of pairs in which the member has the higher score, pair by pair over a sorted list."""
    others = sorted(scores[~members].tolist())
    return float(np.mean([bisect.bisect_left(others, score) for score in scores[members].tolist()])) / len(others)


def true_rate(scores: np.ndarray, members: np.ndarray, rate: float) -> float:
    """The share of members above the first non-member that must not be accused."""
    others = sorted(scores[~members].tolist(), reverse=True)
    limit = others[int(rate * len(others))]
    return float(sum(score > limit for score in scores[members].tolist()) / int(members.sum()))


def measured(size: int, audited: int, *, draws: int, seed: int = 0) -> list[Row]:
    """Coverage of both kinds of intervals over many draws."""
    data, scores, members = made_graph(size, seed=seed)
    truths = {"AUC": true_auc(scores, members)}
    truths |= {f"TPR at {100 * rate:g} % FPR": true_rate(scores, members, rate) for rate in RATES}
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in truths}
    for number in range(draws):
        sample = sample_nodes(data, audited, seed=1000 * seed + number)
        drawn = Sampled(strata=sample.strata, sizes=sample.sizes, members=int(members.sum()))
        some, who = scores[sample.nodes], members[sample.nodes]
        whole = sampling_intervals(some, who, drawn, fprs=RATES)
        usual = [delong(some, who), *tpr_intervals(roc(some, who), RATES)]
        ours = [(whole.auc, whole.auc_interval), *((one.tpr, one.interval) for one in whole.rates)]
        for name, (estimate, interval), other in zip(truths, ours, usual, strict=True):
            found[name].append((estimate, *interval, *other))
    rows = []
    for name, truth in truths.items():
        estimate, low, high, low2, high2 = np.array(found[name]).T
        error = estimate.std() / np.sqrt(draws)
        rows.append(
            Row(
                size,
                audited,
                name,
                truth,
                float((estimate.mean() - truth) / error) if error else 0.0,
                float(((low <= truth + 1e-12) & (truth - 1e-12 <= high)).mean()),
                float((high - low).mean()),
                float(((low2 <= truth) & (truth <= high2)).mean()),
                float((high2 - low2).mean()),
            )
        )
    return rows


def written(rows: Sequence[Row], *, draws: int) -> str:
    """The page."""
    lines = [
        "# Intervals of a sample of nodes",
        "",
        "Written by `benchmarks/graphs/sample.py`. How often a 95 % interval from a sample of the nodes holds "
        "the figure that",
        f"an audit of all nodes would find, over {draws} draws from one fixed graph with hubs and unequal classes. The",
        "truth is counted over all nodes by code that shares nothing with the package. *Whole graph* is the interval",
        "for the whole graph (`evaluation/intervals.py`), which knows strata and how many were left out. *Usual* is",
        "the interval beside every figure of a report, which takes nodes as drawn from an endless population.",
        f"Python {platform.python_version()}.",
        "",
        "| nodes | audited | figure | truth | mean error, in standard errors | whole graph: holds it | mean width "
        "| usual: holds it | mean width |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.nodes:,} | {row.audited:,} | {row.figure} | {row.truth:.4f} | {row.bias:+.1f} | {row.coverage:.3f} | "
        f"{row.width:.4f} | {row.usual_coverage:.3f} | {row.usual_width:.4f} |"
        for row in rows
    ]
    error = (0.05 * 0.95 / draws) ** 0.5
    lines += ["", f"The standard error of a coverage of 0.95 over {draws} draws is {error:.3f}.", ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the simulation and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    chosen = parser.parse_args(arguments)
    rows = []
    for size, audited in ((20_000, 400), (20_000, 2_000), (20_000, 10_000), (4_000, 3_600)):
        rows += measured(size, audited, draws=chosen.draws)
        for row in rows[-1 - len(RATES) :]:
            print(row, flush=True)
    chosen.out.write_text(written(rows, draws=chosen.draws), encoding="utf-8")


if __name__ == "__main__":
    main()
