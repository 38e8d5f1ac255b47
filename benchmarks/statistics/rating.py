"""Does the rating hold? It agrees with the gate, does not fall with more records, and keeps its error without a leak.

Run: python benchmarks/statistics/rating.py [--runs 1000]. Writes rating.md beside itself (20 minutes of one core).

Scores are drawn here, from distributions whose ROC is known, and become losses that the attack ``loss`` gives back;
nothing of the report is used to make them. A run is rated by its page, and judged by the gate from what it saves.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse import Evaluation, Evidence, PrivacyClaim, audit_evidence
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import judge_claim, roc
from glasshouse.evaluation.groups import group_leaks, worst_cell
from glasshouse.evaluation.intervals import ratio_bound
from glasshouse.evaluation.privacy.claim import LOOK_ERROR, rated_epsilon
from glasshouse.report import Summary
from glasshouse.report.decision.rating import Rating, rating_of
from glasshouse.report.json_io import metrics_json, run_json, summary_from
from glasshouse.report.policy import Limit, Policy, judge

Scores = Callable[[np.random.Generator, BoolArray], FloatArray]  # of records that are members or not, [N] or [K, N]


def normal(shift: float) -> Scores:
    """Two normal distributions; with a shift, the ratio of TPR to FPR grows without a limit where the FPR falls."""
    return lambda random, members: random.normal(size=members.shape) + shift * members


def at_the_limit(random: np.random.Generator, members: BoolArray) -> FloatArray:
    """The strongest leak that keeps the factor of five on both sides: one of six answers is the wrong way round."""
    high = (random.random(members.shape) < 1 / 6) ^ members
    return np.asarray(random.random(members.shape) + high)


def tied(random: np.random.Generator, members: BoolArray) -> FloatArray:
    """A model that is right about all members and about 60 % of the others: two scores."""
    return np.where(members | (random.random(members.shape) < 0.6), 1.0, 0.0)


LEAKS: dict[str, Scores] = {
    "none": normal(0.0),
    "normal, AUC 0.56": normal(0.2),
    "normal, AUC 0.64": normal(0.5),
    "normal, AUC 0.76": normal(1.0),
    "normal, AUC 0.92": normal(2.0),
    "perfect": normal(20.0),
    "at the limit": at_the_limit,
    "tied": tied,
}
SIZES = (60, 120, 200, 300, 600, 1500)
_LEVELS = {"none": 0, "unknown": 0, "some": 1, "high": 2}


def audited(
    leak: Scores, records: int, *, seed: int, models: int = 8, rare: int = 0, unknown: bool = False, **options: Any
) -> Summary:
    """An audit of made-up losses, with a class and two columns that say nothing.

    Args:
        leak: draws scores.
        records: how many.
        seed: of everything.
        models: how many shadow models.
        rare: this many records have a class of their own and leak perfectly, whatever the others do.
        unknown: leave out who trained the target.
        options: of `Evaluation`.
    """
    random = np.random.default_rng(seed)
    shadows = complementary_halves(records, models=models, seed=seed) if models else np.zeros((0, records), dtype=bool)
    members = np.vstack([random.permutation(records) < records // 2, shadows])
    scores = leak(random, members)
    own = np.arange(records) < rare
    scores[:, own] = np.where(members[:, own], scores.max() + 1, scores.min() - 1) + 0.1 * random.random(
        (models + 1, rare)
    )
    losses = 30 - scores  # not below 0
    evidence = Evidence(
        target_loss=losses[0],
        shadow_loss=losses[1:],
        shadow_members=members[1:],
        labels=np.where(own, 2, random.integers(2, size=records)),
    )
    columns = {name: random.integers(groups, size=records).astype(np.str_) for name, groups in (("a", 2), ("b", 6))}
    evaluation = Evaluation(**{"groups": columns, **options})
    told = None if unknown else members[0]
    return audit_evidence(evidence, members=told, attacks=["loss"], evaluation=evaluation, seed=seed).summary()


def of_any_kind(seed: int) -> tuple[Summary, Policy]:
    """A run of a random kind, also of those that say nothing, and a random policy."""
    random = np.random.default_rng([seed, 1])
    leak = LEAKS[str(random.choice(list(LEAKS)))]
    options: dict[str, Any] = {
        "models": int(random.choice([0, 4, 8, 8, 8, 8])),
        "rare": int(random.choice([0, 0, 0, 40])),
        "unknown": random.random() < 0.04,
    }
    if random.random() < 0.2:
        options["claim"] = PrivacyClaim(epsilon=float(random.choice([0.1, 1.0, 8.0])), delta=1e-5)
    summary = audited(leak, int(random.choice([60, 120, 250, 700, 1500])), seed=seed, **options)
    context = summary.context
    if random.random() < 0.04:
        context = dataclasses.replace(context, warnings=("Members and non-members look swapped.",))
    if random.random() < 0.05:
        context = dataclasses.replace(context, stored_records="KNeighborsClassifier keeps its training records")
    summary = dataclasses.replace(summary, context=context, mismatch=random.random() < 0.06)
    if summary.verdict_attack is not None and random.random() < 0.04:
        summary = dataclasses.replace(summary, verdict_attack=dataclasses.replace(summary.verdict_attack, leak=None))
    limits = (
        Limit(figure="auc", most=float(random.choice([0.55, 0.7, 1.0]))),
        Limit(figure="tpr", at_fpr=0.01, most=float(random.choice([0.05, 0.3]))),
        Limit(figure="tpr", group="worst", most=float(random.choice([0.1, 0.5]))),
        Limit(figure="epsilon", most=float(random.choice([0.5, 2.0]))),
    )
    end = random.choice(["upper", "estimate", "lower", "both"])
    return summary, Policy(limits=(limits[int(random.integers(len(limits)))],), end=str(end))  # type: ignore[arg-type]


def agrees(rating: Rating, code: int) -> bool:
    """Whether the word of a page and the exit code of the gate say the same."""
    unsure = any(sentence.startswith(("Too few records", "The sample is too small")) for sentence in rating.sentences)
    return code == {"high": 3, "unknown": 4}.get(rating.level, 4 if unsure else 0)


def agreement(runs: int, *, seed: int = 0) -> tuple[Counter[tuple[str, int]], int]:
    """How often each word of the page came with each exit code, and how often they did not agree."""
    found: Counter[tuple[str, int]] = Counter()
    wrong = 0
    for run in range(seed, seed + runs):
        summary, policy = of_any_kind(run)
        saved = summary_from(*json.loads(json.dumps([metrics_json(summary), run_json(summary)])))
        for one in (None, policy):
            rating, code = rating_of(summary, one), judge(saved, one).exit_code
            found[rating.word, code] += 1
            wrong += not agrees(rating, code)
    return found, wrong


def levels(leak: Scores, records: int, *, runs: int, **options: Any) -> tuple[float, float]:
    """The share of runs with a leak shown (rated "Some" or "High"), and of those rated "High"."""
    found = [_LEVELS[rating_of(audited(leak, records, seed=run, **options)).level] for run in range(runs)]
    return float(np.mean([one >= 1 for one in found])), float(np.mean([one == 2 for one in found]))


def inconclusive(leak: Scores, records: int, *, runs: int) -> Counter[tuple[str, ...]]:
    """Of runs of a strong leak, those that are not rated for it, by the reasons of this."""
    found: Counter[tuple[str, ...]] = Counter()
    for run in range(runs):
        summary = audited(leak, records, seed=run)
        if _LEVELS[rating_of(summary).level] == 0:
            found[tuple(sorted(summary.conclusion.reasons))] += 1
    return found


def lowered(runs: int, *, models: int, seed: int = 0) -> tuple[int, int]:
    """Each record once, and then 2, 4 and 8 times: the steps, and those to a lower rating.

    All proportions stay, also those of the noise. Copies tell who is a member without the model, so what is found about
    that is left out of the rating, and ε is not withheld for it.
    """
    steps = lower = 0
    for run in range(seed, seed + runs):
        random = np.random.default_rng([run, 2])
        records, leak = 2 * int(random.integers(20, 200)), normal(float(random.uniform(0, 3)))
        shadows = complementary_halves(records, models=models, seed=run) if models else np.zeros((0, records), bool)
        members = np.vstack([random.permutation(records) < records // 2, shadows])
        losses = 30 - leak(random, members)
        before: Rating | None = None
        for copies in (1, 2, 4, 8):
            more = [np.tile(one, (1, copies)) for one in (losses, members)]
            evidence = Evidence(target_loss=more[0][0], shadow_loss=more[0][1:], shadow_members=more[1][1:])
            result = audit_evidence(evidence, members=more[1][0], attacks=["loss"])
            found, simulated = result.outcomes["loss"], result.outcomes["loss"].simulated
            told: dict[str, Any] = {
                "context": dataclasses.replace(result.context, warnings=()),
                "random_members": None,
                "privacy": judge_claim(
                    None,
                    {"loss": found.scores},
                    members=more[1][0],
                    practice={} if simulated is None else {"loss": simulated.shares_right},
                    leak=bool(result.verdict_attack and result.verdict_attack.test.leak),
                ),
            }
            rating = rating_of(dataclasses.replace(result, **told).summary())
            if before is not None:
                steps, lower = steps + 1, lower + (_LEVELS[rating.level] < _LEVELS[before.level])
            before = rating
    return steps, lower


def four_times(random: np.random.Generator, members: BoolArray) -> FloatArray:
    """Of members 40 % have one of the highest scores, of others 10 %: a ratio of 4 above one threshold."""
    return np.asarray(random.random(members.shape) + (random.random(members.shape) < np.where(members, 0.4, 0.1)))


# the largest ratio of the rates at any threshold, by hand
RATIOS: dict[str, tuple[Scores, float]] = {
    "none": (normal(0.0), 1.0),
    "four times": (four_times, 4.0),
    "at the limit": (at_the_limit, 5.0),
    "at the limit, in tenths": (lambda random, members: np.floor(10 * at_the_limit(random, members)), 5.0),
}


def above_the_truth(leak: Scores, truth: float, records: int, share: float, *, runs: int) -> tuple[float, float]:
    """How often two bounds are above the ratio that the scores were drawn with: at an error of 5 %, and a rating's."""
    random = np.random.default_rng([records, int(100 * share)])
    wrong = np.zeros(2)
    for _ in range(runs):
        members = random.permutation(records) < share * records
        scores = leak(random, members)
        wrong[0] += ratio_bound(roc(scores, members), error=0.05) > truth
        wrong[1] += rated_epsilon({"loss": scores}, members, practice={}) > np.log(truth)
    return float(wrong[0]) / runs, float(wrong[1]) / runs


def group_alarms(records: int, tpr: float, fpr: float, *, runs: int, seed: int = 0) -> tuple[float, float, float]:
    """The share of runs in which a group differs, and in which one is the most exposed, if all are flagged alike.

    The third is how often the intervals of the shares of all groups hold. There are ten groups in one column, and three
    in another.
    """
    random = np.random.default_rng([seed, records])
    differ = worst = held = 0
    for _ in range(runs):
        members = random.random(records) < 0.5
        called = random.random(records) < np.where(members, tpr, fpr)
        columns = {name: random.integers(many, size=records).astype(np.str_) for name, many in (("a", 10), ("b", 3))}
        found = group_leaks(called.astype(float), members, columns, called=called)
        differ += any(one.singled_out for one in found)
        worst += worst_cell(called, members, columns) is not None
        held += all(one.tpr_interval.low <= tpr <= one.tpr_interval.high for one in found if one.tpr_interval)
    return differ / runs, worst / runs, held / runs


def _group_lines(runs: int) -> Iterator[str]:
    yield "| records | TPR | FPR | a group differs | one is the most exposed | all intervals hold |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for records, (tpr, fpr) in itertools.product((500, 2000), ((0.01, 0.01), (0.05, 0.01), (0.3, 0.01), (0.9, 0.1))):
        shares = group_alarms(records, tpr, fpr, runs=runs)
        yield f"| {records} | {tpr} | {fpr} | " + " | ".join(f"{100 * one:.1f}" for one in shares) + " |"


def _agreement_lines(runs: int) -> Iterator[str]:
    found, wrong = agreement(runs)
    yield f"{runs} runs, each by the usual policy and by one of its own: {wrong} of {2 * runs} do not agree."
    yield ""
    yield "| word on the page | exit code | judgements |"
    yield "| --- | --- | --- |"
    for (word, code), count in sorted(found.items()):
        yield f"| {word} | {code} | {count} |"


def _level_lines(runs: int) -> Iterator[str]:
    yield "| leak | " + " | ".join(f"{size} records" for size in SIZES) + " |"
    yield "| --- |" + " --- |" * len(SIZES)
    kinds: list[tuple[str, Scores, dict[str, Any]]] = [(name, leak, {}) for name, leak in LEAKS.items()]
    kinds.append(("none, but 40 rare records", LEAKS["none"], {"rare": 40}))
    for name, leak, options in kinds:
        cells = []
        for size in SIZES:
            shown, high = levels(leak, size, runs=5 * runs if name == "none" else runs, **options)
            cells.append(f"{100 * shown:.0f} · {100 * high:.0f}")
        yield f"| {name} | " + " | ".join(cells) + " |"
        print(name, cells, flush=True)


def _lower_lines(runs: int) -> Iterator[str]:
    strong = ("perfect", "tied", "normal, AUC 0.92")
    reasons = sum((inconclusive(LEAKS[name], size, runs=runs) for name in strong for size in SIZES), Counter[Any]())
    yield f"{len(strong) * len(SIZES) * runs} runs of strong leaks ({', '.join(strong)}), not rated “Some” or “High”:"
    yield ""
    yield from [f"- {count}: {', '.join(reason) or 'no leak shown'}" for reason, count in sorted(reasons.items())]
    yield ""
    yield "| shadow models | steps to 2, 4 and 8 times the same records | lower |"
    yield "| --- | --- | --- |"
    for models in (0, 8):
        yield f"| {models} | " + " | ".join(str(one) for one in lowered(runs, models=models)) + " |"


def _ratio_lines(runs: int) -> Iterator[str]:
    cases = list(itertools.product((40, 200, 1000, 4000), (0.5, 0.1)))
    yield (
        "| scores | the largest ratio | "
        + " | ".join(f"{records}, {share:.0%} members" for records, share in cases)
        + " |"
    )
    yield "| --- | --- |" + " --- |" * len(cases)
    for name, (leak, truth) in RATIOS.items():
        wrong = [above_the_truth(leak, truth, *case, runs=runs) for case in cases]
        cells = [f"{100 * one:.1f} · {100 * rated:.1f}" for one, rated in wrong]
        yield f"| {name} | {truth:g} | " + " | ".join(cells) + " |"


def main() -> None:
    """Measure everything and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", help="beginning of a title: print that part, and keep nothing")
    given = parser.parse_args()
    runs = given.runs
    lines = ["# Does the rating hold?", "", f"`python benchmarks/statistics/rating.py --runs {runs}`"]
    for title, about, rows in (
        (
            "Page and gate",
            "Exit codes: 0 no limit is exceeded, 3 one is, 4 inconclusive. “Some exposure” and “No leak shown” end "
            "with 4 where the page says that there are too few records to say whether the limit is exceeded.",
            _agreement_lines(runs),
        ),
        (
            "More records of the same leak",
            "Each cell: runs in % in which a leak is shown (“Some” or “High”; without a leak 5 or less are wanted) · "
            f"in which it is “High”. {runs // 25} runs per cell, {runs // 5} without a leak. “At the limit”: the TPR "
            "is five times the FPR, which does not exceed it, so that 5 or less may be “High”. The rare records leak "
            "perfectly, half of them are members, and with many others they are few. A run that is inconclusive counts "
            "as neither; about one in a hundred is, since chance makes its members look as if they were not drawn at "
            "random.",
            _level_lines(runs // 25),
        ),
        (
            "Why a rating can be lower with more records",
            "The test whether members were drawn at random raises a false alarm in 1 % of runs of any size, by its "
            "level; such a run is inconclusive. Otherwise the same proportions in more records do not lower the "
            "judgement, as `tests/report/test_monotone.py` tests.",
            _lower_lines(runs // 25),
        ),
        (
            "The factor at every threshold",
            f"How often, in %, a bound on the largest ratio of the rates is above the truth, which is known here: "
            f"`ratio_bound` with an error of 5 % · the bound on ε that a rating uses, with {100 * LOOK_ERROR:g} %; "
            f"{runs} runs.",
            _ratio_lines(runs),
        ),
        (
            "Groups that leak alike",
            f"Runs in % in which any group is said to differ, and in which any group or combination of two is named as "
            f"the most exposed (wanted: 5 or less each), and in which all intervals hold (wanted: 95); {runs} runs.",
            _group_lines(runs),
        ),
    ):
        if given.only and not title.startswith(given.only):
            continue
        lines += ["", f"## {title}", "", about, "", *rows]
        print(title, flush=True)
    if given.only:
        print("\n".join(lines))
        return
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
