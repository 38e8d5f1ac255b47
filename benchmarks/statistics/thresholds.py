"""Whether thresholds and posteriors hold, for targets of the pool's kind and for those with another share of members.

Run: python benchmarks/statistics/thresholds.py [--pools 300] [--targets 8] [--part coverage|kinds|mismatch|all]. Writes
thresholds.md beside itself; about half an hour on one free core.

*Coverage*: the false-positive rate that a threshold realises on a new target, beside the expected one and how often it
lies in the interval stated with it; once by scores from as many references as simulated targets have, as flags are
decided, and once by scores from all references. Margins are Gaussian with a mean and a spread of every record, and a
random scale of every model.
*Kinds*: how often a target of the pool's own kind is taken for another kind (a mismatch), for continuous and discrete
answers, and how often a target that is of another kind is.
*Mismatch*: targets trained on 10, 20, 50 and 80 % of the records, the prior said rightly, by a pool at 50 % and by one
at the target's share: the calibration error of the posteriors that are given, and the false-positive rate realised.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Population, SklearnTrainer
from glasshouse.attacks import create
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.learners import Boosted
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.data.named import load_dataset
from glasshouse.evaluation import run_attack, target_mismatch
from glasshouse.evaluation.best import AttackCache
from glasshouse.evaluation.checks.calibration import binned, calibration_floor
from glasshouse.evaluation.thresholds import Simulation, threshold_from
from glasshouse.evidence import Evidence, collect
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import QueryOptions
from glasshouse.query.labels_only import LabelOnly

ATTACKS = ("base", "lira", "bavaria", "shrunk-lira", "regressed", "rmia", "stacked")
OFFLINE = ("base offline", "lira offline", "rmia offline")
KINDS = ("continuous", "20 votes", "5 votes", "labels alone", "32 shares", "two decimals", "one decimal", "mostly tied")
CHANGED: dict[str, dict[str, Any]] = {  # what another kind of target has in place of the pool's
    "none": {},
    "margins + 0.3": {"shift": 0.3},
    "margins + 0.6": {"shift": 0.6},
    "margins x 1.3": {"scale": 1.3},
    "margins x 0.75": {"scale": 0.75},
    "leak x 2": {"own_leak": 2.0},
    "20 % members": {"share": 0.2},
}
SMALL = Boosted(rounds=20, fits=1, leaves=15)  # of the stacked attack, so that hundreds of pools take minutes
WANTED = (0.01, 0.001)


class Trial(NamedTuple):
    """A pool, and targets of the same kind: losses and members of each."""

    shadow_loss: FloatArray
    shadow_members: BoolArray
    target_loss: FloatArray
    target_members: BoolArray

    def evidence(self, number: int) -> Evidence:
        """About one of the targets."""
        return Evidence(
            target_loss=self.target_loss[number], shadow_loss=self.shadow_loss, shadow_members=self.shadow_members
        )


def synthetic(
    *,
    records: int,
    models: int,
    targets: int,
    leak: float,
    seed: int,
    share: float = 0.5,
    pool_share: float = 0.5,
    spread: float = 0.05,
    kind: str = "continuous",
    shift: float = 0.0,
    scale: float = 1.0,
    own_leak: float | None = None,
) -> Trial:
    """Margins that are Gaussian record by record; ``spread`` is how much models differ in scale and level.

    Targets may be of another kind than the pool: margins moved or scaled, or another leak.
    """
    random = generator(seed, "thresholds")
    if pool_share == 0.5:
        pool = complementary_halves(records, models=models, seed=seed)
    else:
        pool = random_subsets(records, models=models, fraction=pool_share, seed=seed, stream="shadow subset")
    members = np.concatenate([pool, random_subsets(records, models=targets, fraction=share, seed=seed)])
    leaks = np.repeat([[leak], [leak if own_leak is None else own_leak]], [models, targets], axis=0)
    gains = leaks * np.exp(random.normal(0, 0.5, records))
    margins = random.normal(1, 2, records) + gains * members
    margins = margins + np.exp(random.normal(0, 0.3, records)) * random.normal(size=members.shape)
    margins = margins * np.exp(random.normal(0, spread, (len(members), 1)))
    margins += random.normal(0, spread, (len(members), 1))
    margins[models:] = scale * margins[models:] + shift
    losses = answered(margins, kind, random)
    return Trial(
        shadow_loss=losses[:models],
        shadow_members=pool,
        target_loss=losses[models:],
        target_members=members[models:],
    )


def answered(margins: FloatArray, kind: str, random: np.random.Generator) -> FloatArray:
    """Losses of models with these margins that answer with votes, labels or rounded probabilities."""
    if kind == "continuous":
        return np.asarray(np.logaddexp(0.0, -margins))
    chances = 1 / (1 + np.exp(-margins))
    if kind in ("20 votes", "5 votes"):
        votes = int(kind.split()[0])
        chances, step = random.binomial(votes, chances) / votes, 1 / votes
    elif kind == "labels alone":
        chances, step = (margins > 0).astype(np.float64), 0.5
    elif kind == "mostly tied":
        chances, step = np.where(margins > -1.5, 1.0, chances), 0.002
    else:
        step = {"32 shares": 1 / 32, "two decimals": 0.01, "one decimal": 0.1}[kind]
        chances = np.round(chances / step) * step
    return np.asarray(-np.log(np.clip(chances, step / 2, 1 - step / 2)))


def attack_named(name: str, *, prior: float = 0.5) -> Attack[Any]:
    """An attack on records, online or offline; the stacked one is small."""
    name, *mode = name.split()
    return create(name, shared={"prior": prior, "boosted": SMALL, "mode": (mode or ["online"])[0], "jobs": 1})


def coverage(
    trials: Sequence[Trial], *, attacks: Sequence[str] = ATTACKS, fprs: Sequence[float] = WANTED
) -> dict[tuple[str, float], FloatArray]:
    """By attack and wanted rate, [targets, 8].

    The columns: realised rate, whether it is inside, both ends of the interval, the expected rate, the share of the
    members that are flagged; then realised rate and flagged members if the scores by all references were used.
    """
    found: dict[tuple[str, float], list[list[float]]] = {}
    for trial in trials:
        for name in attacks:
            try:
                attack = attack_named(name).tuned(trial.evidence(0))
                scored = list(Simulation(attack=attack, view=trial.evidence(0)))
            except InputError:  # too few models for it
                continue
            views = [trial.evidence(number) for number in range(len(trial.target_loss))]
            scores = [(attack.flag_scores(view), attack.score(view)) for view in views]
            for fpr in fprs:
                threshold = threshold_from(scored, fpr)
                low, high = threshold.interval
                for both, members in zip(scores, trial.target_members, strict=True):
                    flagged, by_all = (threshold.decide(one) for one in both)
                    rate = float(flagged[~members].mean())
                    # a rate is a whole count divided by the non-members: compare without the last bit
                    inside = low - 1e-9 <= rate <= high + 1e-9
                    row = [rate, float(inside), low, high, threshold.expected_fpr, float(flagged[members].mean())]
                    row += [float(by_all[~members].mean()), float(by_all[members].mean())]
                    found.setdefault((name, fpr), []).append(row)
    return {key: np.array(rows) for key, rows in found.items()}


def asked(
    estimator: Any,
    *,
    share: float,
    pool_share: float,
    shadows: int,
    targets: int,
    records: int | None = None,
    how: QueryOptions | None = None,
    target: Any = None,
    seed: int = 0,
) -> tuple[list[Evidence], BoolArray]:
    """Evidence about targets, and their members, of models of the digits, of which a tenth of the labels is wrong.

    ``target`` is the estimator of the targets, by default that of the pool.
    """
    whole = load_dataset("digits").population
    rows = np.random.default_rng(0).permutation(len(whole))[:records]
    population = Population(whole.x[rows], whole.y[rows], classes=whole.classes)
    trainer = SklearnTrainer(estimator=estimator)
    known: dict[bytes, Any] = {}

    def once(population: Population, members: BoolArray, seed: int) -> Any:
        if members.tobytes() not in known:
            known[members.tobytes()] = trainer(population, members, seed)
        return known[members.tobytes()]

    pool = ShadowPool.plan(population, once, shadows=shadows, fraction=pool_share, seed=seed)
    members = random_subsets(len(population), models=targets, fraction=share, seed=seed + 7)
    own = SklearnTrainer(estimator=estimator if target is None else target)
    made = (own(population, who, seed_for(seed, "benchmark target", at)) for at, who in enumerate(members))
    return [collect(model, pool, progress=False, how=how)[0] for model in made], members


def trained(estimator: Any, **given: Any) -> Trial:
    """The same as a trial."""
    evidences, members = asked(estimator, **given)
    return Trial(
        shadow_loss=evidences[0].shadow_loss,
        shadow_members=evidences[0].shadow_members,
        target_loss=np.stack([evidence.target_loss for evidence in evidences]),
        target_members=members,
    )


class Mismatch(NamedTuple):
    """What one attack gives for targets with one share of members.

    Args:
        attack: its name.
        targets: how many.
        given: how many of them got a posterior.
        error: mean calibration error over all of them, given or not.
        floor: what chance alone gives.
        excess: mean of error - floor over those with a posterior; NaN if there are none.
        thresholds: how many of them got a threshold.
        fpr: mean false-positive rate at the threshold for 1 %, over those with one.
        inside: how many of these rates are in the stated interval.
    """

    attack: str
    targets: int
    given: int
    error: float
    floor: float
    excess: float
    thresholds: int
    fpr: float
    inside: int


def mismatch(trial: Trial, name: str, *, share: float) -> Mismatch:
    """One attack against all targets of a trial, the prior said rightly."""
    attack, cache = attack_named(name, prior=share), AttackCache(trial.evidence(0))
    errors, floors, given, rates, inside = [], [], [], [], []
    for number, members in enumerate(trial.target_members):
        evidence = trial.evidence(number)
        unlike = bool(target_mismatch(evidence, prior=share))
        outcome = run_attack(attack, evidence, fprs=[0.01], cache=cache, prior=share, mismatch=unlike)
        errors.append(binned(outcome.scores, members).error if attack.posterior else np.nan)
        floors.append(calibration_floor(outcome.scores) if attack.posterior else np.nan)
        given.append(outcome.calibrated)
        for threshold in outcome.thresholds:
            rate = float(outcome.flagged(threshold)[~members].mean())
            rates.append(rate)
            inside.append(threshold.interval.low - 1e-9 <= rate <= threshold.interval.high + 1e-9)
    excess = (np.array(errors) - np.array(floors))[np.array(given)]
    return Mismatch(
        attack=name,
        targets=len(errors),
        given=sum(given),
        error=float(np.mean(errors)),
        floor=float(np.mean(floors)),
        excess=float(excess.mean()) if len(excess) else float("nan"),
        thresholds=len(rates),
        fpr=float(np.mean(rates)) if rates else float("nan"),
        inside=sum(inside),
    )


def coverage_rows(pools: int) -> Iterator[str]:
    """The table of coverage: one target for each of so many pools."""
    head = "N | K | leak | wanted FPR | attack | expected | realised | inside | interval | identified"
    yield f"| {head} | realised by all references | identified by them |"
    yield "|" + " --- |" * 12
    for records, models, leak in ((2000, 4, 1.0), (2000, 6, 1.0), (2000, 8, 1.0), (2000, 8, 0.0), (2000, 16, 1.0)):
        began = time.perf_counter()
        made: dict[str, Any] = {"records": records, "models": models, "targets": 1, "leak": leak}
        names = [name for name in (*ATTACKS, *OFFLINE) if name != "stacked"]
        fprs = WANTED if models == 8 else WANTED[:1]
        # half of the pools have models that differ only by chance
        trials = [synthetic(**made, seed=seed, spread=0.05 * (seed % 2)) for seed in range(pools)]
        found = coverage(trials, attacks=names, fprs=fprs)
        if models == 8:  # it takes as long as all others together
            found |= coverage(trials[: pools // 3], attacks=["stacked"], fprs=fprs)
        for name, fpr in itertools.product([*names, "stacked"], fprs):
            if (name, fpr) in found:
                rate, inside, low, high, expected, tpr, *by_all = 100 * found[name, fpr].mean(axis=0)
                yield (
                    f"| {records} | {models} | {leak:g} | {100 * fpr:g} % | {name} | {expected:.2f} | {rate:.2f} | "
                    f"{inside:.1f} | {low:.2f}–{high:.2f} | {tpr:.2f} | {by_all[0]:.2f} | {by_all[1]:.2f} |"
                )
        print(f"coverage {made}: {time.perf_counter() - began:.0f} s", flush=True)


def kind_rows(pools: int) -> Iterator[str]:
    """How often targets are taken for another kind, in %: one target for each of so many pools."""
    yield f"| N | K | answers | {' | '.join(CHANGED)} |"
    yield "| --- | --- | --- |" + " --- |" * len(CHANGED)
    for (records, models), kind in itertools.product(((400, 8), (2000, 16), (1000, 6)), KINDS):
        cells = []
        for change in CHANGED.values():
            made: dict[str, Any] = {"records": records, "models": models, "targets": 1, "leak": 1.0, "kind": kind}
            # those of the pool's own kind must be many, since few of them are wrong
            trials = (
                synthetic(**made, **change, seed=seed, spread=0.05 * (seed % 2))
                for seed in range(pools if not change else pools // 5)
            )
            cells.append(f"{100 * np.mean([bool(target_mismatch(trial.evidence(0))) for trial in trials]):.1f}")
        yield f"| {records} | {models} | {kind} | {' | '.join(cells)} |"
    estimators: dict[str, tuple[Any, Any, QueryOptions | None]] = {
        "forest of 20 trees; of depth 3": (
            RandomForestClassifier(20),
            RandomForestClassifier(20, max_depth=3),
            None,
        ),
        "5 neighbours; 15": (KNeighborsClassifier(5), KNeighborsClassifier(15), None),
        "labels alone of a tree; of depth 4": (
            DecisionTreeClassifier(),
            DecisionTreeClassifier(max_depth=4),
            LabelOnly(votes=16),
        ),
        "logistic, C = 10; C = 0.001": (
            LogisticRegression(C=10, max_iter=300),
            LogisticRegression(C=0.001, max_iter=300),
            None,
        ),
    }
    yield ""
    yield "| models of the digits (1 000 records, K = 8); other kind | own kind | other kind | 20 % members |"
    yield "| --- | --- | --- | --- |"
    for name, (own, other, how) in estimators.items():
        cells = []
        given: dict[str, Any] = {"pool_share": 0.5, "shadows": 8, "records": 1000, "how": how, "targets": pools // 10}
        for target, share, seeds in ((own, 0.5, 10), (other, 0.5, 1), (own, 0.2, 1)):
            views = (asked(own, target=target, share=share, seed=seed, **given)[0] for seed in range(seeds))
            cells.append(f"{100 * np.mean([bool(target_mismatch(one)) for some in views for one in some]):.1f}")
        yield f"| {name} | {' | '.join(cells)} |"
        print(f"kinds {name}: {cells}", flush=True)


def mismatch_rows(targets: int) -> Iterator[str]:
    """The table of other shares of members."""
    head: tuple[str, ...] = (
        "models",
        "share of the target",
        "of the pool",
        "attack",
        "ECE",
        "by chance",
        "posterior given",
    )
    head = (*head, "ECE above chance, where given", "threshold given", "FPR for 1 %", "inside")
    yield f"| {' | '.join(head)} |"
    yield "|" + " --- |" * len(head)
    kinds: dict[str, Any] = {
        "synthetic": None,
        "logistic": LogisticRegression(C=10, max_iter=300),
        "perceptron": MLPClassifier((32,), max_iter=40, learning_rate_init=0.01),
    }
    for kind, estimator in kinds.items():
        for share in (0.1, 0.2, 0.5, 0.8):
            for pool_share in dict.fromkeys([0.5, share]):
                began = time.perf_counter()
                if estimator is None:
                    given: dict[str, Any] = {"records": 2000, "models": 8, "leak": 1.0, "seed": 1}
                    trial = synthetic(**given, targets=targets, share=share, pool_share=pool_share)
                else:
                    trial = trained(estimator, share=share, pool_share=pool_share, shadows=8, targets=targets)
                names = ["base", "stacked", "rmia"] + (["regressed", "shrunk-lira"] if pool_share == 0.5 else [])
                for name in names:
                    found = mismatch(trial, name, share=share)
                    cells = [f"{found.error:.3f}", f"{found.floor:.3f}", f"{found.given} of {found.targets}"]
                    cells += ["withheld" if np.isnan(found.excess) else f"{found.excess:+.3f}"]
                    if np.isnan(found.error):
                        cells = ["–"] * 4
                    cells += [f"{found.thresholds} of {found.targets}"]
                    cells += (
                        [f"{100 * found.fpr:.2f} %", f"{found.inside} of {found.thresholds}"]
                        if found.thresholds
                        else ["withheld", "–"]
                    )
                    yield f"| {kind} | {share:.0%} | {pool_share:.0%} | {name} | {' | '.join(cells)} |"
                print(f"mismatch {kind} {share} {pool_share}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Measure, and keep the tables; a part that is not measured again stays as it is in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)  # forty passes are meant
    parser.add_argument("--pools", type=int, default=300)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--part", choices=["coverage", "kinds", "mismatch", "all"], default="all")
    options = parser.parse_args()
    place = Path(__file__).with_suffix(".md")
    kept = place.read_text(encoding="utf-8").split("\n## ")[1:] if place.exists() else []
    sections = {text.splitlines()[0]: text.rstrip() for text in kept}
    pools, targets = options.pools, options.targets
    title = "Realised false-positive rates"
    if options.part in ("coverage", "all"):
        about = (
            f"In %, means over {pools} pools of K shadow models (half of them with models of different scale) with one "
            "new target each: the expected FPR beside the threshold, the realised one, how often it is in the stated "
            "interval, the mean ends of that, and the members that are flagged. The last two columns are what the same "
            "threshold does to scores by all references, of which a simulated target has fewer: flags were decided so "
            "before. Leak 0 has none. `stacked` with 20 small trees and a third of the pools; LiRA refuses four models."
        )
        sections[title] = "\n".join([title, "", about, "", *coverage_rows(pools)])
    title = "Taken for another kind"
    if options.part in ("kinds", "all"):
        about = (
            f"How often a target is said to be unlike the shadow models, in %: {pools} pools with a target of the same "
            f"kind (none changed), {pools // 5} with each change of the target. The prior says 50 % members. Of labels "
            f"alone the scale of margins cannot be seen. Then trained models: {pools} targets of the same kind, "
            f"{pools // 10} of each other."
        )
        sections[title] = "\n".join([title, "", about, "", *kind_rows(pools)])
    title = "Another share of members"
    if options.part in ("mismatch", "all"):
        about = (
            f"{targets} targets, the prior said rightly, 8 shadow models; the digits have 1 797 records, the synthetic "
            "ones 2 000. ECE is over all targets, whether a posterior was given or not. Attacks that refuse a pool of "
            "small training sets (no in-model for some records) are left out there."
        )
        sections[title] = "\n".join([title, "", about, "", *mismatch_rows(targets)])
    command = f"`python benchmarks/statistics/thresholds.py --pools {pools} --targets {targets}`"
    head = f"# Thresholds and posteriors that hold\n\n{command}"
    place.write_text("\n\n## ".join([head, *sections.values()]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
