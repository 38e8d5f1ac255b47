"""The one call: from a model, its data and a way to train it, to a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from glasshouse.attacks import Attack
from glasshouse.attacks.choices import AttackChoice, chosen_attacks
from glasshouse.audit_steps import check_attacks, checked_rates, conclude, library_versions, run_each
from glasshouse.compute import Compute
from glasshouse.evaluation import AttackOutcome, PrivacyClaim, run_attack
from glasshouse.evaluation.mixed_up import Finding, shared_losses, shared_records
from glasshouse.evaluation.thresholds import Policy
from glasshouse.evidence import Evidence, Mode, QueryOptions, accuracy, collect
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.population import Population, as_members, check_population
from glasshouse.progress import note_work
from glasshouse.randomness import seed_for
from glasshouse.report import Context
from glasshouse.result import AuditResult
from glasshouse.training.trainer import Trainer, check_trainer

__all__ = ["audit", "audit_evidence"]


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
    how: QueryOptions | None = None,
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
        >>> import numpy as np
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
    check_population(population)
    check_trainer(trainer)
    mask = as_members(members, (len(population),), place="members")
    wanted = checked_rates(fprs, mask)
    made = chosen_attacks(attacks, mode=mode, prior=prior, seed=seed, fprs=wanted)
    pool = ShadowPool.plan(
        population, trainer, shadows=shadows, fraction=fraction, seed=seed, store=store, compute=compute
    )
    check_attacks(made, pool.members)
    began = time.perf_counter()
    if pool.store is not None:
        pool.train(progress=progress)
    stored = time.perf_counter() - began
    if model is None:
        note_work("The target was being trained.")
    target = trainer(population, mask, seed_for(seed, "target")) if model is None else model
    how = dataclasses.replace(how or QueryOptions(), keep_logits=any(attack.needs_logits for attack in made.values()))
    started = time.perf_counter()
    evidence, answers = collect(target, pool, how=how, progress=progress)
    spent = stored + time.perf_counter() - started
    shared = shared_records(population.digests(), mask)
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
        warnings=shared.warnings,
        notes=(*evidence.notes, *shared.notes),
    )

    def run(attack: Attack) -> AttackOutcome:
        return run_attack(attack, evidence, fprs=wanted, members=mask, policy=policy, progress=progress)

    outcomes, failed = run_each(made, run)
    return conclude(
        evidence,
        outcomes,
        members=mask,
        labels=population.classes[population.y],
        fprs=wanted,
        context=context,
        claim=claim,
        left_out=failed,
    )


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
    shared = Finding() if mask is None else shared_losses(evidence, mask)
    context = Context(
        title=title,
        shadows=evidence.models,
        mode=mode,
        seed=seed,
        settings={"prior": prior, "threshold policy": policy},
        versions=library_versions(),
        warnings=shared.warnings,
        notes=(*evidence.notes, *shared.notes),
    )

    def run(attack: Attack) -> AttackOutcome:
        return run_attack(attack, evidence, fprs=wanted, members=mask, policy=policy, progress=progress)

    outcomes, failed = run_each(made, run)
    return conclude(
        evidence,
        outcomes,
        members=mask,
        labels=evidence.labels,
        fprs=wanted,
        context=context,
        claim=claim,
        left_out=failed,
    )
