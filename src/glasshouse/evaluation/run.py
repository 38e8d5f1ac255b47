"""Run an attack on a view: score the target, estimate thresholds from simulated targets, evaluate."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import BoolArray
from glasshouse.attacks.attack import Attack, Judgement, View, seen_by
from glasshouse.errors import InputError
from glasshouse.evaluation.believed import posterior_doubt
from glasshouse.evaluation.best import Best
from glasshouse.evaluation.discoveries import conformal_p_values
from glasshouse.evaluation.fewer import compare_references
from glasshouse.evaluation.metrics import evaluate
from glasshouse.evaluation.outcome import AttackOutcome
from glasshouse.evaluation.simulated import simulated_figures
from glasshouse.evaluation.subpools import steadiness
from glasshouse.evaluation.thresholds import Policy, Scored, thresholds_from
from glasshouse.evaluation.trials import Trials
from glasshouse.evaluation.tried import tried_targets
from glasshouse.numerics import not_finite
from glasshouse.progress import note_work, showing

__all__ = ["run_attack"]

_UNLIKE = "the target is unlike the shadow models"


def run_attack(
    attack: Attack[Any],
    view: View,
    *,
    fprs: Sequence[float],
    members: BoolArray | None = None,
    policy: Policy = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
    trials: Trials | None = None,
    prior: float | ArrayLike = 0.5,
    unlike: bool = False,
) -> AttackOutcome:
    """Score the target, estimate thresholds from the pool, and evaluate if the members are known.

    For a target unlike the shadow models there are no thresholds, and no score is called a probability.

    Args:
        attack: the attack to run; `Best` picks one first, and the outcome is that of the picked one.
        view: what it looks at: evidence about records, or a scene, of which attacks on records see only the evidence.
        fprs: wanted false-positive rates.
        members: [N] which audited records trained the target; no attack sees it.
        policy: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        progress: whether to show a bar.
        trials: of the same pool; an attack that was tuned and tried before is not tuned and tried again.
        prior: λ, the share of members that is expected, one number or one per record of the population, for attacks
            that have no prior of their own.
        unlike: whether the target is already known to be unlike the shadow models.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evidence import Evidence
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> run_attack(LossThreshold(), evidence, fprs=[]).ranks
        array([1, 2])
    """
    trials = Trials(view, progress=progress) if trials is None else trials
    if isinstance(attack, Best):
        began = time.perf_counter()
        pick = attack.pick(view, trials)
        picking = time.perf_counter() - began
        outcome = run_attack(
            pick.attack,
            view,
            fprs=fprs,
            members=members,
            policy=policy,
            confidence=confidence,
            progress=progress,
            trials=trials,
            prior=prior,
            unlike=unlike,
        )
        note = " ".join([pick.reason, outcome.note]).strip()
        return dataclasses.replace(outcome, note=note, seconds=picking + outcome.seconds, picked=pick.name)
    seen = seen_by(attack, view)
    started = time.perf_counter()
    attack = trials.tuned(attack)
    with showing(progress, label=f"Attack {attack.name}"):
        judgement = attack.judge(seen)
    seconds = time.perf_counter() - started
    scores, note = judgement.scores, judgement.warning
    if (wrong := not_finite(scores)).any():
        record = str(view.ids[wrong][0])
        raise InputError(f"{attack.name}: record {record!r} got a score that is not finite; please report this.")
    simulated: Scored | None = None
    if fprs or members is not None:
        try:
            simulated = trials.simulated(attack)
        except InputError as error:  # the target could be scored, so only what simulated targets would say is missing
            simulable = len(view.shadow_members) >= 2  # without a pool, one sentence for all attacks says so
            note = f"{note} {_no_threshold(attack.name, error)}".strip() if fprs and simulable else note
    expected = _prior_of(attack, view, prior)
    others = len(scores) * (1 - float(np.mean(np.asarray(expected))))
    options: dict[str, Any] = {"policy": policy, "confidence": confidence, "non_members": others}
    unlike = unlike or bool(judgement.warning)  # what was learned from the shadow models does not hold for the target
    tried = None if simulated is None else tried_targets(simulated, fprs)
    thresholds = () if simulated is None else thresholds_from(simulated, fprs, tried=tried, **options)
    doubt = ""
    if attack.posterior:
        doubt = _UNLIKE if unlike else posterior_doubt(scores, simulated, prior=expected)
    note_work("An attack had been run.")
    outcome = AttackOutcome(
        attack,
        scores,
        () if unlike else thresholds,
        None if members is None else evaluate(scores, members, fprs=fprs, confidence=confidence),
        seconds,
        note,
        {**judgement.details, **_sampler_figures(judgement, members)},
        judgement.queries,
        None if simulated is None else simulated_figures(simulated, fprs, tried=tried),
        doubt,
        thresholds if unlike else (),
    )
    if simulated is None:
        return outcome
    first = outcome.first_threshold
    flag_scores = attack.flag_scores(seen)
    return dataclasses.replace(
        outcome,
        flag_scores=flag_scores,
        prior=float(np.mean(np.asarray(expected))),
        p_values=conformal_p_values(flag_scores, simulated),
        steady=None if first is None else steadiness(attack, seen, first),
        fewer=compare_references(attack, seen, simulated, fprs),
    )


def _prior_of(attack: Attack[Any], view: View, prior: float | ArrayLike) -> float | ArrayLike:
    """The prior of the audited records, [] or [N], that an attack's scores are meant for: its own, or the given one."""
    own = getattr(attack, "prior", None)
    if own is not None and (np.ndim(own) == 0 or attack.kind == "records"):
        return np.asarray(own)
    wide = prior if own is None else own  # one number per record of the population
    return wide if np.ndim(wide) == 0 else view.audited(wide)


def _no_threshold(name: str, error: InputError) -> str:
    """Why an attack that could score the target has no threshold."""
    reason = str(error).split(" Train ")[0].rstrip(".")  # how many to train is in the next sentence
    return (
        f"{name} has no threshold: {reason}. Simulated targets have two shadow models fewer than the target; train "
        f"more shadow models."
    )


def _sampler_figures(judgement: Judgement, members: BoolArray | None) -> dict[str, float]:
    """Share of the sampled members that are members, and share of the members that are sampled; NaN if none are."""
    if judgement.sampled is None or members is None:
        return {}
    hits = int((judgement.sampled & members).sum())
    sampled, true = int(judgement.sampled.sum()), len(judgement.sampled) * int(members.sum())
    return {
        "sampler_precision": hits / sampled if sampled else float("nan"),
        "sampler_recall": hits / true if true else float("nan"),
    }
