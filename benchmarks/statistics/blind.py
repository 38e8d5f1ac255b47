"""Members that were not drawn at random: how often the blind baseline finds them, and how often it cries wolf.

Run: python benchmarks/statistics/blind.py [--draws 25]. Writes blind.md beside itself. With GLASSHOUSE_DATA set, Cora
is measured too.

Members are drawn at random, or by a rule that depends on the records. The target never saw an audited record, so that
whatever an attack finds is the rule and not a leak.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import random_array
from scipy.stats import mannwhitneyu
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from glasshouse.attacks import create
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.randomness import seed_for
from glasshouse.data import complementary_halves
from glasshouse.evaluation import Known, RandomMembers, check_random_members, clopper_pearson, judge_claim, run_attack
from glasshouse.evaluation.checks.random_members import member_edges
from glasshouse.evidence import Evidence
from glasshouse.graph import load_graph

Rule = Callable[[np.random.Generator], BoolArray]
SHARES = (0.1, 0.5, 0.9)


def empty_evidence(count: int) -> Evidence:
    """Answers of two shadow models that say nothing about the records."""
    losses = np.random.default_rng(0).exponential(size=(3, count))
    return Evidence(
        target_loss=losses[0], shadow_loss=losses[1:], shadow_members=complementary_halves(count, models=2, seed=0)
    )


def tested(known: Known, evidence: Evidence, members: BoolArray, draw: int) -> RandomMembers:
    """The test, where there are enough members and others for it."""
    drawn = check_random_members(known, evidence, members, seed=draw)
    assert drawn is not None
    return drawn


def some(count: int, share: float, random: np.random.Generator) -> BoolArray:
    """Random members, [N]."""
    return random.permutation(count) < share * count


def data(kind: str, count: int) -> Known:
    """Records of a kind; digits are at most 1 797."""
    random = np.random.default_rng(1)
    if kind == "digits":
        x, y = load_digits(return_X_y=True)
        rows = random.permutation(len(x))[:count]
        return Known(x=x[rows], labels=y[rows])
    labels = random.integers(5, size=count)
    if kind == "text":
        words = random_array((count, 20_000), density=0.002, rng=random, format="csr")
        return Known(x=words, labels=labels)
    return Known(x=random.standard_t(3, size=(count, int(kind.split()[0]))), labels=labels)


def false_alarms(kind: str, count: int, share: float, draws: int) -> int:
    """How many random draws are called not random."""
    known = data(kind, count)
    records = known.x.shape[0]
    evidence, start = empty_evidence(records), seed_for(2, kind, count, str(share))  # no two cells share a draw
    random = np.random.default_rng(start)
    return sum(tested(known, evidence, some(records, share, random), start + draw).found for draw in range(draws))


class Case(NamedTuple):
    """A draw that depends on the records."""

    name: str
    known: Known
    rule: Rule


def cases() -> Iterator[Case]:
    """Ordinary draws that are not random."""
    x, y = load_digits(return_X_y=True)
    known, count = Known(x=x, labels=y), len(x)
    yield Case("digits: first half of the file (other writers)", known, lambda _: np.arange(count) < count // 2)
    yield Case("digits: brighter ones twice as likely", known, lambda random: _likely(x.sum(axis=1), 0.35, random))
    yield Case("digits: brighter half", known, lambda _: x.sum(axis=1) > np.median(x.sum(axis=1)))
    yield Case(
        "digits: class 3 at 70 %, others 48 %", known, lambda random: random.random(count) < np.where(y == 3, 0.7, 0.48)
    )
    unequal = np.concatenate([np.flatnonzero(y == kind)[: 30 + 15 * kind] for kind in range(10)])
    few = Known(x=x[unequal], labels=y[unequal])
    yield Case("digits: 20 per class of unequal classes", few, lambda random: _per_class(y[unequal], 20, random))
    random = np.random.default_rng(3)
    drift = random.normal(size=(2000, 10)) + np.linspace(-0.5, 0.5, 2000)[:, None] * (np.arange(10) == 0)
    yield Case("table: earlier rows, one column drifts by 1 sd", Known(x=drift), lambda _: np.arange(2000) < 1000)
    wide = random.normal(size=(2000, 64))
    yield Case(
        "table of 64: depends on one column, AUC 0.60", Known(x=wide), lambda random: _likely(wide[:, 0], 0.36, random)
    )
    yield Case(
        "table of 64: depends on one column, AUC 0.55", Known(x=wide), lambda random: _likely(wide[:, 0], 0.18, random)
    )
    yield Case(
        "table of 5: middle of one column",
        Known(x=wide[:, :5]),
        lambda random: _likely(-np.abs(wide[:, 0]), 0.5, random),
    )
    patients = random.integers(200, size=1000)
    images = random.normal(size=(200, 20))[patients] + 0.3 * random.normal(size=(1000, 20))
    yield Case(
        "5 images per patient, patients at random", Known(x=images), lambda random: some(200, 0.5, random)[patients]
    )
    words = random_array((2000, 20_000), density=0.002, rng=random, format="csr")
    long = np.diff(words.indptr)
    yield Case("text: longer ones twice as likely", Known(x=words), lambda random: _likely(long, 0.35, random))


def power(case: Case, draws: int) -> tuple[float, float]:
    """Share of draws that are found, and the mean AUC of the blind baseline."""
    count = case.known.x.shape[0]
    evidence, random = empty_evidence(count), np.random.default_rng(4)
    found = [tested(case.known, evidence, case.rule(random), draw) for draw in range(draws)]
    return float(np.mean([one.found for one in found])), float(np.mean([one.blind.auc for one in found]))


class Missed(NamedTuple):
    """Shares of draws: found, and not found although figures of a model without a leak look like one."""

    found: float
    auc: float
    missed_auc: float
    epsilon: float
    missed_epsilon: float


ATTACKS = ("base", "lira", "rmia", "loss")


def mild(strength: float, *, digits: bool, draws: int, targets: int = 2, count: int = 900) -> Missed:
    """Members depend on the brightness of digits or on one column of ten; so do the other records of the target."""
    rows = [row for target in range(targets) for row in _mild(strength, digits, draws, count, target)]
    found, area, bound = np.array(rows, dtype=np.bool_).T
    return Missed(*(float(np.mean(part)) for part in (found, area, area & ~found, bound, bound & ~found)))


def _mild(strength: float, digits: bool, draws: int, count: int, target: int) -> Iterator[tuple[bool, bool, bool]]:
    random = np.random.default_rng([5, target])
    x, y = load_digits(return_X_y=True) if digits else _table(3 * count, random)
    order = random.permutation(len(x))
    x, y = x[order], y[order]
    kind = x.sum(axis=1) if digits else x[:, 0]
    own = np.arange(len(x)) >= count  # what the target may be trained on; the rest is audited
    trained = own & _likely(kind, strength, random)
    model = _fitted(x[trained], y[trained], target)
    x, y, kind = x[:count], y[:count], kind[:count]
    halves = complementary_halves(count, models=8, seed=target)
    shadows = [_losses(_fitted(x[half], y[half], 10 + number), x, y) for number, half in enumerate(halves)]
    evidence = Evidence(target_loss=_losses(model, x, y), shadow_loss=shadows, shadow_members=halves)
    outcomes = [run_attack(create(name), evidence, fprs=(0.01, 0.1)) for name in ATTACKS]
    practice = {one.attack.name: one.simulated.shares_right for one in outcomes if one.simulated is not None}
    for draw in range(draws):
        members = _likely(kind, strength, random)
        drawn = tested(Known(x=x, labels=y), evidence, members, draw)
        chances = [
            mannwhitneyu(one.scores[members], one.scores[~members], alternative="greater").pvalue for one in outcomes
        ]
        scores = dict(zip(ATTACKS, (one.scores for one in outcomes), strict=True))
        verdict = judge_claim(None, scores, members=members, practice=practice)
        yield drawn.found, min(chances) * len(chances) <= 0.05, verdict.pure > 0


def coverage(count: int, shift: float, draws: int) -> tuple[float, float]:
    """Mean AUC of the blind baseline over draws, and how often its interval holds that mean."""
    found = []
    evidence = empty_evidence(count)
    for draw in range(draws):
        random = np.random.default_rng([6, draw])
        members = some(count, 0.5, random)
        x = random.normal(size=(count, 10)) + shift * members[:, None] * (np.arange(10) < 2)
        blind = tested(Known(x=x), evidence, members, draw).blind
        found.append((blind.auc, *blind.interval))
    areas, low, high = np.array(found).T
    return float(areas.mean()), float(np.mean((low <= areas.mean()) & (areas.mean() <= high)))


def graphs(count: int = 2000) -> dict[str, IntArray]:
    """Edges [2, E] of graphs with few and with many hubs."""
    random = np.random.default_rng(7)
    ends = [0, 1]
    for node in range(2, count):  # each node joins two others, chosen by their degree: scale-free
        ends += [node, ends[random.integers(len(ends))], node, ends[random.integers(len(ends))]]
    star = np.stack([np.zeros(count - 1, dtype=np.int64), np.arange(1, count)])
    ring = np.stack([np.arange(count), (np.arange(count) + 1) % count])
    return {
        "scale-free": np.array(ends).reshape(-1, 2).T,
        "random": random.integers(count, size=(2, 3 * count)),
        "ring": ring,
        "five stars": np.hstack([star[:, number::5] * [[0], [1]] + [[number], [0]] for number in range(5)]),
    }


def citations() -> dict[str, IntArray]:
    """The edges of Cora, where real data sets are at hand."""
    return {"Cora": load_graph("cora").edge_index.numpy()} if os.environ.get("GLASSHOUSE_DATA") else {}


def snowball(pairs: IntArray, count: int, share: float, random: np.random.Generator) -> BoolArray:
    """Nodes in waves from a random one, until there are enough; the last wave is cut at random."""
    both = np.hstack([pairs, pairs[::-1]])
    inside = np.zeros(count, dtype=np.bool_)
    while (missing := round(share * count) - int(inside.sum())) > 0:
        wave = np.setdiff1d(both[1][inside[both[0]]], np.flatnonzero(inside))
        wave = wave if len(wave) else random.choice(np.flatnonzero(~inside), size=1)
        inside[random.permutation(wave)[:missing]] = True
    return inside


def alarms_on_edges(pairs: IntArray, count: int, share: float, draws: int, *, balls: bool) -> float:
    """Share of draws, random or by snowball, with a p-value of 0.5 % or less."""
    random = np.random.default_rng(8)
    drawn = [snowball(pairs, count, share, random) if balls else some(count, share, random) for _ in range(draws)]
    found = [member_edges(pairs, one, seed=draw) for draw, one in enumerate(drawn)]
    return float(np.mean([one is not None and one.p_value <= 0.005 for one in found]))


def seconds(count: int, width: int) -> float:
    """How long the test takes."""
    random = np.random.default_rng(9)
    known, evidence = Known(x=random.normal(size=(count, width)).astype(np.float32)), empty_evidence(count)
    began = time.perf_counter()
    tested(known, evidence, some(count, 0.5, random), 0)
    return time.perf_counter() - began


def _likely(values: FloatArray, strength: float, random: np.random.Generator) -> BoolArray:
    standard = (values - values.mean()) / values.std()
    return np.asarray(random.random(len(values)) < 1 / (1 + np.exp(-strength * standard)))


def _per_class(labels: IntArray, each: int, random: np.random.Generator) -> BoolArray:
    chosen = [random.permutation(np.flatnonzero(labels == kind))[:each] for kind in np.unique(labels)]
    return np.isin(np.arange(len(labels)), np.concatenate(chosen))


def _table(count: int, random: np.random.Generator) -> tuple[FloatArray, IntArray]:
    x = random.normal(size=(count, 10))
    return x, (random.random(count) < 1 / (1 + np.exp(-2 * x @ random.normal(size=10)))).astype(np.int64)


def _fitted(x: FloatArray, y: IntArray, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not meant to converge
        return MLPClassifier((32,), max_iter=40, learning_rate_init=0.01, random_state=seed).fit(x, y)


def _losses(model: Any, x: FloatArray, y: IntArray) -> FloatArray:
    return np.asarray(-np.log(np.clip(model.predict_proba(x)[np.arange(len(x)), y], 1e-12, 1.0)))


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _alarm_lines(draws: int) -> Iterator[str]:
    yield "| records | N | 10 % members | 50 % | 90 % |"
    yield "| --- | --- | --- | --- | --- |"
    alarms = runs = 0
    for kind in ("digits", "5 columns", "64 columns", "1000 columns", "text"):
        for count in (200, 1000, 5000):
            if kind == "digits" and count > 1797:
                continue
            times = max(1, 4 * draws * 200 // count) if count < 5000 else max(1, draws // 5)
            found = [false_alarms(kind, count, share, times) for share in SHARES]
            alarms, runs = alarms + sum(found), runs + times * len(SHARES)
            yield f"| {kind} | {count} | " + " | ".join(f"{one} of {times}" for one in found) + " |"
    low, high = clopper_pearson(alarms, runs)
    yield ""
    rate = _percent(alarms / runs)
    yield f"Together {alarms} of {runs}: {rate} %, 95 % interval {_percent(low)} to {_percent(high)} %."


def main() -> None:
    """Measure everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=25)
    draws = parser.parse_args().draws
    few = max(2, draws // 5)
    lines = [
        "# Members that were not drawn at random",
        "",
        f"`python benchmarks/statistics/blind.py --draws {draws}`; one core.",
        "",
        "The blind baseline predicts members from features, labels and the answers of the shadow models. It alarms at",
        "p ≤ 1 %. Then the report warns first, and ε is withheld.",
        "",
        "## False alarms: random members",
        "",
        *_alarm_lines(draws),
        "",
        f"## Power: draws that are not random ({few} draws each)",
        "",
        "| draw | found, % | blind AUC |",
        "| --- | --- | --- |",
    ]
    for case in cases():
        found, area = power(case, few)
        lines.append(f"| {case.name} | {_percent(found)} | {area:.3f} |")
    lines += [
        "",
        "## What is missed: weak dependence, and a model that never saw an audited record",
        "",
        f"900 records; attacks {', '.join(ATTACKS)}; members are drawn with log-odds = strength × standardised column,",
        f"the target is trained on other records that were drawn in the same way. {2 * draws} draws each, in percent.",
        "“p ≤ 5 %” is a rank test of the scores of members and others, corrected for four attacks.",
        "",
        "| records | strength | found | p ≤ 5 % | p ≤ 5 % and not found | ε > 0 | ε > 0 and not found |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for digits, name in ((True, "digits, brightness"), (False, "table, one column of ten")):
        for strength in (0.0, 0.1, 0.2, 0.4, 0.8):
            row = " | ".join(map(_percent, mild(strength, digits=digits, draws=draws)))
            lines.append(f"| {name} | {strength:g} | {row} |")
    lines += [
        "",
        f"## Interval of the blind AUC ({draws} draws)",
        "",
        "| N | mean AUC | covers it, % |",
        "| --- | --- | --- |",
    ]
    for count in (400, 2000):
        for shift in (0.0, 0.3, 1.0):
            mean, covered = coverage(count, shift, draws)
            lines.append(f"| {count} | {mean:.3f} | {_percent(covered)} |")
    lines += [
        "",
        f"## Edges: random members and snowballs, p ≤ 0.5 % (percent of {2 * draws} random draws, {few} snowballs)",
        "",
        "| graph | random 10 % | random 50 % | random 90 % | snowball 10 % | snowball 50 % |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, pairs in (graphs() | citations()).items():
        count = int(pairs.max()) + 1
        shown = [alarms_on_edges(pairs, count, share, 2 * draws, balls=False) for share in SHARES]
        shown += [alarms_on_edges(pairs, count, share, few, balls=True) for share in (0.1, 0.5)]
        lines.append(f"| {name} | " + " | ".join(map(_percent, shown)) + " |")
    lines += ["", "## Time", "", "| N | columns | seconds |", "| --- | --- | --- |"]
    for count, width in ((1000, 64), (5000, 64), (5000, 3072), (1_000_000, 20)):
        lines.append(f"| {count} | {width} | {seconds(count, width):.2f} |")
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
