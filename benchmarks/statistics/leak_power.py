"""The power of "any leak at all", and what the verdict is about: made-up margins, eight shadow models, default attacks.

Run: python benchmarks/statistics/leak_power.py [--runs 300] [--records 4000] [--cases none weak few]. Writes
leak_power.md beside itself.

Each record has a difficulty of its own, N(1, 1.5²), and each model answers about it with a margin that is Gaussian
around that. What training on a record adds to its margin is
- *none*: nothing;
- *weak*: 0.0709 standard deviations for every record, so that the true likelihood ratio has an AUC of 0.52;
- *few*: four standard deviations for 0.4 % of the records, and nothing for the others.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu, norm

from glasshouse import Evidence
from glasshouse.attacks.attack import chosen_attacks
from glasshouse.auditing.call import DEFAULT_ATTACKS
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import AttackOutcome, clopper_pearson, leak_test, verdict_attack
from glasshouse.evaluation.best import AttackCache
from glasshouse.evaluation.thresholds import simulated_figures, simulated_summaries

FPRS = (0.01, 0.001)
CASES = {"none": "no leak", "weak": "AUC of 0.52 for all records", "few": "0.4 % of the records exposed strongly"}
_SHIFT = float(np.sqrt(2) * norm.ppf(0.52))
_LEVEL = 0.05


def added(case: str, records: int, random: np.random.Generator) -> FloatArray:
    """[N] what training on each record adds to its margin."""
    if case == "few":
        return np.where(random.random(records) < 0.004, 4.0, 0.0)
    return np.full(records, _SHIFT if case == "weak" else 0.0)


def made(case: str, records: int, seed: int, *, models: int = 8) -> tuple[Evidence, BoolArray, FloatArray]:
    """Losses of a target and its shadow models, the target's members [N], and the true log likelihood ratio [N]."""
    random = np.random.default_rng([seed, *case.encode()])
    halves = [random.permutation(records) < records // 2 for _ in range(models // 2)]
    shadows = np.array([side for half in halves for side in (half, ~half)])
    members = random.permutation(records) < records // 2
    centre, more = random.normal(1.0, 1.5, records), added(case, records, random)
    margins = centre + random.normal(size=(models + 1, records)) + more * np.vstack([members, shadows])
    losses = np.logaddexp(0.0, -margins)
    evidence = Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=shadows)
    ratio = norm.logpdf(margins[0], centre + more) - norm.logpdf(margins[0], centre)
    return evidence, members, ratio


def outcomes_of(evidence: Evidence, attacks: Sequence[str], seed: int) -> dict[str, AttackOutcome]:
    """Every attack on the target and on simulated targets."""
    cache = AttackCache(evidence, progress=False)
    found = {}
    for name, attack in chosen_attacks(attacks, mode="online", prior=0.5, seed=seed, fprs=FPRS).items():
        tuned = cache.tuned(attack)
        simulated = simulated_figures(simulated_summaries(cache.simulated(attack), FPRS))
        found[name] = AttackOutcome(tuned, tuned.score(evidence), (), None, 0.0, simulated=simulated)
    return found


def once(case: str, records: int, seed: int, attacks: Sequence[str]) -> dict[str, bool | str]:
    """One made-up audit: which tests show a leak, and what its verdict is about."""
    evidence, members, ratio = made(case, records, seed)
    outcomes = outcomes_of(evidence, attacks, seed)
    found = verdict_attack(outcomes, members, fprs=FPRS, seed=seed)
    equal = leak_test({name: one.scores for name, one in outcomes.items()}, members, fprs=FPRS, seed=seed)

    def alone(scores: FloatArray) -> bool:
        return bool(mannwhitneyu(scores[members], scores[~members], alternative="greater").pvalue <= _LEVEL)

    low, high = found.metrics.auc_interval
    assert found.test.first is not None
    return {
        "most for the first figure": found.test.leak,
        "all figures alike": equal.leak,
        "rank test of base": alone(outcomes["base"].scores) if "base" in outcomes else False,
        "rank test of the likelihood ratio": alone(ratio) if case != "none" else False,
        "first": found.test.first[1],
        "replaced": found.way == "shown",
        "unshown": found.test.leak and found.test.adjusted[found.attack] > _LEVEL,
        "AUC misses 0.5": not low <= 0.5 <= high,
    }


def measure(
    case: str, *, runs: int, records: int, attacks: Sequence[str] = DEFAULT_ATTACKS
) -> Mapping[str, Counter[bool | str]]:
    """How often each thing was said, over so many made-up audits."""
    found: dict[str, Counter[bool | str]] = {}
    for seed in range(runs):
        for name, said in once(case, records, seed, attacks).items():
            found.setdefault(name, Counter())[said] += 1
        if seed % 50 == 49:
            print(case, seed + 1, {name: dict(count) for name, count in found.items()}, flush=True)
    return found


def share(count: int, runs: int) -> str:
    """In percent, with its 95 % interval."""
    low, high = clopper_pearson(count, runs)
    return f"{100 * count / runs:.1f} % <small>{100 * low:.1f}–{100 * high:.1f}</small>"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    given = parser.parse_args(arguments)
    found = {case: measure(case, runs=given.runs, records=given.records) for case in given.cases}
    columns = (
        "most for the first figure",
        "all figures alike",
        "rank test of base",
        "rank test of the likelihood ratio",
    )
    lines = [
        "# The power of “any leak at all”",
        "",
        f"`python benchmarks/statistics/leak_power.py --runs {given.runs} --records {given.records}`: "
        f"{given.records} records, "
        f"half of them members, eight shadow models, {', '.join(DEFAULT_ATTACKS)}. How often a leak is shown, with the "
        "95 % interval of that share. *Most for the first figure* is what audits do: 90 % of the error for the attack "
        "and figure that simulated targets rank first. *All figures alike* is the test of before. Without a leak "
        "5 % is nominal.",
        "",
        "| leak | " + " | ".join(columns) + " | first figure |",
        "| --- |" + " --- |" * (len(columns) + 1),
    ]
    for case, counts in found.items():
        cells = [
            "–" if case == "none" and name.startswith("rank test of the") else share(counts[name][True], given.runs)
            for name in columns
        ]
        first = ", ".join(f"{name} {count}" for name, count in sorted(counts["first"].items()))
        lines.append(f"| {CASES[case]} | {' | '.join(cells)} | {first} |")
    lines += [
        "",
        "## What the verdict is about",
        "",
        "*Replaced*: the leak was not shown by the attack that simulated targets rank first, so the one that shows it "
        "took its place. *Not shown by it*: a leak is shown, and none of the verdict attack's own figures shows it. "
        "*AUC misses 0.5*: the interval of the verdict attack's AUC does not hold 0.5; without a leak 5 % is nominal, "
        "in spite of the choice.",
        "",
        "| leak | replaced | not shown by it | AUC misses 0.5 |",
        "| --- | --- | --- | --- |",
    ]
    for case, counts in found.items():
        cells = [share(counts[name][True], given.runs) for name in ("replaced", "unshown", "AUC misses 0.5")]
        lines.append(f"| {CASES[case]} | {' | '.join(cells)} |")
    Path(__file__).with_suffix(".md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
