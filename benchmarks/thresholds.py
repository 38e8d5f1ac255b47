"""Whether thresholds and posteriors hold, for targets of the pool's kind and for those with another share of members.

Run: python benchmarks/thresholds.py [--pools 20] [--targets 8] [--part coverage|mismatch|all]. Writes thresholds.md
beside itself; about half an hour on one free core.

*Coverage*: how often the false-positive rate that a threshold realises on a new target lies in the interval stated
beside it. Margins are Gaussian with a mean and a spread of every record, and a random scale of every model.
*Mismatch*: targets trained on 10, 20, 50 and 80 % of the records, the prior said rightly, by a pool at 50 % and by one
at the target's share: the calibration error of the posteriors that are given, and the false-positive rate realised.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from glasshouse import Population, SklearnTrainer
from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import create
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.stacking.learners import Boosted
from glasshouse.datasets import load_dataset
from glasshouse.evaluation import run_attack, unlike_target
from glasshouse.evaluation.believed import calibration_error, calibration_floor
from glasshouse.evaluation.thresholds import simulate, threshold_from
from glasshouse.evaluation.trials import Trials
from glasshouse.evidence import Evidence, collect
from glasshouse.pool import ShadowPool
from glasshouse.population import complementary_halves, random_subsets
from glasshouse.randomness import generator, seed_for

ATTACKS = ("base", "lira", "bavaria", "shrunk-lira", "regressed", "rmia", "stacked")
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
) -> Trial:
    """Margins that are Gaussian record by record; ``spread`` is how much models differ in scale and level."""
    random = generator(seed, "thresholds")
    if pool_share == 0.5:
        pool = complementary_halves(records, models=models, seed=seed)
    else:
        pool = random_subsets(records, models=models, fraction=pool_share, seed=seed, stream="shadow subset")
    members = np.concatenate([pool, random_subsets(records, models=targets, fraction=share, seed=seed)])
    shift = leak * np.exp(random.normal(0, 0.5, records))
    margins = random.normal(1, 2, records) + shift * members
    margins = margins + np.exp(random.normal(0, 0.3, records)) * random.normal(size=members.shape)
    margins = margins * np.exp(random.normal(0, spread, (len(members), 1)))
    losses = np.logaddexp(0.0, -margins - random.normal(0, spread, (len(members), 1)))
    return Trial(
        shadow_loss=losses[:models],
        shadow_members=pool,
        target_loss=losses[models:],
        target_members=members[models:],
    )


def attack_named(name: str, *, prior: float = 0.5) -> Attack[Any]:
    """An attack on records; the stacked one is small."""
    return create(name, shared={"prior": prior, "boosted": SMALL})


def coverage(
    trials: Sequence[Trial], *, attacks: Sequence[str] = ATTACKS, fprs: Sequence[float] = WANTED
) -> dict[tuple[str, float], FloatArray]:
    """By attack and wanted rate: [targets, 4] realised rate, whether it is inside, and both ends of the interval."""
    found: dict[tuple[str, float], list[list[float]]] = {}
    for trial in trials:
        for name in attacks:
            attack = attack_named(name).tuned(trial.evidence(0))
            scored = simulate(attack, trial.evidence(0))
            scores = [attack.score(trial.evidence(number)) for number in range(len(trial.target_loss))]
            for fpr in fprs:
                threshold = threshold_from(scored, fpr)
                low, high = threshold.interval
                for one, members in zip(scores, trial.target_members, strict=True):
                    rate = float(threshold.decide(one)[~members].mean())
                    # a rate is a whole count divided by the non-members: compare without the last bit
                    inside = low - 1e-9 <= rate <= high + 1e-9
                    found.setdefault((name, fpr), []).append([rate, float(inside), low, high])
    return {key: np.array(rows) for key, rows in found.items()}


def trained(
    estimator: Any, *, share: float, pool_share: float, shadows: int, targets: int, records: int | None = None
) -> Trial:
    """Models of the digits, of which a tenth of the labels is wrong."""
    whole = load_dataset("digits").population
    rows = np.random.default_rng(0).permutation(len(whole))[:records]
    population = Population(whole.x[rows], whole.y[rows], classes=whole.classes)
    trainer = SklearnTrainer(estimator=estimator)
    known: dict[bytes, Any] = {}

    def once(population: Population, members: BoolArray, seed: int) -> Any:
        if members.tobytes() not in known:
            known[members.tobytes()] = trainer(population, members, seed)
        return known[members.tobytes()]

    pool = ShadowPool.plan(population, once, shadows=shadows, fraction=pool_share, seed=0)
    members = random_subsets(len(population), models=targets, fraction=share, seed=7)
    evidences = [
        collect(trainer(population, who, seed_for(0, "benchmark target", number)), pool, progress=False)[0]
        for number, who in enumerate(members)
    ]
    return Trial(
        shadow_loss=evidences[0].shadow_loss,
        shadow_members=pool.members,
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
    attack, trials = attack_named(name, prior=share), Trials(trial.evidence(0))
    errors, floors, given, rates, inside = [], [], [], [], []
    for number, members in enumerate(trial.target_members):
        evidence = trial.evidence(number)
        unlike = bool(unlike_target(evidence, prior=share))
        outcome = run_attack(attack, evidence, fprs=[0.01], trials=trials, prior=share, unlike=unlike)
        errors.append(calibration_error(outcome.scores, members) if attack.posterior else np.nan)
        floors.append(calibration_floor(outcome.scores) if attack.posterior else np.nan)
        given.append(outcome.believed)
        for threshold in outcome.thresholds:
            rate = float(threshold.decide(outcome.scores)[~members].mean())
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


def coverage_rows(pools: int, targets: int) -> Iterator[str]:
    """The table of coverage."""
    yield f"| N | K | leak | wanted FPR | {' | '.join(ATTACKS)} |"
    yield "| --- | --- | --- | --- |" + " --- |" * len(ATTACKS)
    for records in (500, 2000, 5000):
        for models in (8, 16):
            for leak in (0.0, 0.3, 1.0):
                began = time.perf_counter()
                made: dict[str, Any] = {"records": records, "models": models, "targets": targets, "leak": leak}
                fprs = [fpr for fpr in WANTED if fpr * records / 2 >= 1]
                # half of the pools have models that differ only by chance
                trials = [synthetic(**made, seed=seed, spread=0.05 * (seed % 2)) for seed in range(pools)]
                found = coverage(trials, fprs=fprs)
                for fpr in fprs:
                    cells = []
                    for name in ATTACKS:
                        rate, inside, low, high = 100 * found[name, fpr].mean(axis=0)
                        cells.append(f"{inside:.0f} % ({rate:.2f}; {low:.2f}–{high:.2f})")
                    yield f"| {records} | {models} | {leak:g} | {100 * fpr:g} % | {' | '.join(cells)} |"
                print(f"coverage {made}: {time.perf_counter() - began:.0f} s", flush=True)


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


def alike_line(pools: int, targets: int) -> str:
    """How many targets of the pool's kind are taken for another kind."""
    trials = [
        synthetic(records=1000, models=8, targets=targets, leak=1.0, seed=seed, spread=0.05 * (seed % 2))
        for seed in range(pools)
    ]
    wrong = sum(bool(unlike_target(trial.evidence(number))) for trial in trials for number in range(targets))
    return f"Of {pools * targets} synthetic targets of the pool's own kind, {wrong} are taken for another kind."


def main() -> None:
    """Measure, and keep the tables; a part that is not measured again stays as it is in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)  # forty passes are meant
    parser.add_argument("--pools", type=int, default=20)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--part", choices=["coverage", "mismatch", "all"], default="all")
    options = parser.parse_args()
    place = Path(__file__).with_suffix(".md")
    kept = place.read_text(encoding="utf-8").split("\n## ")[1:] if place.exists() else []
    sections = {text.splitlines()[0]: text.rstrip() for text in kept}
    pools, targets = options.pools, options.targets
    title = "Realised false-positive rates"
    if options.part != "mismatch":
        about = (
            f"How often the rate realised on a new target lies in the stated interval, over {pools} pools of K shadow "
            f"models (half of them with models of different scale) and {targets} targets each; in brackets the mean "
            "rate realised and the mean ends of the interval, in %. Leak 0 has none. `stacked` with 20 small trees."
        )
        sections[title] = "\n".join([title, "", about, "", *coverage_rows(pools, targets)])
    title = "Another share of members"
    if options.part != "coverage":
        about = (
            f"{targets} targets, the prior said rightly, 8 shadow models; the digits have 1 797 records, the synthetic "
            "ones 2 000. ECE is over all targets, whether a posterior was given or not. Attacks that refuse a pool of "
            f"small training sets (no in-model for some records) are left out there. {alike_line(4 * pools, targets)}"
        )
        sections[title] = "\n".join([title, "", about, "", *mismatch_rows(targets)])
    command = f"`python benchmarks/thresholds.py --pools {pools} --targets {targets}`"
    head = f"# Thresholds and posteriors that hold\n\n{command}"
    place.write_text("\n\n## ".join([head, *sections.values()]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
