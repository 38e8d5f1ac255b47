"""What all audits share: checks before the training, the models, units, and from a view to a result."""

from __future__ import annotations

import dataclasses
import logging
import platform
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.attacks.attack import Attack, View
from glasshouse.auditing.options import Attacker, Evaluation
from glasshouse.auditing.result import AuditResult
from glasshouse.compute import Compute, spreading_over
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.optional import installed_version
from glasshouse.core.progress import note_work, showing
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import Units, as_members, random_subsets, select
from glasshouse.data.design import Design, Draw, as_design
from glasshouse.evaluation import (
    AttackOutcome,
    Known,
    RandomMembers,
    VerdictAttack,
    check_random_members,
    judge_claim,
    run_attack,
    target_mismatch,
    verdict_attack,
)
from glasshouse.evaluation.best import AttackCache, Best
from glasshouse.evaluation.checks.members import doubtful_members, same_models, swapped_members
from glasshouse.evaluation.checks.random_members import few_columns, label_columns
from glasshouse.evaluation.declared import Coins, declared_draw, with_own_coins, without_draw
from glasshouse.evaluation.intervals import Sampled, sampling_intervals
from glasshouse.evaluation.metrics import resolvable
from glasshouse.evaluation.privacy.claim import as_claim
from glasshouse.evaluation.quick_estimate import FEW_MODELS, quick_estimate_of
from glasshouse.evaluation.risk import UnitRisk, unit_risk
from glasshouse.evaluation.roc import allowed_wrong, check_both_kinds
from glasshouse.evidence import Evidence
from glasshouse.evidence.evidence import UnitView
from glasshouse.io.limits import lacks_memory
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.query.losses import OwnLoss
from glasshouse.report import Context, Surroundings
from glasshouse.training.trainer import Trainer

CHEAP_ATTACKS = ("loss", "class-loss", "modified-entropy", "hinge", "public-quantile", "trace")  # need no shadow model
PART_ATTACKS = ("base-parts", "lira-parts")  # where the loss of a record has parts
TOKEN_ATTACKS = ("zlib", "min-k", "min-k++", "wbc", "ez-mia")  # the same, and no shadow model is needed
REFERENCE_ATTACKS = (*CHEAP_ATTACKS, "calibration", "base", "rmia")  # one reference model is enough

_NO_PUBLIC = (
    "it learns from records that are known not to have trained the target: pass "
    "attacker=Attacker(public=mask), or public=0.3 to set some of the non-members aside."
)
_NO_TRACE = (
    "it needs losses from the training of the target: record them with glasshouse.LossTrace, and pass "
    "attacker=Attacker(trace=…)."
)
_CHEAP = (  # what an audit with one or no shadow model does not say
    "trained: the figures are a lower bound, and attacks with more shadow models may find far more. There are no "
    "simulated targets, and so no thresholds, decisions or probabilities."
)
_NO_ESTIMATE = (
    "What eight shadow models would find is not estimated: there are too few records, the figures lie outside of the "
    "problems that the estimate was learned from, members differ from non-members without the model, or the target "
    "does not give the probabilities of classes."
)
_TRANSDUCTIVE = 'Or it was trained on the whole graph with a mask of members: then pass setting="transductive".'
_LOG = logging.getLogger("glasshouse")


def checked_members(
    model: Any,
    members: ArrayLike | None,
    count: int,
    *,
    seed: int,
    ids: TextArray | None = None,
    units: Units | None = None,
) -> BoolArray:
    """[N] which records trained the target, or will train it: without a model, by default a random half."""
    if members is None:
        if model is not None:
            raise InputError(
                "members: missing; a given model needs the records that trained it. Pass members=mask, one True or "
                "False per record, or the ids of these records."
            )
        members = random_subsets(count, models=1, fraction=0.5, seed=seed, units=units)[0]
    return as_members(members, (count,), place="members", ids=ids)


def train_shadows(
    pool: ShadowPool,
    trainer: Trainer | None,
    *,
    population: Any,
    model: Any,
    members: BoolArray,
    seed: int,
    progress: bool | None,
) -> tuple[Any, float]:
    """Train the shadow models that a folder keeps, and then the target on its members [N] if none is given.

    Gives the target, and the seconds spent on shadow models so far; those that are not kept are trained when queried.
    """
    began = time.perf_counter()
    if pool.folder is not None:
        pool.train(progress=progress)
    seconds = time.perf_counter() - began
    if model is None and trainer is not None:
        note_work("The target was being trained.")
        with showing(progress, label="Training of the target"):
            model = trainer(population, members, seed_for(seed, "target"))
    return model, seconds


def settings_of(trainer: Trainer | None, attacker: Attacker, evaluation: Evaluation) -> dict[str, Any]:
    """What a report shows about how an audit was run."""
    own = attacker.query.loss if isinstance(attacker.query, OwnLoss) else None
    return {
        "trainer": "none: the model was given" if trainer is None else described(trainer),
        "shadow trainer": "as the target's" if attacker.trainer is None else described(attacker.trainer),
        "prior": prior_text(attacker.prior),
        "training share": attacker.fraction,
        "threshold": evaluation.threshold,
        **({"answers": "labels alone"} if attacker.labels_only else {}),
        **({} if own is None else {"loss": getattr(own, "__name__", type(own).__name__)}),
    }


def prior_text(prior: float | ArrayLike) -> Any:
    """A prior as a report shows it: the number, or how many there are."""
    return prior if np.ndim(prior) == 0 else f"one for each of {np.size(prior)} records"


def check_attacks(
    attacks: Mapping[str, Attack[Any]],
    members: BoolArray,
    *,
    named: bool = True,
    classless: str = "",  # what has no classes: "a regression", or "a loss of your own"
    public: bool = False,  # whether some records are known to be outside
    trace: bool = False,  # whether losses were recorded while the target was trained
) -> tuple[dict[str, Attack[Any]], dict[str, str]]:
    """The attacks that can use a pool with these members [K, N], before it is trained, and why the others cannot.

    If the user named the attacks, one that cannot is refused; all of them are reported at once. Those of the default
    list are left out instead, unless none is left.
    """
    if all(attack.knows_truth for attack in attacks.values()):
        raise InputError(
            "attacks: all of them know who trained the target, or its training, as a limit; name one that does not."
        )
    reasons: dict[str, Sequence[str]] = {}
    for name, attack in attacks.items():
        try:
            attack.check(members)
            if classless and attack.needs_classes:
                raise InputError(f"it cannot attack {classless}: {attack.needs_classes}. Leave it out.")
            raise_faults([_NO_PUBLIC] if attack.needs_public and not public else [])
            raise_faults([_NO_TRACE] if attack.needs_trace and not trace else [])
        except InputError as error:
            reasons[name] = error.faults
    if named or len(reasons) == len(attacks):
        raise_faults([f"attacks: {name}: {fault}" for name, faults in reasons.items() for fault in faults])
    kept = {name: attack for name, attack in attacks.items() if name not in reasons}
    return kept, {name: " ".join(faults) for name, faults in reasons.items()}


def default_attacks(attacks: Any, usual: Sequence[str], models: int, *, parts: bool = False) -> Any:
    """The attacks that were named, or else the usual ones, or with one or no shadow model the cheap ones.

    With a loss of the user's own, which may have ``parts``, also those that look at parts.
    """
    if attacks is not usual or models not in (0, 1):
        return (*usual, *PART_ATTACKS) if attacks is usual and parts else attacks
    return (*(REFERENCE_ATTACKS if models else CHEAP_ATTACKS), *(TOKEN_ATTACKS if parts else ()))


class _Judged(NamedTuple):
    """What is judged: units [U], or rows where there are none."""

    view: Any
    members: BoolArray | None
    labels: NDArray[Any] | None
    groups: Mapping[str, NDArray[Any]]
    known: Known
    draw: Draw | None = None  # how members were chosen, as declared; None tests whether they look drawn at random
    surroundings: Surroundings | None = None  # of the records, where they are nodes of a graph
    left_out: int = 0  # how many are not judged, so that strata have equal shares of members


def audited_draw(
    design: Design | str | Mapping[str, Any] | None,
    *,
    members: BoolArray | None,  # [N] which of all records trained the target
    units: Units | None,  # whose records all are
    columns: Mapping[str, NDArray[Any]],  # [N] by name, which the design may name
    at: IntArray,  # positions of the audited records
) -> Draw | None:
    """The draw of the audited units or records by a declared design of all; None if none is declared."""
    declared = as_design(design)
    if declared is None or members is None:
        return None
    draw = declared.drawn(len(members), units, columns)
    inside = members if units is None else units.members(members, place="members")
    rows = at if units is None else units.rows[at]
    rows = rows[np.sort(np.unique(rows, return_index=True)[1])]  # audited units are in the order of their first record
    return dataclasses.replace(draw.at(rows), counted=draw.count_chance(inside))


def _by_unit(rows: _Judged, units: Units | None, *, seed: int) -> _Judged:
    """Units in place of their rows; a unit has a label only where it is the same in all of its rows.

    Where a declared draw has strata with unequal shares of members, only units that make them equal are kept; the
    seed is of who is left out, and of the sketch of wide features.
    """
    view, members, labels, groups, known, draw, surroundings, left_out = rows
    if draw is not None and members is not None:
        inside = members if units is None else units.members(members, place="members")
        kept = draw.even(inside, seed=seed)
        if kept is not None:
            draw, left_out = draw.at(kept), int((~kept).sum())
            at = np.flatnonzero(kept if units is None else kept[units.rows])
            view, members, labels = view.of_records(at), members[at], None if labels is None else labels[at]
            groups = {name: values[at] for name, values in groups.items()}
            known = dataclasses.replace(known, audited=at if known.audited is None else known.audited[at])
            surroundings = None if surroundings is None else surroundings.of_records(at)
            units = None if units is None else units.at(at)
    if units is None:
        return _Judged(view, members, labels, groups, known, draw, surroundings, left_out)
    return _Judged(
        view=UnitView(view, units),
        members=None if members is None else units.members(members, place="members"),
        labels=units.column(labels) if labels is not None and units.constant(labels) else None,
        groups={name: units.column(values) for name, values in groups.items()},
        known=Known(x=_columns_of(known, units, seed=seed)),
        draw=draw,
        left_out=left_out,
    )


def _columns_of(known: Known, units: Units, *, seed: int) -> FloatArray:
    """[U, F] what is known about units without the target: means over their rows, and how many rows they have."""
    columns = [units.sizes[:, None].astype(np.float64)]
    at = np.arange(len(units.rows)) if known.audited is None else known.audited
    if known.x is not None:
        columns.append(units.means(few_columns(select(known.x, at), generator(seed, "unit features")).T).T)
    if known.labels is not None:
        columns.append(units.means(label_columns(known.labels)[at].T).T)
    return np.hstack(columns)


def audit_view(
    rows: View,
    attacks: Mapping[str, Attack[Any]],
    *,
    members: BoolArray | None,  # [N] which audited records trained the target; None where not known
    labels: np.ndarray | None,  # [N] of the audited records, as their owner writes them
    evaluation: Evaluation,  # with rates that were checked, and with the groups of the audited records, [N] each
    context: Context,
    units: Units | None = None,  # whose the audited records are; what is judged are then units
    draw: Draw | None = None,  # how the audited members were drawn, as declared
    progress: bool | None = None,
    left_out: Mapping[str, str] | None = None,  # attacks that were left out beforehand, each with the reason
    surroundings: Surroundings | None = None,  # of the records, where they are nodes of a graph
    known: Known | None = None,  # about the records without the target; by default their labels
    prior: float | ArrayLike = 0.5,  # one number, or one per record of the population
    estimated: bool = True,  # whether what eight models would find may be estimated: not from labels alone
    sampled: Sampled | None = None,  # how the audited records were drawn from all; None if they were not
    compute: Compute | None = None,  # where long steps of the attacks run
    withheld: str = "",  # why no ε can be given, if that is known beforehand
) -> AuditResult:
    """From a view to a result: every attack, what all of them show about ε, and warnings if members look swapped.

    If one attack fails, the others still run: the shadow models are already trained.
    """
    columns = {name: np.asarray(values) for name, values in (evaluation.groups or {}).items()}
    judged = _Judged(rows, members, labels, columns, known or Known(labels=labels), draw, surroundings)
    judged = _by_unit(judged, units, seed=context.seed or 0)
    view, members, labels, groups, known, draw, surroundings, left_out_units = judged
    if units is not None:
        many = f"{len(units)} {units.word}s with {len(units.rows)} records, at most {int(units.sizes.max())} of one"
        context = dataclasses.replace(context, settings={**context.settings, "unit": units.word, "units": many})
    evidence, fprs = view.evidence, tuple(evaluation.fprs or ())
    if left_out_units and members is not None:  # fewer non-members are left than the rates were checked for
        fprs = tuple(fpr for fpr in fprs if allowed_wrong(fpr, int((~members).sum())) >= 1)
        if np.ndim(prior):
            raise InputError("prior: give one number; units are left out so that all strata have equal shares.")
    expected = prior if np.ndim(prior) == 0 else view.audited(prior)
    advice = _TRANSDUCTIVE if context.settings.get("setting") == "inductive" else ""
    unlike = target_mismatch(evidence, prior=expected, advice=advice)
    outcomes: dict[str, AttackOutcome] = {}
    again = isinstance(view, UnitView) or any(isinstance(attack, Best) for attack in attacks.values())
    cache = AttackCache(view, progress=progress, keep=again)
    failed: dict[str, str] = {}
    with spreading_over(compute):
        for name, attack in attacks.items():
            try:
                outcomes[name] = run_attack(
                    attack,
                    view,
                    fprs=fprs,
                    members=members,
                    threshold=evaluation.threshold,
                    progress=progress,
                    cache=cache,
                    prior=prior,
                    mismatch=bool(unlike),
                    draw=draw,
                )
            except InputError as error:
                failed[name] = " ".join(error.faults)
            except Exception as error:  # whatever it is, the figures of the other attacks must not be lost
                if lacks_memory(error):
                    failed[name] = f"there is not enough memory for it ({error}). Raise the limit, as by --memory 8GiB."
                else:
                    _LOG.exception("The attack %s failed.", name)
                    failed[name] = f"it failed: {type(error).__name__}: {error}"
    if not outcomes:
        raise InputError(*[f"attacks: {name}: {reason}" for name, reason in failed.items()])
    if sampled is not None and members is not None:
        for name, outcome in outcomes.items():
            whole = sampling_intervals(outcome.scores, members, sampled, fprs=fprs)
            outcomes[name] = dataclasses.replace(outcome, sampling_intervals=whole)
    found = privacy = drawn = quick_estimate = declared = None
    if members is not None:
        if draw is None:
            drawn, context = _drawn(known, evidence, members, context)
        else:
            declared = declared_draw(known, evidence, members, draw, left_out=left_out_units, seed=context.seed or 0)
        swapped = swapped_members(evidence.target_loss, members, context.train_accuracy, context.test_accuracy)
        # swapped members do not fit the target either
        doubts = same_models(evidence) or swapped or doubtful_members(evidence, members)
        blind = (drawn.warning(),) if drawn is not None and drawn.found else ()
        context = dataclasses.replace(context, warnings=(*blind, *doubts, *context.warnings))
        estimated &= units is None and not (draw is not None and draw.coins)  # canaries are unlike other records
        random = not doubts and (drawn is None or not drawn.found)
        quick_estimate = quick_estimate_of(evidence, members) if random and estimated else None
        found = verdict_attack(outcomes, members, fprs=fprs, seed=context.seed or 0, draw=draw)
        attackers = {name: outcome for name, outcome in outcomes.items() if not outcome.attack.knows_truth}
        guessers = {name: outcome.scores for name, outcome in attackers.items()}
        practice = {name: one.simulated.shares_right for name, one in attackers.items() if one.simulated}
        unit = str(context.settings.get("unit") or ("record" if surroundings is None else "node"))
        coins = Coins.of(draw, guessers, members, practice=practice, unit=unit)
        privacy = judge_claim(
            as_claim(evaluation.claim),
            coins.scores,
            members=coins.members,
            practice=coins.practice,
            unit=coins.unit,
            leak=found.test.leak,
            withheld=withheld or (coins.withheld if drawn is None else drawn.withheld),
        )
        declared = None if declared is None else with_own_coins(declared, coins, delta=privacy.delta)
        if declared is not None and not declared.random:
            declared = dataclasses.replace(
                declared, without=without_draw(attackers, members, found.attack, unit=unit, fprs=fprs)
            )
    if evidence.models < FEW_MODELS:
        had = "One reference model was" if evidence.models else "No shadow models were"
        estimate = [] if members is None else [_NO_ESTIMATE if quick_estimate is None else quick_estimate.sentence()]
        context = dataclasses.replace(context, notes=(f"{had} {_CHEAP}", *estimate, *context.notes))
    return AuditResult(
        evidence=evidence,
        outcomes=outcomes,
        members=members,
        labels=labels,
        fprs=fprs,
        verdict_attack=found,
        privacy=privacy,
        context=context,
        surroundings=surroundings,
        groups={} if draw is not None and draw.cluster else groups,  # their tests need single units
        words=evaluation.words,
        left_out={**(left_out or {}), **failed},
        random_members=drawn,
        mismatch=unlike,
        quick_estimate=quick_estimate,
        by_unit=view if isinstance(view, UnitView) else None,
        declared=declared,
        risk=_risk(outcomes, cache, found, fprs[0]) if isinstance(view, UnitView) and fprs else None,
    )


def _risk(
    outcomes: Mapping[str, AttackOutcome], cache: AttackCache, found: VerdictAttack | None, fpr: float
) -> UnitRisk | None:
    """The risk of each unit, by the verdict attack; None without simulated targets."""
    tried = {name: one for name, one in outcomes.items() if one.simulated is not None and not one.attack.knows_truth}
    if not tried:
        return None
    name = found.attack if found is not None and found.attack in tried else next(iter(tried))
    scored = {each: cache.simulated(one.attack) for each, one in tried.items()}
    return unit_risk(scored, attack=name, fpr=fpr)


def _drawn(
    known: Known, evidence: Evidence, members: BoolArray, context: Context
) -> tuple[RandomMembers | None, Context]:
    """Whether members were drawn at random, and the context with a note if features are of a kind that fails here."""
    try:
        return check_random_members(known, evidence, members, seed=context.seed or 0), context
    except Exception as error:  # the shadow models are trained and the attacks have run: nothing of it must be lost
        if lacks_memory(error):
            why = "there is not enough memory for it; raise the limit, as by --memory 8GiB"
        else:
            _LOG.exception("The test whether members were drawn at random failed.")
            why = f"{type(error).__name__}: {error}"
        note = f"Whether members were drawn at random could not be tested ({why}); ε assumes that they were."
        return None, dataclasses.replace(context, notes=(*context.notes, note))


def checked_rates(
    fprs: Sequence[float] | None, members: BoolArray, *, of: str = "audited records"
) -> tuple[float, ...]:
    """The false-positive rates to evaluate at; those that cannot be measured are refused before the long work."""
    check_both_kinds(members, of=of)
    return resolvable(fprs, int((~members).sum()))


def library_versions(*more: str) -> dict[str, str]:
    """Versions of Python, of the libraries behind every figure, and of the packages in ``more``."""
    packages = ("glasshouse", "numpy", "scipy", "scikit-learn", "torch", *more)
    found = {package: installed_version(package) or "not installed" for package in packages}
    return {"python": platform.python_version(), **found}
