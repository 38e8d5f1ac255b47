"""The one call: from a model, its data and a way to train it, to a verdict."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.choices import AttackChoice, chosen_attacks
from glasshouse.compute import Compute
from glasshouse.errors import InputError
from glasshouse.evaluation import AttackOutcome, PrivacyClaim, judge_claim, run_attack
from glasshouse.evaluation.metrics import resolvable
from glasshouse.evaluation.thresholds import Policy
from glasshouse.evidence import Evidence, Mode, Query, accuracy, collect
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.population import BoolArray, Population, as_members
from glasshouse.progress import note_work
from glasshouse.randomness import seed_for
from glasshouse.report import Context
from glasshouse.result import AuditResult
from glasshouse.training import Trainer

__all__ = ["audit", "audit_evidence", "checked_rates", "conclude", "library_versions"]


def audit(
    model: Any,
    population: Population,
    members: ArrayLike,
    trainer: Trainer,
    *,
    attacks: Sequence[AttackChoice] = ("base", "lira", "rmia"),
    shadows: int = 8,
    mode: Mode = "online",
    fprs: Sequence[float] | None = None,
    prior: float = 0.5,
    claim: PrivacyClaim | None = None,
    policy: Policy = "mean",
    fraction: float = 0.5,
    how: Query | None = None,
    store: Path | str | None = None,
    compute: Compute | None = None,
    seed: int = 0,
    title: str = "Membership audit",
    about: str = "",
    progress: bool | None = None,
) -> AuditResult:
    """Train shadow models, attack the target, and measure who of its training records can be told from outside.

    Args:
        model: the target: a torch module giving logits, an estimator with ``predict_proba``, or a callable
            ``x -> logits``. None trains one with ``trainer`` on ``members``.
        population: the records, members and others.
        members: [N] who trained the target; for evaluation alone, no attack sees it.
        trainer: ``(population, members, seed) -> model``, as the target was trained.
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters; ``"best"`` picks one by
            simulated targets and says why.
        shadows: how many shadow models, in complementary pairs.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        fprs: wanted false-positive rates; by default 1 % and 0.1 %, those that the sample can resolve.
        prior: λ, the share of members that the attacker expects.
        claim: a stated (ε, δ) to judge.
        policy: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        fraction: share of records that trains a shadow model.
        how: batch size, device and temperature of queries.
        store: the shadow pool's folder: models found there are not trained again. None keeps no model.
        compute: where shadow models are trained: `ThisProcess`, `LocalProcesses` or `RayCluster`.
        seed: of every random choice.
        title: of the report.
        about: a sentence on the data, shown beside the figures.
        progress: whether to show bars; by default on a terminal only.

    Example:
        >>> from glasshouse.training import SklearnTrainer
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> rng = np.random.default_rng(0)
        >>> population = Population(rng.normal(size=(200, 3)), rng.integers(2, size=200))
        >>> members = np.arange(200) < 100
        >>> trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
        >>> result = audit(None, population, members, trainer, attacks=["base"], shadows=4)
        >>> result.table()["auc"].round(1)  # a tree grown to the end remembers everything
        array([0.7])
    """
    if hasattr(population, "edge_index"):
        raise InputError(
            "population: this is a graph; call glasshouse.graph.audit(data, model=…, members=…, trainer=…)."
        )
    mask = as_members(members, (len(population),), place="members")
    wanted = checked_rates(fprs, mask)
    made = chosen_attacks(attacks, mode=mode, prior=prior, seed=seed, fprs=wanted)
    pool = ShadowPool.plan(
        population, trainer, shadows=shadows, fraction=fraction, seed=seed, store=store, compute=compute
    )
    began = time.perf_counter()
    if pool.store is not None:
        pool.train(progress=progress)
    stored = time.perf_counter() - began
    if model is None:
        note_work("The target was being trained.")
    target = trainer(population, mask, seed_for(seed, "target")) if model is None else model
    how = dataclasses.replace(how or Query(), keep_logits=any(attack.needs_logits for attack in made.values()))
    started = time.perf_counter()
    evidence, answers = collect(target, pool, how=how, progress=progress)
    spent = stored + time.perf_counter() - started
    context = Context(
        title=title,
        about=about,
        shadows=shadows,
        mode=mode,
        seed=seed,
        train_accuracy=accuracy(answers, mask),
        test_accuracy=accuracy(answers, ~mask),
        fingerprint=population.fingerprint(),
        shadow_seconds=spent,
        settings={
            "trainer": described(trainer),
            "prior": prior,
            "training share": fraction,
            "threshold policy": policy,
        },
        versions=library_versions(),
    )
    labels = population.classes[population.y]
    outcomes = {
        name: run_attack(attack, evidence, fprs=wanted, members=mask, policy=policy, progress=progress)
        for name, attack in made.items()
    }
    return conclude(evidence, outcomes, members=mask, labels=labels, fprs=wanted, context=context, claim=claim)


def audit_evidence(
    evidence: Evidence,
    *,
    members: ArrayLike | None = None,
    attacks: Sequence[AttackChoice] = ("base", "lira", "rmia"),
    mode: Mode = "online",
    fprs: Sequence[float] | None = None,
    prior: float = 0.5,
    claim: PrivacyClaim | None = None,
    policy: Policy = "mean",
    seed: int = 0,
    title: str = "Membership audit from saved evidence",
    progress: bool | None = None,
) -> AuditResult:
    """The same from evidence alone: losses that were saved earlier, or elsewhere.

    Args:
        evidence: losses of the target and of the shadow models.
        members: [N] who trained the target; without it records are scored and ranked, and nothing is measured.
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters; ``"best"`` picks one by
            simulated targets and says why.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        fprs: wanted false-positive rates.
        prior: λ, the share of members that the attacker expects.
        claim: a stated (ε, δ) to judge.
        policy: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        seed: of every random choice.
        title: of the report.
        progress: whether to show bars; by default on a terminal only.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]],
        ...                     shadow_members=[[1, 0], [0, 1]])
        >>> audit_evidence(evidence, attacks=["base"]).records()["base_rank"]
        array([1, 2])
    """
    mask = None if members is None else as_members(members, (evidence.records,), place="members")
    # an unknown truth limits no rate, but a pool of N records cannot place a threshold finer than its non-members
    counted = evidence.shadow_members[0] if mask is None else mask
    wanted = checked_rates(fprs, counted)
    made = chosen_attacks(attacks, mode=mode, prior=prior, seed=seed, fprs=wanted)
    context = Context(
        title=title,
        shadows=evidence.models,
        mode=mode,
        seed=seed,
        settings={"prior": prior, "threshold policy": policy},
        versions=library_versions(),
    )
    outcomes = {
        name: run_attack(attack, evidence, fprs=wanted, members=mask, policy=policy, progress=progress)
        for name, attack in made.items()
    }
    return conclude(evidence, outcomes, members=mask, labels=evidence.labels, fprs=wanted, context=context, claim=claim)


def conclude(
    evidence: Evidence,
    outcomes: Mapping[str, AttackOutcome],
    *,
    members: BoolArray | None,
    labels: np.ndarray | None,
    fprs: tuple[float, ...],
    context: Context,
    claim: PrivacyClaim | None,
) -> AuditResult:
    """A result from outcomes: what all attacks together say about ε is added here."""
    privacy = None
    if members is not None:
        guesses = [some for outcome in outcomes.values() for some in outcome.guesses(members)]
        privacy = judge_claim(claim, guesses, records=evidence.records, prior=float(members.mean()))
    return AuditResult(
        evidence=evidence,
        outcomes=outcomes,
        members=members,
        labels=labels,
        fprs=fprs,
        privacy=privacy,
        context=context,
    )


def checked_rates(fprs: Sequence[float] | None, members: BoolArray) -> tuple[float, ...]:
    """The false-positive rates to evaluate at, refused before the long work where they cannot be measured."""
    if members.all() or not members.any():
        raise InputError("members: rates need both members and non-members among the records.")
    return resolvable(fprs, int((~members).sum()))


def library_versions(*more: str) -> dict[str, str]:
    """Versions of Python, of the libraries behind every figure, and of some more."""
    packages = ("glasshouse", "numpy", "scipy", "scikit-learn", "torch", *more)
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = "not installed"
    return found
