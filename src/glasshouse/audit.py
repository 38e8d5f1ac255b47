"""The one call: from a model, its data and a way to train it, to a verdict."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import platform
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks import Attack, create
from glasshouse.errors import InputError, raise_faults
from glasshouse.evaluation import PrivacyClaim, judge_claim, run_attack
from glasshouse.evaluation.metrics import resolvable
from glasshouse.evaluation.thresholds import Policy
from glasshouse.evidence import Evidence, Mode, Query, accuracy, collect
from glasshouse.pool import ShadowPool
from glasshouse.population import BoolArray, Population, as_members
from glasshouse.randomness import seed_for
from glasshouse.report import Context
from glasshouse.result import AuditResult
from glasshouse.training import Trainer

__all__ = ["audit", "audit_evidence"]

AttackChoice = str | Attack | Mapping[str, Any]


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
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters.
        shadows: how many shadow models, in complementary pairs.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        fprs: wanted false-positive rates; by default 1 % and 0.1 %, those that the sample can resolve.
        prior: λ, the share of members that the attacker expects.
        claim: a stated (ε, δ) to judge.
        policy: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        fraction: share of records that trains a shadow model.
        how: batch size, device and temperature of queries.
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
    mask = as_members(members, (len(population),), place="members")
    made = _checked_attacks(attacks, mode=mode, prior=prior, seed=seed)
    wanted = _checked_rates(fprs, mask)
    pool = ShadowPool.plan(population, trainer, shadows=shadows, fraction=fraction, seed=seed)
    target = trainer(population, mask, seed_for(seed, "target")) if model is None else model
    how = dataclasses.replace(how or Query(), keep_logits=any(attack.needs_logits for attack in made.values()))
    evidence, answers = collect(target, pool, how=how, progress=progress)
    context = Context(
        title=title,
        about=about,
        shadows=shadows,
        mode=mode,
        seed=seed,
        train_accuracy=accuracy(answers, mask),
        test_accuracy=accuracy(answers, ~mask),
        fingerprint=population.fingerprint(),
        settings={
            "trainer": _described(trainer),
            "prior": prior,
            "training share": fraction,
            "threshold policy": policy,
        },
        versions=_versions(),
    )
    labels = population.classes[population.y]
    return _judged(evidence, made, mask, labels, wanted, context, claim, policy, progress)


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
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters.
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
    made = _checked_attacks(attacks, mode=mode, prior=prior, seed=seed)
    # an unknown truth limits no rate, but a pool of N records cannot place a threshold finer than its non-members
    counted = evidence.shadow_members[0] if mask is None else mask
    wanted = _checked_rates(fprs, counted)
    context = Context(
        title=title,
        shadows=evidence.models,
        mode=mode,
        seed=seed,
        settings={"prior": prior, "threshold policy": policy},
        versions=_versions(),
    )
    return _judged(evidence, made, mask, evidence.labels, wanted, context, claim, policy, progress)


def _judged(
    evidence: Evidence,
    attacks: Mapping[str, Attack],
    members: BoolArray | None,
    labels: np.ndarray | None,
    fprs: tuple[float, ...],
    context: Context,
    claim: PrivacyClaim | None,
    policy: Policy,
    progress: bool | None,
) -> AuditResult:
    outcomes = {
        name: run_attack(attack, evidence, fprs=fprs, members=members, policy=policy, progress=progress)
        for name, attack in attacks.items()
    }
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


def _checked_attacks(attacks: Sequence[AttackChoice], **shared: Any) -> dict[str, Attack]:
    """Attacks by a name of their own, all faults at once; a second one of a name is numbered."""
    if isinstance(attacks, str):
        attacks = [attacks]
    made: dict[str, Attack] = {}
    faults: list[str] = []
    for index, choice in enumerate(attacks):
        try:
            attack = _made(choice, shared)
        except InputError as error:
            faults += [f"attacks[{index}]: {fault}" for fault in error.faults]
            continue
        count = sum(other.name == attack.name for other in made.values())
        made[attack.name if count == 0 else f"{attack.name}-{count + 1}"] = attack
    if not attacks:
        faults.append("attacks: none given; name at least one.")
    raise_faults(faults)
    return made


def _made(choice: AttackChoice, shared: Mapping[str, Any]) -> Attack:
    if isinstance(choice, str):
        return create(choice, shared=shared)
    if isinstance(choice, Mapping):
        parameters = dict(choice)
        if "name" not in parameters:
            raise InputError("a mapping needs a name, such as {name: rmia, gamma: 2}.")
        return create(parameters.pop("name"), shared=shared, **parameters)
    return choice


def _checked_rates(fprs: Sequence[float] | None, members: BoolArray) -> tuple[float, ...]:
    if members.all() or not members.any():
        raise InputError("members: rates need both members and non-members among the records.")
    return resolvable(fprs, int((~members).sum()))


def _described(trainer: Trainer) -> str:
    """A trainer as text, without the memory addresses that differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(trainer))


def _versions() -> dict[str, str]:
    packages = ("glasshouse", "numpy", "scipy", "scikit-learn", "torch")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = "not installed"
    return found
