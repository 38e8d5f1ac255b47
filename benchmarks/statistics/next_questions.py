"""What an auditor asks next: do precision, lists, groups and power hold? Each is checked by simulation.

Run: python benchmarks/statistics/next_questions.py [--runs 500]. Writes next_questions.md beside itself (about ten
minutes).

Scores are drawn from normal distributions where the truth is known; lists of records are made by attacks on Gaussian
evidence.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import betabinom, norm

from glasshouse.attacks import create
from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import Interval, Threshold
from glasshouse.evaluation.groups import group_leaks
from glasshouse.evaluation.leakage import smallest_auc, smallest_tpr
from glasshouse.evaluation.thresholds import (
    DISCOVERY_LEVEL,
    FlaggedRates,
    conformal_p_values,
    discovery_levels,
    flagged_rates,
)
from glasshouse.evidence import Evidence

SIZES = (500, 2000, 5000)
SHARES = (0.1, 0.5, 0.9)


def precision_coverage(members: int, others: int, tpr: float, fpr: float, *, runs: int, seed: int = 0) -> list[float]:
    """How often the intervals of precision (at 10 % members), advantage, TPR and FPR hold the truth."""
    random = np.random.default_rng(seed)
    truth = {"advantage": tpr - fpr, "tpr": tpr, "fpr": fpr}
    precision = 0.1 * tpr / (0.1 * tpr + 0.9 * fpr)
    held = np.zeros(4)
    draws = zip(random.binomial(members, tpr, runs).tolist(), random.binomial(others, fpr, runs).tolist(), strict=True)
    for hits, wrong in draws:
        found = _accused(hits, members, wrong, others)
        intervals = [found.precisions[1].interval, *(getattr(found, f"{name}_interval") for name in truth)]
        held += [
            low <= value <= high for (low, high), value in zip(intervals, (precision, *truth.values()), strict=True)
        ]
    return [float(share) for share in held / runs]


@functools.lru_cache(maxsize=100_000)
def _accused(hits: int, members: int, wrong: int, others: int) -> FlaggedRates:
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [hits, members - hits, wrong, others - wrong])
    threshold = Threshold(0.01, 0.5, "mean", 0.01, Interval(0.0, 0.02), 8)
    return flagged_rates(threshold, threshold.decide(scores), np.arange(members + others) < members)


def gaussian(
    random: np.random.Generator, *, records: int, models: int, shift: float, share: float, apart: float, seed: int
) -> tuple[Evidence, BoolArray]:
    """Evidence with margins N(μ_v + shift·member + model's own offset, σ_v), and the target's members.

    ``apart`` is the standard deviation of the models' offsets: how much targets of one kind differ.
    """
    pool = complementary_halves(records, models=models, seed=seed)
    members = random.random(records) < share
    who = np.vstack([members, pool])
    usual, spread = random.normal(size=records), np.exp(random.normal(0, 0.4, records))
    margins = usual + shift * who + spread * random.normal(size=who.shape)
    loss = np.logaddexp(0, -margins - apart * random.normal(size=(models + 1, 1)))
    return Evidence(target_loss=loss[0], shadow_loss=loss[1:], shadow_members=pool), members


def discoveries(
    attacks: Sequence[str],
    *,
    records: int,
    models: int = 8,
    shift: float,
    share: float,
    apart: float,
    runs: int,
    stated: float | None = None,
    seed: int = 0,
) -> dict[str, tuple[float, float, float]]:
    """By attack: how often a list at 10 % is not empty, its realised FDR, and how many members it holds on average.

    ``stated`` is the prior; by default the true share of members.
    """
    prior = share if stated is None else stated
    random = np.random.default_rng(seed)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in attacks}
    for run in range(runs):
        evidence, members = gaussian(
            random, records=records, models=models, shift=shift, share=share, apart=apart, seed=run
        )
        for name in attacks:
            attack = create(name, shared={"prior": prior}).tuned(evidence)
            p_values = conformal_p_values(attack.flag_scores(evidence), list(attack.simulated_scores(evidence)))
            listed = discovery_levels(p_values, prior=prior) <= DISCOVERY_LEVEL
            wrong, right = int((listed & ~members).sum()), int((listed & members).sum())
            found[name].append((float(listed.any()), wrong / max(1, wrong + right), right))
    return {name: tuple(np.mean(rows, axis=0).tolist()) for name, rows in found.items()}


def group_alarms(
    *, records: int, share: float, auc: float, groups: int = 10, offset: float = 0.0, runs: int, seed: int = 0
) -> tuple[float, float, float]:
    """Share of runs with any group singled out, mean number of compared groups, and how often all intervals hold.

    All groups leak alike; ``offset`` moves the scores of group g by g times that.
    """
    random = np.random.default_rng(seed)
    shift = float(norm.ppf(auc)) * math.sqrt(2)
    alarms, compared, held = 0, 0, 0
    for _ in range(runs):
        members, column = random.random(records) < share, random.integers(groups, size=records)
        scores = random.normal(size=records) + shift * members + offset * column
        leaks = group_leaks(scores, members, {"class": column.astype(np.str_)})
        alarms += any(one.singled_out for one in leaks)
        compared += sum(one.judged for one in leaks)
        held += all(one.auc_interval.low <= auc <= one.auc_interval.high for one in leaks if one.auc_interval)
    return alarms / runs, compared / runs, held / runs


def power_at(
    members: int, others: int, fprs: Sequence[float], *, figures: int, runs: int, seed: int = 0
) -> list[float]:
    """How often a leak of the stated size is found: AUC, then TPR at each rate; NaN where no TPR is large enough."""
    random = np.random.default_rng(seed)

    def drawn(shift: float) -> np.ndarray:
        scores = random.normal(size=(runs, members + others))
        scores[:, :members] += shift
        return scores

    ranks = drawn(float(norm.ppf(smallest_auc(members, others, figures=figures))) * math.sqrt(2)).argsort(1).argsort(1)
    areas = (ranks[:, :members].sum(1) - members * (members - 1) / 2) / (members * others)
    spread = math.sqrt((members + others + 1) / (12 * members * others))
    found = [float((areas > 0.5 + norm.isf(0.05 / figures) * spread).mean())]
    for fpr in fprs:
        allowed = math.floor(fpr * others * (1 + 1e-12))
        tpr = smallest_tpr(members, others, fpr, figures=figures)
        if tpr is None:
            found.append(math.nan)
            continue
        scores = drawn(float(norm.ppf(tpr) - norm.ppf((allowed + 1) / (others + 1))))
        cut = np.sort(scores[:, members:], axis=1)[:, others - 1 - allowed]
        hits = (scores[:, :members] > cut[:, None]).sum(1)
        needed = int(betabinom(members, allowed + 1, others - allowed).isf(0.05 / figures)) + 1
        found.append(float((hits >= needed).mean()))
    return found


def _precision_lines(runs: int) -> Iterator[str]:
    yield "| members | others | TPR | FPR | precision | advantage | TPR | FPR |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    rates = [(0.01, 0.01), (0.05, 0.01), (0.3, 0.01), (0.9, 0.01), (0.05, 0.001), (0.5, 0.5)]
    counts = [(round(share * size), size - round(share * size)) for size in SIZES for share in SHARES]
    for (members, others), (tpr, fpr) in itertools.product(counts, rates):
        held = precision_coverage(members, others, tpr, fpr, runs=runs)
        yield f"| {members} | {others} | {tpr} | {fpr} | " + " | ".join(f"{100 * one:.1f}" for one in held) + " |"


def _discovery_lines(runs: int) -> Iterator[str]:
    attacks = ("loss", "base", "lira", "rmia")
    yield "| N | members | stated | shift | apart | " + " | ".join(attacks) + " |"
    yield "| --- | --- | --- | --- | --- |" + " --- |" * len(attacks)
    settings = [
        *((2000, share, share, shift, apart) for share in SHARES for shift in (0.0, 1.0, 3.0) for apart in (0.0, 0.3)),
        *((500, 0.5, 0.5, shift, 0.0) for shift in (0.0, 3.0)),
        *((2000, 0.5, 0.5, shift, 1.0) for shift in (0.0, 3.0)),
        *((2000, share, stated, 3.0, 0.0) for share, stated in ((0.5, 0.2), (0.2, 0.5), (0.5, 0.8))),
    ]
    for records, share, stated, shift, apart in settings:
        found = discoveries(attacks, records=records, share=share, stated=stated, shift=shift, apart=apart, runs=runs)
        cells = [f"{100 * listed:.0f} · {100 * fdr:.1f} · {right:.0f}" for listed, fdr, right in found.values()]
        yield f"| {records} | {share} | {stated} | {shift} | {apart} | " + " | ".join(cells) + " |"


def _group_lines(runs: int) -> Iterator[str]:
    yield "| N | members | AUC | offset | groups compared | singled out | all intervals hold |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    settings = [
        *itertools.product(SIZES, SHARES, (0.5, 0.6, 0.8, 0.95), (0.0,)),
        (2000, 0.5, 0.5, 2.0),
        (2000, 0.5, 0.8, 2.0),
    ]
    for records, share, auc, offset in settings:
        alarms, compared, held = group_alarms(records=records, share=share, auc=auc, offset=offset, runs=runs)
        yield f"| {records} | {share} | {auc} | {offset} | {compared:.1f} | {100 * alarms:.1f} | {100 * held:.1f} |"


def _power_lines(runs: int) -> Iterator[str]:
    fprs = (0.1, 0.01, 0.001)
    yield "| members | others | figures | AUC | " + " | ".join(f"TPR at {100 * fpr:g} %" for fpr in fprs) + " |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for (members, others), figures in itertools.product(((50, 450), (250, 250), (450, 50), (1000, 1000)), (1, 18)):
        told = [fpr for fpr in fprs if fpr * others >= 1]
        found = power_at(members, others, told, figures=figures, runs=runs)
        cells = [f"{100 * one:.1f}" for one in found] + ["–"] * (len(fprs) - len(told))
        yield f"| {members} | {others} | {figures} | " + " | ".join(cells) + " |"


def main() -> None:
    """Measure everything and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    lines = ["# What an auditor asks next", "", f"`python benchmarks/statistics/next_questions.py --runs {runs}`"]
    for title, about, rows in (
        (
            "Precision and advantage",
            f"Coverage in % of 95 % intervals at a given threshold, {4 * runs} runs; precision at 10 % members.",
            _precision_lines(4 * runs),
        ),
        (
            "Lists with at most 10 % wrong",
            f"Eight shadow models, {runs} runs. Each cell: runs with a list that is not empty, in % · realised FDR in "
            "% · members listed. `shift` 0 is no leak; `apart` is how much targets of one kind differ, beside a spread "
            "of about 1 between models on one record. The pool trains on one half, whatever share of the records are "
            "members of the target; `stated` is the prior. If it is λ and the true share λ', the FDR is about "
            "10 % · (1 - λ') / (1 - λ): below 10 % where fewer members are stated than there are, above it where more.",
            _discovery_lines(runs),
        ),
        (
            "Groups that leak alike",
            f"Ten groups, {runs} runs. Runs in % in which any group is singled out (wanted: 5 or less), without the "
            "condition that a leak was shown at all; and in which the intervals of all groups hold (wanted: 95). The "
            f"standard error of a share of 5 % is {100 * math.sqrt(0.05 * 0.95 / runs):.1f} points; rows with one N "
            "and share are the same draws, moved.",
            _group_lines(runs),
        ),
        ("Power", f"How often the stated leak is found, in % (wanted: 80), {4 * runs} runs.", _power_lines(4 * runs)),
    ):
        lines += ["", f"## {title}", "", about, "", *rows]
        print(title, flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
