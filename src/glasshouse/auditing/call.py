"""The one call: from a model, its data and a way to train it, to a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.registry import AttackChoice, chosen_attacks
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import (
    audit_view,
    check_attacks,
    checked_members,
    checked_rates,
    default_attacks,
    library_versions,
    prior_text,
    settings_of,
    train_shadows,
)
from glasshouse.compute import Compute
from glasshouse.core.errors import InputError
from glasshouse.data import Population, as_members, check_members_fit, check_population, select
from glasshouse.evaluation import Known, PrivacyClaim
from glasshouse.evaluation.checks.members import Finding, shared_losses, shared_records
from glasshouse.evaluation.groups import as_groups
from glasshouse.evaluation.privacy import as_claim
from glasshouse.evaluation.run import with_public_records
from glasshouse.evaluation.thresholds import ThresholdRule
from glasshouse.evidence import Evidence, LossTrace, Mode, QueryOptions, collect
from glasshouse.evidence.public import public_mask
from glasshouse.evidence.trace import traced_losses
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import check_model
from glasshouse.query.labels_only import predicted_labels
from glasshouse.query.regress import predict
from glasshouse.report import Context
from glasshouse.training.sklearn import SklearnTrainer, as_trainer
from glasshouse.training.trainer import Trainer

# The paper's, and the strongest one. `shrunk-lira` finds weak leaks of Gaussian margins a little more often, but on ten
# audits of digits and Adult its AUC was below that of `base` every time.
DEFAULT_ATTACKS = ("base", "lira", "rmia", "stacked")


def audit(
    population: Population,
    *,
    model: Any = None,
    members: ArrayLike | None = None,
    trainer: Trainer | Any = None,
    shadow_trainer: Trainer | Any = None,
    attacks: Sequence[AttackChoice] = DEFAULT_ATTACKS,
    shadows: int = 8,
    mode: Mode = "online",
    fprs: Sequence[float] | None = None,
    prior: float | ArrayLike = 0.5,
    claim: PrivacyClaim | Mapping[str, float] | None = None,
    threshold: ThresholdRule = "mean",
    groups: Mapping[str, ArrayLike] | None = None,
    fraction: float = 0.5,
    pool: Path | str | None = None,
    compute: Compute | None = None,
    seed: int = 0,
    title: str = "Membership audit",
    about: str = "",
    progress: bool | None = None,
    query: QueryOptions | None = None,
    public: ArrayLike | None = None,
    trace: LossTrace | ArrayLike | None = None,
) -> AuditResult:
    """Train shadow models, attack the target, and measure which of its training records can be found from outside.

    Args:
        population: the records, members and others.
        model: the target: a torch module that gives logits, an estimator with ``predict_proba``, or a callable
            ``x -> logits``; for a regression what gives predictions. None trains one with ``trainer`` on ``members``.
            A given model needs its ``members``.
        members: [N] which records trained the target, or their ids as text; used for evaluation alone, no attack sees
            it. Without a model, a random half by default.
        trainer: ``(population, members, seed) -> model``, as the target was trained; or an estimator, which stands for
            ``SklearnTrainer(estimator=…)``. Not needed for a given model and no shadow models.
        shadow_trainer: how the attacker trains, if it does not know how the owner did: another architecture or
            optimizer (the paper's mismatched adversary).
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters; ``"best"`` picks one by
            simulated targets and reports why. By default the paper's attacks and the strongest one, ``"stacked"``;
            what cannot use the pool is then left out, and the report says why.
        shadows: how many shadow models, in complementary pairs. 0 trains none and 1 a single reference model: a quick
            look with weaker attacks, and an estimate of what eight would find.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        fprs: wanted false-positive rates; by default those of 1 % and 0.1 % that the sample can resolve.
        prior: λ, the share of members that the attacker expects: one number, or one per record.
        claim: a stated (ε, δ) to judge: a `PrivacyClaim`, or a mapping with ``epsilon`` and perhaps ``delta``.
        threshold: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        groups: columns that divide the records, by name, such as ``{"sex": […], "age": […]}``, one value per record.
            The report shows the leak of each group. Numbers with many different values are cut into quartiles.
        fraction: share of records that trains a shadow model.
        pool: the shadow pool's folder: models found there are not trained again. With None, models are not kept.
        compute: where shadow models are trained and attacks do their long steps: `ThisProcess`,
            `LocalProcesses` or `RayCluster`. The result does not depend on it.
        seed: of every random choice.
        title: of the report.
        about: a sentence about the data, shown beside the figures.
        progress: whether to show bars; by default on a terminal, and elsewhere a plain line now and then.
        query: batch size, device and temperature of queries; `LabelOnly` for models that give labels alone.
        public: [N] records that an attacker knows not to have trained the target, such as a published test set; or a
            share of the non-members to set aside as such. Attacks without shadow models learn from them; they are not
            judged.
        trace: losses from the training of the target, a `LossTrace` or [T, N], for the attack ``"trace"``.

    Example:
        >>> import numpy as np
        >>> from glasshouse.training import SklearnTrainer
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> rng = np.random.default_rng(0)
        >>> population = Population(rng.normal(size=(200, 3)), rng.integers(2, size=200))
        >>> trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
        >>> result = audit(population, members=np.arange(200) < 100, trainer=trainer, attacks=["base"], shadows=4)
        >>> result.table()["auc"].round(1)  # a fully grown tree remembers everything
        array([0.7])
    """
    check_population(population)
    claim = as_claim(claim)
    if trainer is None and (shadows or model is None):
        raise InputError(
            "trainer: missing; shadow models must be trained as the target was. Pass trainer=SklearnTrainer(…), "
            "TorchTrainer(…), or a function (population, members, seed) -> model; or shadows=0 to train none."
        )
    if trainer is not None:
        trainer = as_trainer(trainer)
    if shadow_trainer is not None:
        shadow_trainer = as_trainer(shadow_trainer, place="shadow_trainer")
    for one in (trainer, shadow_trainer):
        if isinstance(one, SklearnTrainer):
            one.check(population, labels_only=query is not None and query.labels_only)
    mask = checked_members(model, members, len(population), seed=seed, ids=population.ids)
    check_members_fit(population.x, mask, given=members)
    unsteady = () if model is None else _check_target(model, population, query)  # before the long work
    outside = public_mask(public, mask, seed=seed, ids=population.ids)
    judged = np.flatnonzero(~outside)
    wanted = checked_rates(fprs, mask[judged])
    columns = {name: values[judged] for name, values in as_groups(groups, len(population)).items()}
    if public is not None and np.ndim(prior):
        prior = np.asarray(prior)[judged]
    moments = traced_losses(trace, len(population), ids=population.ids)
    chosen = default_attacks(attacks, DEFAULT_ATTACKS, shadows)
    made = chosen_attacks(chosen, mode=mode, prior=prior, seed=seed, fprs=wanted)
    plan = ShadowPool.plan(
        population,
        shadow_trainer or trainer or _nobody,
        shadows=shadows,
        fraction=fraction,
        seed=seed,
        folder=pool if shadows else None,
        compute=compute,
        how=query,
    )
    made, left_out = check_attacks(
        made,
        plan.members[:, judged],
        named=attacks is not DEFAULT_ATTACKS,
        regression=population.regression,
        public=public is not None,
        trace=trace is not None,
    )
    target, seconds = train_shadows(
        plan, trainer, population=population, model=model, members=mask, seed=seed, progress=progress
    )
    if model is None and not population.regression and not (query is not None and query.labels_only):
        unsteady = check_model(target, population, how=query)
    keep = any(attack.needs_logits for attack in made.values())
    started = time.perf_counter()
    evidence, answers = collect(
        target, plan, how=dataclasses.replace(query or QueryOptions(), keep_logits=keep), progress=progress
    )
    if moments is not None:
        evidence = evidence.with_trace(moments)
    if public is not None:
        evidence = with_public_records(evidence, population, outside, seed=seed)
    shared = shared_records(population.digests(), mask)
    measured: dict[str, Any] = dict(answers.figures(mask))
    context = Context(
        title=title,
        about=about,
        shadows=shadows,
        mode=mode,
        seed=seed,
        **measured,
        fingerprint=population.fingerprint(),
        shadow_seconds=seconds + time.perf_counter() - started,
        settings={
            **settings_of(trainer, shadow_trainer, prior=prior, fraction=fraction, threshold=threshold),
            **({"answers": "labels alone"} if query is not None and query.labels_only else {}),
        },
        versions=library_versions(),
        warnings=(*unsteady, *shared.warnings),
        notes=(*evidence.notes, *shared.notes),
    )
    return audit_view(
        evidence,
        made,
        members=mask[judged],
        estimated=query is None or not query.labels_only,
        labels=population.labels[judged],
        fprs=wanted,
        context=context,
        claim=claim,
        threshold=threshold,
        compute=compute,
        progress=progress,
        left_out=left_out,
        known=Known(x=population.features, labels=population.y, audited=None if public is None else judged),
        prior=prior,
        groups=columns,
    )


def _check_target(model: Any, population: Population, query: QueryOptions | None) -> tuple[str, ...]:
    """Ask the given model about a few records in the way of the audit; warnings about it."""
    if population.regression:
        predict(model, population, how=query)
    elif query is not None and query.labels_only:
        predicted_labels(model, population, how=query)(select(population.x, np.arange(min(2, len(population)))))
    else:
        return check_model(model, population, how=query)
    return ()


def _nobody(population: Any, members: Any, /, seed: int) -> Any:
    raise AssertionError("a pool without models trains none")


def audit_evidence(
    evidence: Evidence,
    *,
    members: ArrayLike | None = None,
    attacks: Sequence[AttackChoice] = DEFAULT_ATTACKS,
    mode: Mode = "online",
    fprs: Sequence[float] | None = None,
    prior: float | ArrayLike = 0.5,
    claim: PrivacyClaim | Mapping[str, float] | None = None,
    threshold: ThresholdRule = "mean",
    groups: Mapping[str, ArrayLike] | None = None,
    seed: int = 0,
    title: str = "Membership audit from saved evidence",
    progress: bool | None = None,
) -> AuditResult:
    """Audit from evidence alone: losses that were saved earlier, or elsewhere.

    Args:
        evidence: losses of the target and of the shadow models.
        members: [N] which records trained the target, in the order of ``evidence.ids``, or their ids as text; without
            it records are scored and ranked, but nothing is measured.
        attacks: names, attack objects, or mappings with ``name`` and the attack's parameters; ``"best"`` picks one by
            simulated targets and reports why. By default the paper's attacks and the strongest one, ``"stacked"``;
            what cannot use the pool is then left out, and the report says why.
        mode: ``"online"`` or ``"offline"``, for the attacks given by name.
        fprs: wanted false-positive rates.
        prior: λ, the share of members that the attacker expects: one number, or one per record.
        claim: a stated (ε, δ) to judge: a `PrivacyClaim`, or a mapping with ``epsilon`` and perhaps ``delta``.
        threshold: ``"mean"`` or the careful ``"max"`` of the simulated targets' thresholds.
        groups: columns that divide the records, by name, such as ``{"sex": […], "age": […]}``, one value per record.
            The report shows the leak of each group. Numbers with many different values are cut into quartiles.
        seed: of every random choice.
        title: of the report.
        progress: whether to show bars; by default on a terminal, and elsewhere a plain line now and then.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]],
        ...                     shadow_members=[[1, 0], [0, 1]])
        >>> audit_evidence(evidence, attacks=["base"]).records()["base_rank"]
        array([1, 2])
    """
    claim = as_claim(claim)
    mask = None if members is None else as_members(members, (evidence.records,), place="members", ids=evidence.ids)
    # unknown members do not limit the rates, but a pool cannot place a threshold finer than one of its non-members
    counted = evidence.shadow_members[0] if mask is None and evidence.models else mask
    wanted = () if counted is None else checked_rates(fprs, counted)
    columns = as_groups(groups, evidence.records)
    chosen = default_attacks(attacks, DEFAULT_ATTACKS, evidence.models)
    made = chosen_attacks(chosen, mode=mode, prior=prior, seed=seed, fprs=wanted)
    left_out: dict[str, str] = {}
    if evidence.models < 2:
        have = {"public": evidence.public is not None, "trace": evidence.target_trace is not None}
        named = attacks is not DEFAULT_ATTACKS
        made, left_out = check_attacks(made, evidence.shadow_members, named=named, **have)
    shared = Finding() if mask is None else shared_losses(evidence, mask)
    context = Context(
        title=title,
        shadows=evidence.models,
        mode=mode,
        seed=seed,
        settings={"prior": prior_text(prior), "threshold": threshold},
        versions=library_versions(),
        warnings=shared.warnings,
        notes=(*evidence.notes, *shared.notes),
    )
    return audit_view(
        evidence,
        made,
        members=mask,
        labels=evidence.labels,
        fprs=wanted,
        context=context,
        claim=claim,
        threshold=threshold,
        progress=progress,
        left_out=left_out,
        prior=prior,
        groups=columns,
    )
