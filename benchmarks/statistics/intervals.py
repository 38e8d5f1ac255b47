"""How often the printed 95 % intervals hold the truth: AUC, TPR at an FPR, and balanced accuracy; and the TPR's bias.

Run: python benchmarks/statistics/intervals.py [--runs 2000] [--nodes 8000]. Writes intervals.md beside itself. With
``--bias 400`` it measures the bias of the TPR in so many runs instead, and writes intervals_bias.md.

Made-up scores have a known truth: Gaussian scores of members and others, of equal or unequal spread, and votes
(Gaussian scores rounded to 41 steps, so that many are tied). Real scores come from one audit of a graph neural network
and one of a network on records, both much larger than the samples: the truth is the figure over the whole of it, and a
sample is drawn with replacement.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from glasshouse import Population, TorchTrainer, audit
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import evaluate, roc, tpr_intervals
from glasshouse.evaluation.intervals import tpr_estimates
from glasshouse.training import mlp

FPRS = (0.01, 0.001)
SIZES = (500, 2000, 5000)
AREAS = (0.5, 0.6, 0.8, 0.95)
SHARES = (0.5, 0.1, 0.9)
FEW = (100, 150, 200, 300, 500, 1000, 2000, 5000)  # non-members, as many members
_STEPS = np.linspace(-4, 6, 41)  # the scores of votes
_LIMITS = (0.93, 0.999)


@dataclass(frozen=True)
class Truth:
    """Where scores come from, and their true figures.

    Args:
        draw: gives scores for so many members and so many others.
        auc: the true area.
        tpr: the true TPR at a rate.
        accuracy: the true best balanced accuracy.
    """

    draw: Callable[[np.random.Generator, int, int], tuple[FloatArray, FloatArray]]
    auc: float
    tpr: Callable[[float], float]
    accuracy: float


def gaussian(area: float, *, spread: float = 1.0) -> Truth:
    """Others N(0, 1), members N(shift, spread²)."""
    shift = float(np.hypot(1.0, spread) * norm.ppf(area))
    grid = np.linspace(-8, 8 + shift, 40_001)
    return Truth(
        lambda random, inside, outside: (random.normal(shift, spread, inside), random.normal(size=outside)),
        area,
        lambda fpr: float(norm.sf((norm.isf(fpr) - shift) / spread)),
        float(1 + np.max(norm.sf((grid - shift) / spread) - norm.sf(grid))) / 2,
    )


def votes(area: float) -> Truth:
    """The same in 41 steps; a threshold lies between two of them."""
    shift = float(np.sqrt(2) * norm.ppf(area))
    edges = (_STEPS[1:] + _STEPS[:-1]) / 2
    above = [np.append(1.0, norm.sf(edges - where)) for where in (shift, 0.0)]  # [2, 41] chance of at least each step
    inside, outside = (-np.diff(np.append(chances, 0.0)) for chances in above)
    lower = np.cumsum(outside) - outside

    def draw(random: np.random.Generator, members: int, others: int) -> tuple[FloatArray, FloatArray]:
        whole = random.normal(shift, 1, members), random.normal(size=others)
        return _STEPS[np.searchsorted(edges, whole[0])], _STEPS[np.searchsorted(edges, whole[1])]

    return Truth(
        draw,
        float((inside * (lower + outside / 2)).sum()),
        lambda fpr: float(max((tpr for tpr, wrong in zip(*above, strict=True) if wrong <= fpr), default=0.0)),
        float(1 + np.max(above[0] - above[1])) / 2,
    )


def resampled(scores: FloatArray, members: BoolArray) -> Truth:
    """A sample of a much larger audit, drawn with replacement; its figures are the truth."""
    whole = evaluate(scores, members, fprs=FPRS)
    tprs = {rate.wanted: rate.tpr for rate in whole.rates}
    sides = scores[members], scores[~members]
    return Truth(
        lambda random, inside, outside: (random.choice(sides[0], inside), random.choice(sides[1], outside)),
        whole.auc,
        lambda fpr: tprs[fpr],
        whole.balanced_accuracy,
    )


def coverage(
    truth: Truth, *, records: int, share: float, runs: int, seed: int = 0
) -> dict[str, tuple[float, float, int]]:
    """By figure: share of intervals that hold the truth, mean width, and how many false positives are allowed."""
    random = np.random.default_rng(seed)
    inside = round(share * records)
    members = np.arange(records) < inside
    fprs = [fpr for fpr in FPRS if fpr * (records - inside) >= 1]
    hits: dict[str, list[tuple[bool, float]]] = {}
    for _ in range(runs):
        found = evaluate(np.concatenate(truth.draw(random, inside, records - inside)), members, fprs=fprs)
        figures = {"AUC": (truth.auc, found.auc_interval)}
        figures["balanced accuracy"] = (truth.accuracy, found.balanced_accuracy_interval)
        figures |= {f"TPR at {100 * one.wanted:g} %": (truth.tpr(one.wanted), one.interval) for one in found.rates}
        for name, (right, (low, high)) in figures.items():
            hits.setdefault(name, []).append((low - 1e-9 <= right <= high + 1e-9, high - low))
    allowed = {f"TPR at {100 * fpr:g} %": int(fpr * (records - inside)) for fpr in fprs}
    return {
        name: (
            float(np.mean([hit for hit, _ in some])),
            float(np.mean([width for _, width in some])),
            allowed.get(name, 0),
        )
        for name, some in hits.items()
    }


def bias(
    truth: Truth, *, non_members: int, runs: int, fpr: float = 0.01, seed: int = 0
) -> tuple[float, float, float, float]:
    """Of the TPR at a rate: how far the median of the sample's own rate, and of the estimate, is from the truth.

    Both as a share of the truth; then how often the estimate is too low, and how often the interval holds the truth.
    """
    random = np.random.default_rng([seed, non_members])
    members, right = np.arange(2 * non_members) < non_members, truth.tpr(fpr)
    own, shown, held = np.empty(runs), np.empty(runs), np.empty(runs, dtype=np.bool_)
    for run in range(runs):
        inside, outside = truth.draw(random, non_members, non_members)
        above = np.sort(outside)[::-1][int(np.floor(fpr * non_members + 1e-9))]  # the first that must not be flagged
        own[run] = np.mean(inside > above)
        curve = roc(np.concatenate([inside, outside]), members)
        shown[run] = tpr_estimates(curve, [fpr])[0]
        low, high = tpr_intervals(curve, [fpr])[0]
        held[run] = low <= right <= high
    low_too = float(np.mean(shown < right))
    return float(np.median(own)) / right - 1, float(np.median(shown)) / right - 1, low_too, float(held.mean())


def bias_table(runs: int) -> Iterator[str]:
    """Lines of a table of biases."""
    yield "| scores | TPR at 1 % | non-members | allowed | sample's rate | estimate | too low | interval holds |"
    yield "| --- |" + " --- |" * 7
    made = {f"Gaussian, AUC {area:g}": gaussian(area) for area in (0.5, 0.52, 0.6, 0.8, 0.95)}
    for name, truth in {**made, "Gaussian, spread 2, AUC 0.6": gaussian(0.6, spread=2.0)}.items():
        for count in FEW:
            own, shown, low, held = bias(truth, non_members=count, runs=runs)
            line = f"| {name} | {100 * truth.tpr(0.01):.2f} % | {count} | {count // 100} | {100 * own:+.0f} % | "
            line += f"{100 * shown:+.0f} % | {100 * low:.0f} % | {100 * held:.1f} % |"
            print(line, flush=True)
            yield line


def write_bias(runs: int) -> None:
    """Measure the bias, and write its page."""
    text = [
        "# The TPR that is shown",
        "",
        f"`python benchmarks/statistics/intervals.py --bias {runs}`: {runs} samples each, as many members as "
        f"non-members. How far "
        "the median over samples is from the truth, as a share of it: of the rate of the sample at the lowest "
        "threshold that flags at most *allowed* non-members, and of the estimate that reports show. *Too low*: how "
        "often the estimate is below the truth; 50 % is median-unbiased. *Interval holds*: of the 95 % interval. With "
        "few allowed false positives the sample's rate moves in large steps, and so does its median.",
        "",
        *bias_table(runs),
        "",
    ]
    Path(__file__).with_name("intervals_bias.md").write_text("\n".join(text), encoding="utf-8")


def made_up() -> Iterator[tuple[str, Truth, int, float]]:
    """What is measured: a name, the truth, how many records, and the share of members."""
    for records in SIZES:
        for area in AREAS:
            yield f"Gaussian, AUC {area:g}", gaussian(area), records, 0.5
        for share in SHARES[1:]:
            yield f"Gaussian, AUC 0.8, {100 * share:g} % members", gaussian(0.8), records, share
        yield "Gaussian, spread 2, AUC 0.6", gaussian(0.6, spread=2.0), records, 0.5
        yield "votes, AUC 0.8", votes(0.8), records, 0.5


def real(nodes: int) -> Iterator[tuple[str, Truth, int, float]]:
    """Samples of an audit of a graph neural network, and of a network on records."""
    from glasshouse.graph import GNNTrainer, citation_graph
    from glasshouse.graph import audit as graph_audit

    data = citation_graph(nodes=nodes, classes=5)
    trainer = GNNTrainer(hidden=16, epochs=60, device="cpu")
    result = graph_audit(data, trainer=trainer, attacks=["lira", "g-base"], shadows=4, progress=False)
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(nodes, 16)), random.integers(4, size=nodes))
    plain = audit(
        population,
        trainer=TorchTrainer(module=mlp(16, 4, hidden=(64,)), epochs=15, device="cpu"),
        attacks=["lira"],
        shadows=4,
        progress=False,
    )
    for kind, found in {"graph": result, "records": plain}.items():
        assert found.members is not None
        for name, outcome in found.outcomes.items():
            truth = resampled(outcome.scores, found.members)
            for records in SIZES:
                yield f"{kind}, {name}, AUC {truth.auc:.2f}", truth, records, 0.5


def table(cells: Iterator[tuple[str, Truth, int, float]], runs: int) -> tuple[list[str], dict[str, list[float]]]:
    """Lines of a table, and all coverages by figure where ten false positives or more are allowed."""
    names = ("AUC", "balanced accuracy", *(f"TPR at {100 * fpr:g} %" for fpr in FPRS))
    lines = ["| scores | records | " + " | ".join(names) + " |", "| --- | --- |" + " --- |" * len(names)]
    all_found: dict[str, list[float]] = {}
    for name, truth, records, share in cells:
        found = coverage(truth, records=records, share=share, runs=runs)
        row = []
        for figure in names:
            if figure not in found:
                row.append("–")
                continue
            hit, width, allowed = found[figure]
            few = figure.startswith("TPR") and allowed < 10
            row.append(f"{100 * hit:.1f} % ({width:.3f})" + (f" rests on {allowed}" if few else ""))
            all_found.setdefault(figure + (", fewer than 10" if few else ""), []).append(hit)
        lines.append(f"| {name} | {records} | " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    return lines, all_found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=8000)
    parser.add_argument("--bias", type=int, default=0)
    given = parser.parse_args(arguments)
    if given.bias:
        write_bias(given.bias)
        return
    first, made = table(made_up(), given.runs)
    second, sampled = table(real(given.nodes), max(1, given.runs // 2))
    ranges = [
        f"| {figure} | {100 * min(values):.1f} % | {100 * max(values):.1f} % |"
        for figure, values in {name: made.get(name, []) + sampled.get(name, []) for name in made}.items()
    ]
    text = [
        "# Coverage of the printed 95 % intervals",
        "",
        f"`python benchmarks/statistics/intervals.py --runs {given.runs} --nodes {given.nodes}`. Each cell: how "
        f"often the "
        "interval held the truth, and its mean width in brackets.",
        f"Wanted: between {100 * _LIMITS[0]:g} % and {100 * _LIMITS[1]:g} % where ten false positives or more are "
        "allowed. “Rests on k”: only k non-members may be accused; the interval is wide, and the report says so.",
        "",
        "| figure | least | most |",
        "| --- | --- | --- |",
        *ranges,
        "",
        "## Made-up scores with a known truth",
        "",
        *first,
        "",
        "## Samples of real audits",
        "",
        f"Half as many runs. One audit of {given.nodes} nodes, one of {given.nodes} records.",
        "",
        *second,
        "",
    ]
    Path(__file__).with_suffix(".md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
