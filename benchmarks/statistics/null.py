"""The null lab: how often each attack and each figure cries wolf on data without a leak.

Run: python benchmarks/statistics/null.py [--runs 200] [--jobs 2] [--sizes 500 2000 5000] [--graphs 200 400 800].
Writes null.md beside itself.

Without a leak, because
- *noise*: losses of all models do not depend on who was a member;
- *untrained*: the target and the shadow models are fresh networks;
- *never seen*: the target was trained on other records of the same kind; the shadow models leak as usual;
- *private*: all models are regressions with so much noise that ε is about 0.01;
- *graph, never seen*: the target was trained on another graph from the same generator.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Evidence, Population, SklearnTrainer, audit, audit_evidence
from glasshouse.auditing.result import AuditResult
from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import clopper_pearson
from glasshouse.report import compare
from glasshouse.training import mlp

SIX = ("base", "lira", "rmia", "loss", "calibration", "bavaria")
NINE = (*SIX, "shrunk-lira", "regressed", "attack-r")
ON_GRAPHS = ("base", "lira", "rmia", "classifier", "g-classifier", "g-base")
_EPSILON = 0.01
_MODELS = 8


@dataclass(frozen=True)
class Case:
    """One kind of data without a leak.

    Args:
        kind: which.
        records: how many.
        share: of members.
        attacks: that are run.
    """

    kind: str
    records: int
    share: float = 0.5
    attacks: tuple[str, ...] = SIX

    @property
    def on_graph(self) -> bool:
        """Whether it is about a graph, which takes longer."""
        return self.kind.startswith("graph")


def noise(case: Case, random: np.random.Generator) -> AuditResult:
    """Losses that do not depend on membership; each record has its own difficulty."""
    count = case.records
    difficulty = random.normal(1.0, 1.5, count)
    losses = np.logaddexp(0.0, -(difficulty + random.normal(size=(_MODELS + 1, count))))
    evidence = Evidence(
        target_loss=losses[0],
        shadow_loss=losses[1:],
        shadow_members=complementary_halves(count, models=_MODELS, seed=int(random.integers(1 << 30))),
        labels=random.integers(4, size=count),
    )
    return audit_evidence(evidence, members=drawn(count, case.share, random), attacks=case.attacks, progress=False)


def untrained(case: Case, random: np.random.Generator) -> AuditResult:
    """Fresh networks."""
    import torch

    def fresh(population: Population, members: BoolArray, seed: int) -> Any:
        torch.manual_seed(seed)
        return mlp(8, 2)()

    return with_models(case, random, fresh)


def never_seen(case: Case, random: np.random.Generator) -> AuditResult:
    """A tree that was trained on other records of the same kind."""
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier(min_samples_leaf=3))
    others = table(case.records, random)
    target = trainer(others, np.ones(case.records, dtype=np.bool_), 0)
    return with_models(case, random, trainer, model=target)


def private(case: Case, random: np.random.Generator) -> AuditResult:
    """Logistic regressions with so much noise in their weights that ε is about 0.01 at δ = 1e-5."""

    def noisy(population: Population, members: BoolArray, seed: int) -> Any:
        x, y = population.x[members], population.y[members]
        x = x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))  # rows of norm 1: a bounded sensitivity
        strength = 1.0  # of the penalty λ, in λ/2 |w|²: the weights move by at most 2/λ if a record is left out
        fitted = LogisticRegression(C=1 / strength, fit_intercept=False, max_iter=500).fit(x, y)
        scale = 2 / strength * np.sqrt(2 * np.log(1.25 / 1e-5)) / _EPSILON
        fitted.coef_ = fitted.coef_ + np.random.default_rng(seed).normal(0.0, scale, fitted.coef_.shape)
        return lambda some: np.stack([np.zeros(len(some)), 1e-3 * np.asarray(some) @ fitted.coef_[0]], axis=1)

    return with_models(case, random, noisy)


def graph_untrained(case: Case, random: np.random.Generator) -> AuditResult:
    """Fresh graph neural networks."""
    from glasshouse.graph import GNNTrainer, citation_graph
    from glasshouse.graph import audit as graph_audit

    data = citation_graph(nodes=case.records, classes=3, seed=int(random.integers(1 << 30)))
    trainer = GNNTrainer(hidden=8, device="cpu")

    def fresh(graph: Any, members: BoolArray, seed: int) -> Any:
        import torch

        torch.manual_seed(seed)
        return trainer.untrained(graph)

    seed = int(random.integers(1 << 30))
    return graph_audit(data, trainer=fresh, attacks=case.attacks, shadows=_MODELS, seed=seed, progress=False)


def graph_never_seen(case: Case, random: np.random.Generator) -> AuditResult:
    """A network that was trained on another graph of the same kind."""
    from glasshouse.graph import GNNTrainer, citation_graph
    from glasshouse.graph import audit as graph_audit

    data = citation_graph(nodes=case.records, classes=3, seed=int(random.integers(1 << 30)))
    trainer = GNNTrainer(hidden=8, epochs=30, device="cpu")
    other = citation_graph(nodes=case.records, classes=3, seed=int(random.integers(1 << 30)))
    target = trainer(other, drawn(case.records, 0.5, random), int(random.integers(1 << 30)))
    return graph_audit(
        data,
        model=target,
        members=drawn(case.records, case.share, random),
        trainer=trainer,
        attacks=case.attacks,
        shadows=_MODELS,
        seed=int(random.integers(1 << 30)),
        progress=False,
    )


KINDS: Mapping[str, Callable[[Case, np.random.Generator], AuditResult]] = {
    "noise": noise,
    "untrained": untrained,
    "never seen": never_seen,
    "private": private,
    "graph, untrained": graph_untrained,
    "graph, never seen": graph_never_seen,
}


def drawn(count: int, share: float, random: np.random.Generator) -> BoolArray:
    """Members [N] at random."""
    return np.asarray(random.permutation(count) < round(share * count))


def table(count: int, random: np.random.Generator) -> Population:
    """Records with two classes, of which a model learns something."""
    x = random.normal(size=(count, 8))
    return Population(x, (x[:, 0] + x[:, 1] + random.normal(size=count) > 0).astype(int))


def with_models(case: Case, random: np.random.Generator, trainer: Any, model: Any = None) -> AuditResult:
    """An audit with trained models, of random members."""
    return audit(
        table(case.records, random),
        model=model,
        members=drawn(case.records, case.share, random),
        trainer=trainer,
        attacks=case.attacks,
        shadows=_MODELS,
        seed=int(random.integers(1 << 30)),
        progress=False,
    )


def alarms(result: AuditResult) -> dict[str, bool]:
    """Every way in which an audit can say "leak", and whether this one does."""
    summary = result.summary()
    assert summary.verdict_attack is not None
    assert summary.privacy is not None
    privacy = summary.privacy
    bounds = (privacy.pure, privacy.epsilon, privacy.gaussian.epsilon, privacy.independent.epsilon)
    said = {
        "verdict": summary.verdict_attack.leak is True,
        "ε > 0": max(bounds) > 0,
        "a group": any(group.singled_out for group in summary.groups),
    }
    said["any of these"] = any(said.values())
    said["“not drawn at random”"] = summary.random_members is not None and summary.random_members.found
    best = summary.attack(summary.strongest)
    said["a list, if no member were known"] = (best.listed or 0) > 0
    return said


def figures(result: AuditResult) -> dict[str, dict[str, bool]]:
    """By attack: whether its own figures, with their 95 % intervals and without any correction, are above chance."""
    found = {}
    for attack in result.summary().attacks:
        assert attack.metrics is not None
        above = {"AUC": attack.metrics.auc_interval.low > 0.5}
        for rate in attack.metrics.rates:
            above[f"TPR at {100 * rate.wanted:g} %"] = rate.reached and rate.tpr_interval.low > rate.wanted
        for one in attack.thresholds:
            if not one.first and one.false_alarms is not None:
                inside = one.interval.low - 1e-12 <= one.false_alarms <= one.interval.high + 1e-12
                above[f"threshold for {100 * one.wanted:g} % off"] = not inside
        found[attack.name] = above
    return found


@dataclass(frozen=True)
class Counts:
    """What one or more runs said: each flag with how often it was raised, and how often it could have been."""

    run: Counter[str]
    own: Counter[tuple[str, str]]
    asked: Counter[tuple[str, str]]
    runs: int
    compared: int
    differ: int


def once(case: Case, seed: int) -> Counts:
    """Two audits without a leak, and their comparison."""
    random = np.random.default_rng([seed, zlib.crc32(repr(case).encode())])
    results = [KINDS[case.kind](case, random) for _ in range(2)]
    run, own, asked = Counter[str](), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for result in results:
        run.update(name for name, said in alarms(result).items() if said)
        for attack, flags in figures(result).items():
            asked.update((attack, name) for name in flags)
            own.update((attack, name) for name, said in flags.items() if said)
    comparison = compare({"first": results[0], "second": results[1]})
    differs = any(one.tpr_difference is not None and one.tpr_difference.shown for one in comparison.runs)
    return Counts(run, own, asked, 2, 1, int(differs))


def measure(cases: Sequence[Case], *, runs: int, graph_runs: int, jobs: int) -> dict[Case, Counts]:
    """All cases, each in so many audits, over several processes."""
    found: dict[Case, Counts] = {}
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        tasks = {
            case: [pool.submit(once, case, seed) for seed in range(-(-(graph_runs if case.on_graph else runs) // 2))]
            for case in cases
        }
        for case, futures in tasks.items():
            parts = [future.result() for future in futures]
            found[case] = Counts(
                sum((part.run for part in parts), Counter()),
                sum((part.own for part in parts), Counter()),
                sum((part.asked for part in parts), Counter()),
                *(sum(getattr(part, name) for part in parts) for name in ("runs", "compared", "differ")),
            )
            print(case, dict(found[case].run), f"compare {found[case].differ}/{found[case].compared}", flush=True)
    return found


def cases_of(sizes: Sequence[int], graphs: Sequence[int]) -> list[Case]:
    """What is measured."""
    first, middle = sizes[0], sizes[len(sizes) // 2]
    return [
        *(Case("noise", size) for size in sizes),
        *(Case("noise", middle, share) for share in (0.1, 0.9)),
        Case("noise", middle, attacks=NINE),
        *(Case("noise", middle, share, NINE) for share in (0.1, 0.9)),
        *(Case(kind, size) for kind in ("untrained", "never seen", "private") for size in sizes),
        Case("never seen", first, attacks=NINE),
        *(Case(kind, size, attacks=ON_GRAPHS) for kind in ("graph, untrained", "graph, never seen") for size in graphs),
    ]


def share(count: int, total: int) -> str:
    """In percent, with what 95 % of repetitions would give."""
    if not total:
        return "–"
    low, high = clopper_pearson(count, total)
    return f"{100 * count / total:.1f} % <small>{100 * low:.1f}–{100 * high:.1f}</small>"


def written(found: Mapping[Case, Counts], command: str) -> str:
    """The page."""
    flags = ("verdict", "ε > 0", "a group", "any of these", "“not drawn at random”", "a list, if no member were known")
    lines = [
        "# The null lab: how often an audit cries wolf",
        "",
        f"`{command}`. No case has a leak, so everything here is a false alarm. Small figures are 95 % intervals of "
        "the share, from the number of runs. *Compare* has half as many runs, in pairs. *A list*: the one at 10 % FDR "
        "of the attack that the verdict is about. The report shows it only where a leak is shown; without known "
        "members there is no such test.",
        "",
        "| no leak because | records | members | attacks | runs | " + " | ".join(flags) + " | compare |",
        "| --- | --- | --- | --- | --- |" + " --- |" * (len(flags) + 1),
    ]
    for case, counts in found.items():
        cells = [share(counts.run[flag], counts.runs) for flag in flags]
        lines.append(
            f"| {case.kind} | {case.records} | {100 * case.share:g} % | {len(case.attacks)} | {counts.runs} | "
            + " | ".join([*cells, share(counts.differ, counts.compared)])
            + " |"
        )
    whole = Counter[str]()
    for counts in found.values():
        whole.update(counts.run)
    runs = sum(counts.runs for counts in found.values())
    lines += ["", f"All cases together, {runs} runs: any of these {share(whole['any of these'], runs)}.", ""]
    lines += [
        "## Each attack by itself",
        "",
        "How often the lower end of an attack's own 95 % interval is above chance (2.5 % is what an exact interval "
        "gives; no correction for several attacks, which is what the verdict is for), and how often the realised rate "
        "of its threshold is outside the stated interval (5 % is nominal). All cases together; withheld thresholds do "
        "not count.",
        "",
    ]
    names = sorted({name for counts in found.values() for _, name in counts.asked})
    lines += ["| attack | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for attack in sorted({attack for counts in found.values() for attack, _ in counts.asked}):
        sums = [
            (sum(c.own[attack, name] for c in found.values()), sum(c.asked[attack, name] for c in found.values()))
            for name in names
        ]
        lines.append(f"| {attack} | " + " | ".join(share(*pair) for pair in sums) + " |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--graph-runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 5000])
    parser.add_argument("--graphs", type=int, nargs="+", default=[200, 400, 800])
    given = parser.parse_args(arguments)
    began = time.perf_counter()
    found = measure(cases_of(given.sizes, given.graphs), runs=given.runs, graph_runs=given.graph_runs, jobs=given.jobs)
    sizes, graphs = (" ".join(map(str, some)) for some in (given.sizes, given.graphs))
    runs = f"--runs {given.runs} --graph-runs {given.graph_runs}"
    command = f"python benchmarks/statistics/null.py {runs} --sizes {sizes} --graphs {graphs}"
    page = written(found, command) + f"\n{time.perf_counter() - began:.0f} seconds with {given.jobs} processes.\n"
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
