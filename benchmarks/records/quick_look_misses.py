"""What the quick look's estimate misses: made-up margins, against eight shadow models whose attack is written out here.

Run: python benchmarks/records/quick_look_misses.py [--runs 300] [--records 2000]. Writes quick_look_misses.md beside
itself.

Each record has a difficulty of its own, N(centre, spread²), each model answers about it with a margin that is N(0, 1)
around that, and training on a record adds a shift to its margin. The wider the difficulties, the less the target's
losses alone show of a leak that shadow models show.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from scipy.stats import rankdata

from glasshouse import Evidence
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation.intervals import Interval
from glasshouse.evaluation.quick_estimate import quick_estimate_of


@dataclass(frozen=True)
class Case:
    """Centre and spread of the records' difficulties, and what training on a record adds to its margin."""

    name: str
    centre: float
    spread: float
    shift: float


CASES = (
    Case("no leak, hard records", -1.5, 1.5, 0.0),
    Case("no leak", 0.0, 1.5, 0.0),
    Case("no leak, easy records", 1.5, 1.5, 0.0),
    Case("a leak, difficulties alike", 1.0, 0.5, 1.0),
    Case("a leak, difficulties differ", 1.0, 1.5, 1.0),
    Case("a strong leak, difficulties differ much", 1.0, 5.0, 2.5),
    Case("a strong leak, difficulties differ very much", 1.0, 10.0, 2.5),
)


def area(scores: FloatArray, members: BoolArray) -> float:
    """The area under the ROC, by ranks."""
    inside = int(members.sum())
    return float((rankdata(scores)[members].sum() - inside * (inside + 1) / 2) / inside / (len(members) - inside))


def found_rate(scores: FloatArray, members: BoolArray) -> float:
    """The share of members above all but 1 % of the others."""
    others = np.sort(scores[~members])[::-1]
    return float(np.mean(scores[members] > others[len(others) // 100]))


def place(value: float, interval: Interval) -> str:
    """Where a figure lies."""
    return "too low" if value > interval.high else "too high" if value < interval.low else "held"


def once(case: Case, records: int, seed: int) -> dict[str, str]:
    """One made-up target: whether the estimates from none and one of its shadow models hold what eight find."""
    random = np.random.default_rng([seed, *case.name.encode()])
    sides = np.array([random.permutation(records) < records // 2 for _ in range(6)])  # target, reference, four halves
    trained = np.vstack([sides[:2], *([half, ~half] for half in sides[2:])])
    difficulty = random.normal(case.centre, case.spread, records)
    losses = np.logaddexp(0.0, -(difficulty + random.normal(size=trained.shape) + case.shift * trained))
    members, eight = trained[0], losses[2:]
    scores = -losses[0] - logsumexp(-eight, axis=0)  # BASE
    right = area(scores, members), found_rate(scores, members)
    said: dict[str, str] = {}
    one = Evidence(target_loss=losses[0], shadow_loss=losses[1:2], shadow_members=trained[1:2])
    for models in (0, 1):
        estimate = quick_estimate_of(one if models else Evidence(target_loss=losses[0]), members)
        if estimate is None:
            said |= {f"{models} {name}": "withheld" for name in ("AUC", "TPR", "below chance")}
            continue
        said[f"{models} AUC"] = place(right[0], estimate.auc_interval)
        said[f"{models} TPR"] = place(right[1], estimate.tpr_interval)
        said[f"{models} below chance"] = str(estimate.auc_interval.high < 0.5 or estimate.tpr_interval.high < 0.01)
    return said


def measure(case: Case, *, runs: int, records: int) -> dict[str, Counter[str]]:
    """How often each thing was said."""
    found: dict[str, Counter[str]] = {}
    for seed in range(runs):
        for name, said in once(case, records, seed).items():
            found.setdefault(name, Counter())[said] += 1
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--records", type=int, default=2000)
    given = parser.parse_args(arguments)
    lines = [
        "# What the quick look's estimate misses",
        "",
        f"`python benchmarks/records/quick_look_misses.py --runs {given.runs} --records {given.records}`. "
        f"Made-up margins; how "
        "often the 90 % interval from none or one shadow model held what BASE finds on the same target with eight, was "
        "too low, or was too high. *Below chance*: an interval that lies wholly below an AUC of 0.5 or a TPR of 1 %. "
        "The intervals are meant for targets as they occur, and not for each of these.",
        "",
        "| case | models | AUC: held, too low, too high | TPR: held, too low, too high | below chance | withheld |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for case in CASES:
        found = measure(case, runs=given.runs, records=given.records)
        for models in (0, 1):
            cells = [
                ", ".join(str(found[f"{models} {name}"][word]) for word in ("held", "too low", "too high"))
                for name in ("AUC", "TPR")
            ]
            below, lost = found[f"{models} below chance"]["True"], found[f"{models} AUC"]["withheld"]
            lines.append(f"| {case.name} | {models} | {cells[0]} | {cells[1]} | {below} | {lost} |")
            print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
