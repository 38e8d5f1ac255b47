"""The one call: from a model, its data and a way to train it, to a verdict."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.attack import AttackChoice, chosen_attacks
from glasshouse.auditing.options import Attacker, Evaluation, check_options, documented
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import (
    audit_view,
    audited_draw,
    check_attacks,
    checked_members,
    checked_rates,
    default_attacks,
    library_versions,
    prior_text,
    settings_of,
    train_shadows,
)
from glasshouse.auditing.trials import audit_and_advise
from glasshouse.compute import Compute
from glasshouse.core.errors import InputError
from glasshouse.data import Population, as_members, check_members_fit, check_population, select
from glasshouse.evaluation import Known
from glasshouse.evaluation.checks.members import Finding, shared_losses, shared_records
from glasshouse.evaluation.groups import as_groups
from glasshouse.evaluation.run import with_public_records
from glasshouse.evidence import Evidence, Mode, QueryOptions, collect
from glasshouse.evidence.evidence import public_mask
from glasshouse.evidence.trace import traced_losses
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import check_model
from glasshouse.query.labels_only import LabelOnly, predicted_labels
from glasshouse.query.losses import Loss, OwnLoss, with_own_loss
from glasshouse.query.regress import predict
from glasshouse.query.remote import RemoteModel
from glasshouse.report import Context
from glasshouse.training.sklearn import SklearnTrainer, as_trainer, is_fitted, stored_records
from glasshouse.training.trainer import Trainer

# The paper's, and the strongest one. `shrunk-lira` finds weak leaks of Gaussian margins a little more often, but on ten
# audits of digits and Adult its AUC was below that of `base` every time.
DEFAULT_ATTACKS = ("base", "lira", "rmia", "stacked")

_FITTED = (
    "The given estimator was fitted already. What is audited is another one of its kind, which a part of the records "
    "trained: to audit the fitted one, give it as model, with members."
)


@documented
def audit(
    population: Population,
    *,
    model: Any = None,
    members: ArrayLike | None = None,
    trainer: Trainer | Any = None,
    attacks: Sequence[AttackChoice] = DEFAULT_ATTACKS,
    shadows: int = 8,
    loss: Loss | None = None,
    mode: Mode = "online",
    attacker: Attacker = Attacker(),
    evaluation: Evaluation = Evaluation(),
    pool: Path | str | None = None,
    compute: Compute | None = None,
    seed: int = 0,
    title: str = "Membership audit",
    about: str = "",
    progress: bool | None = None,
    advise: float | None = None,
) -> AuditResult:
    """Train shadow models, attack the target, and measure which of its training records can be found from outside.

    Args:
        population: the records, members and non-members.
        model: the target: a torch module that gives logits, an estimator with ``predict_proba``, or a callable
            ``x -> logits``; for a regression what gives predictions. None trains one with ``trainer`` on ``members``.
            A given model needs its ``members``.
        trainer: ``(population, members, seed) -> model``, as the target was trained; or an estimator, which stands for
            ``SklearnTrainer(estimator=…)``. Not needed for a given model and no shadow models.
        shadows: how many shadow models, in complementary pairs. 0 trains none and 1 a single reference model: a quick
            look with weaker attacks, and an estimate of what eight would find.
        loss: ``(model, batch) -> losses`` [B], or [B, T] of the parts of each record (tokens, labels, outputs): the
            negative logarithm of the likelihood that the model gives to each of ``batch.x``, ``batch.y``. By default
            that of the class, or of the value of a regression. `TokenLoss` and `MultiLabelLoss` are two that are ready.

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
    check_options(attacker, evaluation, "records")
    if advise is not None:
        same = {name: value for name, value in locals().items() if name not in ("population", "advise")}
        return audit_and_advise(audit, population, budget=advise, **same)
    if trainer is None and (shadows or model is None):
        raise InputError(
            "trainer: missing; shadow models must be trained as the target was. Pass trainer=SklearnTrainer(…), "
            "TorchTrainer(…), or a function (population, members, seed) -> model; or shadows=0 to train none."
        )
    attacker = dataclasses.replace(attacker, query=with_own_loss(attacker.query, loss, population))
    trainer = None if trainer is None else as_trainer(trainer)
    other = None if attacker.trainer is None else as_trainer(attacker.trainer, place="attacker.trainer")
    for one in (trainer, other):
        if isinstance(one, SklearnTrainer):
            one.check(population, labels_only=attacker.labels_only)
    units = population.unit
    mask = checked_members(model, members, len(population), seed=seed, ids=population.ids, units=units)
    check_members_fit(population.x, mask, given=members)
    if isinstance(model, RemoteModel):
        model.plan(population.x, times=attacker.query.votes if isinstance(attacker.query, LabelOnly) else 1)
    doubts = () if model is None else _check_target(model, population, attacker)  # before the long work
    outside = public_mask(attacker.public, mask, seed=seed, ids=population.ids, units=units)
    judged = np.flatnonzero(~outside)
    units = None if units is None else units.at(judged)
    fprs = checked_rates(
        evaluation.fprs, mask[judged] if units is None else units.members(mask[judged], place="members")
    )
    columns = as_groups(evaluation.groups, len(population))
    draw = audited_draw(
        evaluation.design,
        members=mask,
        units=population.unit,
        columns=columns if population.own_loss else {**columns, "label": population.labels},
        at=judged,
    )
    groups = {name: values[judged] for name, values in columns.items()}
    words = None if evaluation.words is None else [evaluation.words[at] for at in judged.tolist()]
    public, prior = attacker.public is not None, attacker.prior
    if public and np.ndim(prior):
        prior = np.asarray(prior)[judged]
    moments = traced_losses(attacker.trace, len(population), ids=population.ids)
    chosen = default_attacks(attacks, DEFAULT_ATTACKS, shadows, parts=loss is not None)
    made = chosen_attacks(chosen, mode=mode, prior=prior, seed=seed, fprs=fprs)
    theirs: Any = other or trainer  # None is never asked to train: there are no shadow models then
    plan = ShadowPool.plan(
        population,
        theirs,
        shadows=shadows,
        fraction=attacker.fraction,
        seed=seed,
        folder=pool if shadows else None,
        compute=compute,
        how=attacker.query,
    )
    made, left_out = check_attacks(
        made,
        plan.members[:, judged],
        named=attacks is not DEFAULT_ATTACKS,
        classless="a regression" if population.regression else "a loss of your own" if loss is not None else "",
        public=public,
        trace=moments is not None,
    )
    target, seconds = train_shadows(
        plan, trainer, population=population, model=model, members=mask, seed=seed, progress=progress
    )
    if model is None:
        doubts = _check_target(target, population, attacker)
    keep = any(attack.needs_logits for attack in made.values())
    started = time.perf_counter()
    how = dataclasses.replace(attacker.query or QueryOptions(), keep_logits=keep)
    evidence, answers = collect(target, plan, how=how, progress=progress)
    if moments is not None:
        evidence = evidence.with_trace(moments)
    if public:
        evidence = with_public_records(evidence, population, outside, seed=seed)
    shared = shared_records(population.digests(), mask, population.unit)
    context = Context(
        title=title,
        about=about,
        shadows=shadows,
        mode=mode,
        seed=seed,
        **dict[str, Any](answers.figures(mask)),
        fingerprint=population.fingerprint(),
        shadow_seconds=seconds + time.perf_counter() - started,
        settings=settings_of(trainer, attacker, evaluation),
        versions=library_versions(),
        warnings=(*doubts, *shared.warnings),
        notes=(
            *(
                [_FITTED]
                if model is None and isinstance(trainer, SklearnTrainer) and is_fitted(trainer.estimator)
                else ()
            ),
            *evidence.notes,
            *shared.notes,
            *(target.notes if isinstance(target, RemoteModel) else ()),
        ),
        stored_records=stored_records(target),
    )
    own = population.own_loss  # then there are no labels
    known = Known(x=population.features, labels=None if own else population.y, audited=judged if public else None)
    return audit_view(
        evidence,
        made,
        members=mask[judged],
        labels=None if own else population.labels[judged],
        units=units,
        draw=draw,
        known=known,
        estimated=not attacker.labels_only and loss is None,
        evaluation=dataclasses.replace(evaluation, fprs=fprs, groups=groups, words=words),
        context=context,
        compute=compute,
        progress=progress,
        left_out=left_out,
        prior=prior,
    )


def _check_target(model: Any, population: Population, attacker: Attacker) -> tuple[str, ...]:
    """Ask the given model about a few records as the attacker will; warnings about it."""
    query = attacker.query
    if isinstance(model, RemoteModel):
        model.ask_again(population.x)
        return (*_check_target(model.__call__, population, attacker), *model.warnings)
    if isinstance(query, OwnLoss):
        return query.check(model, population)
    if population.regression:
        predict(model, population, how=query)
    elif attacker.labels_only:
        predicted_labels(model, population, how=query)(select(population.x, np.arange(min(2, len(population)))))
    else:
        return check_model(model, population, how=query)
    return ()


@documented
def audit_evidence(
    evidence: Evidence,
    *,
    members: ArrayLike | None = None,
    attacks: Sequence[AttackChoice] = DEFAULT_ATTACKS,
    mode: Mode = "online",
    attacker: Attacker = Attacker(),
    evaluation: Evaluation = Evaluation(),
    seed: int = 0,
    title: str = "Membership audit from saved evidence",
    progress: bool | None = None,
) -> AuditResult:
    """Audit from evidence alone: losses that were saved earlier, or elsewhere.

    Args:
        evidence: losses of the target and of the shadow models.
        members: [N] which records trained the target, in the order of ``evidence.ids``, or their ids as text; without
            it records are scored and ranked, but nothing is measured.
        attacker: the ``prior`` that the attacker expects; the models are trained and their answers are known.

    Example:
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]],
        ...                     shadow_members=[[1, 0], [0, 1]])
        >>> audit_evidence(evidence, attacks=["base"]).records()["base_rank"]
        array([1, 2])
    """
    check_options(attacker, evaluation, "evidence")
    mask = None if members is None else as_members(members, (evidence.records,), place="members", ids=evidence.ids)
    # unknown members do not limit the rates, but a pool cannot place a threshold finer than one of its non-members
    counted = evidence.shadow_members[0] if mask is None and evidence.models else mask
    units = evidence.unit
    if units is not None and counted is not None:
        counted = units.members(counted, place="members" if mask is not None else "shadow_members")
    fprs = () if counted is None else checked_rates(evaluation.fprs, counted)
    groups = as_groups(evaluation.groups, evidence.records)
    columns = groups if evidence.labels is None else {**groups, "label": evidence.labels}
    draw = audited_draw(evaluation.design, members=mask, units=units, columns=columns, at=np.arange(evidence.records))
    chosen = default_attacks(attacks, DEFAULT_ATTACKS, evidence.models)
    made = chosen_attacks(chosen, mode=mode, prior=attacker.prior, seed=seed, fprs=fprs)
    left_out: dict[str, str] = {}
    if evidence.models < 2:
        made, left_out = check_attacks(
            made,
            evidence.shadow_members,
            named=attacks is not DEFAULT_ATTACKS,
            public=evidence.public is not None,
            trace=evidence.target_trace is not None,
        )
    shared = Finding() if mask is None else shared_losses(evidence, mask)
    context = Context(
        title=title,
        shadows=evidence.models,
        mode=mode,
        seed=seed,
        settings={"prior": prior_text(attacker.prior), "threshold": evaluation.threshold},
        versions=library_versions(),
        warnings=shared.warnings,
        notes=(*evidence.notes, *shared.notes),
    )
    return audit_view(
        evidence,
        made,
        members=mask,
        labels=evidence.labels,
        units=units,
        draw=draw,
        evaluation=dataclasses.replace(evaluation, fprs=fprs, groups=groups),
        context=context,
        progress=progress,
        left_out=left_out,
        prior=attacker.prior,
    )
