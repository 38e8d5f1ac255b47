"""How often `compare` sees a difference: between runs that do not differ (false alarms), and between runs that do.

Run: python benchmarks/statistics/compare.py [--repeats 500] [--draws 1000]. Writes compare.md beside itself.

Scores are binormal, drawn here and not by any audit. A run is (scores, members); the runs of one comparison are drawn
alike, so every difference that is found is a false alarm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.stats import norm

from glasshouse.evaluation import clopper_pearson, tpr_at_fpr
from glasshouse.evaluation.difference import Resampling, ScoredRecords, auc_difference, tpr_difference

Kind = Literal[
    "independent", "same records", "nearly the same scores", "other members", "opposite members", "smaller second run"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_SHARED = {"same records": 0.7, "nearly the same scores": 0.99, "other members": 0.9, "opposite members": 0.9}
_RESAMPLING: dict[Kind, Resampling] = {  # as compare chooses it from ids and members
    "independent": "unpaired",
    "same records": "paired",
    "nearly the same scores": "paired",
    "other members": "unpaired",
    "opposite members": "opposed",
    "smaller second run": "unpaired",
}


class Setting(NamedTuple):
    """What is drawn: records in a run, the share of members, the AUC, the rate, how many runs, how they are made."""

    records: int
    share: float
    auc: float
    fpr: float
    runs: int
    kind: Kind


class Found(NamedTuple):
    """Share of comparisons that find some difference: by TPR, by AUC, and by intervals that do not overlap."""

    tpr: float
    auc: float
    overlap: float


def draw(setting: Setting, source: np.random.Generator, *, gap: float = 0.0) -> list[ScoredRecords]:
    """Runs of a setting; those after the first have a margin that is larger by ``gap``."""
    members = np.arange(setting.records) < round(setting.share * setting.records)
    margin = np.sqrt(2) * norm.ppf(setting.auc)  # of two normal distributions with this AUC
    common = source.normal(size=setting.records)
    found = []
    for number in range(setting.runs):
        small = number and setting.kind == "smaller second run"
        mask = members[::4] if small else members
        if number and setting.kind == "opposite members":
            mask = ~members
        elif number and setting.kind == "other members":
            mask = source.permutation(members)
        shared = _SHARED.get(setting.kind, 0.0)
        noise = source.normal(size=len(mask))
        noise = noise if small else np.sqrt(shared) * common + np.sqrt(1 - shared) * noise
        found.append((noise + (margin + gap * (number > 0)) * mask, mask))
    return found


def differs(runs: list[ScoredRecords], fpr: float, kind: Kind, *, draws: int, seed: int) -> Found:
    """Whether any run differs from the first, by each of the three rules."""
    first, others = runs[0], runs[1:]
    found = []
    for other in others:
        drawn = _RESAMPLING[kind]
        rate = tpr_difference(first, other, fpr=fpr, resampling=drawn, comparisons=len(others), draws=draws, seed=seed)
        area = auc_difference(first, other, resampling=drawn, comparisons=len(others))
        found.append((rate.shown, area.shown, _apart(first, other, fpr)))
    return Found(*np.any(found, axis=0).astype(float).tolist())


def _apart(first: ScoredRecords, other: ScoredRecords, fpr: float) -> bool:
    """The old rule: Clopper-Pearson intervals of both TPRs do not overlap."""
    one, two = (
        clopper_pearson(round(tpr_at_fpr(*run, fpr) * int(run[1].sum())), int(run[1].sum())) for run in (first, other)
    )
    return one.high < two.low or two.high < one.low


def measure(setting: Setting, *, repeats: int, draws: int = 1000, gap: float = 0.0, seed: int = 0) -> Found:
    """How often each rule finds a difference."""
    source = np.random.default_rng([seed, *map(ord, repr(setting))])
    found = [
        differs(draw(setting, source, gap=gap), setting.fpr, setting.kind, draws=draws, seed=n) for n in range(repeats)
    ]
    return Found(*np.mean(found, axis=0).tolist())


def coverage(setting: Setting, *, repeats: int, draws: int = 1000, gap: float = 0.0, seed: int = 0) -> float:
    """How often the interval of the difference of two runs holds the true difference of TPR at exactly this FPR."""
    source = np.random.default_rng([seed, *map(ord, repr(setting))])
    margin, threshold = np.sqrt(2) * norm.ppf(setting.auc), norm.isf(setting.fpr)
    truth = float(norm.sf(threshold - margin - gap) - norm.sf(threshold - margin))
    held = []
    for number in range(repeats):
        runs = draw(setting, source, gap=gap)
        found = tpr_difference(*runs, fpr=setting.fpr, resampling=_RESAMPLING[setting.kind], draws=draws, seed=number)
        held.append(found.interval.low <= truth <= found.interval.high)
    return float(np.mean(held))


def settings() -> Iterator[Setting]:
    """Every size, share, AUC and way of drawing with two runs; more runs for some of them."""
    for records in (500, 2000, 5000):
        for share in (0.1, 0.5, 0.9):
            for fpr in (0.01, 0.001):
                allowed = fpr * records * (1 - share)
                if allowed < (1.9 if fpr == 0.01 else 1.5):
                    continue
                for area in (0.5, 0.6, 0.8):
                    for kind in KINDS:
                        if kind == "smaller second run" and allowed < 8:
                            continue
                        if kind in ("independent", "same records") or share == 0.5:
                            yield Setting(records, share, area, fpr, 2, kind)
    for records in (500, 2000, 5000):
        for runs in (3, 5):
            for area in (0.5, 0.6, 0.8):
                for kind in KINDS[:2]:
                    yield Setting(records, 0.5, area, 0.01, runs, kind)


def main() -> None:
    """Measure all settings and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    began = time.perf_counter()
    rows = [(one, measure(one, repeats=options.repeats, draws=options.draws)) for one in settings()]
    error = np.sqrt(0.05 * 0.95 / options.repeats)
    lines = [
        "# Two runs that do not differ",
        "",
        f"`python benchmarks/statistics/compare.py --repeats {options.repeats} --draws {options.draws}`. "
        f"Binormal scores, "
        f"{options.repeats} comparisons per row, 95 % confidence: at most 5 % may find a difference. The standard "
        f"error of the simulation is {100 * error:.1f} points at 5 %.",
        "",
        "*Same records*: scores correlated by 0.7, resampled in pairs; *nearly the same scores*: 0.99. *Other "
        "members*: the same records, members drawn again at random, correlation 0.9; *opposite members*: members and "
        "non-members exchanged. *Smaller second run*: a quarter of the records. *Overlap* is the rule of before: the "
        "intervals of the two TPRs do not overlap. Of the very same run twice the difference is 0 and p = 1.",
        "",
        *_worst(rows),
        "",
        "| records | members | AUC | FPR | runs | drawn | TPR, in % | AUC, in % | overlap, in % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {_named(one)} | " + " | ".join(f"{100 * x:.1f}" for x in found) + " |" for one, found in rows]
    lines += [
        "",
        "## Runs that do differ",
        "",
        "The second run's margin is larger by *gap*; share of comparisons that find the difference, in %.",
        "",
        "| records | members | AUC | FPR | runs | drawn | gap | TPR | AUC | overlap |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for gap in (0.2, 0.5, 1.0):
        for kind in KINDS[:2]:
            for records in (2000, 5000):
                one = Setting(records, 0.5, 0.7, 0.01, 2, kind)
                found = measure(one, repeats=options.repeats, draws=options.draws, gap=gap)
                lines.append(f"| {_named(one)} | {gap:g} | " + " | ".join(f"{100 * x:.1f}" for x in found) + " |")
    lines += _coverages(options.repeats, options.draws)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{time.perf_counter() - began:.0f} s")


def _coverages(repeats: int, draws: int) -> list[str]:
    lines = [
        "",
        "## The interval of the difference",
        "",
        "How often it holds the true difference of TPR, in %; the second run's margin is larger by *gap*.",
        "",
        "| records | members | AUC | FPR | runs | drawn | gap | held |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for records in (500, 2000, 5000):
        for area, gap in ((0.5, 0.5), (0.6, 0.8), (0.8, 1.0)):
            for kind in KINDS[:2]:
                one = Setting(records, 0.5, area, 0.01, 2, kind)
                held = coverage(one, repeats=repeats, draws=draws, gap=gap)
                lines.append(f"| {_named(one)} | {gap:g} | {100 * held:.1f} |")
    return lines


def _worst(rows: list[tuple[Setting, Found]]) -> list[str]:
    said = []
    for name in ("tpr", "auc", "overlap"):
        shares = [getattr(found, name) for _, found in rows]
        said.append(f"*{name}*: {100 * np.mean(shares):.1f} % on average, at most {100 * max(shares):.1f} %")
    return [f"Over {len(rows)} settings: {'; '.join(said)}."]


def _named(one: Setting) -> str:
    return f"{one.records} | {100 * one.share:.0f} % | {one.auc:g} | {100 * one.fpr:g} % | {one.runs} | {one.kind}"


if __name__ == "__main__":
    main()
