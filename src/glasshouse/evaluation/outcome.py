"""What came of one attack: its scores, the thresholds it would use, and how well it did where the truth is known."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.stats import rankdata

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import Attack
from glasshouse.errors import InputError
from glasshouse.evaluation.best import Best, Scored
from glasshouse.evaluation.metrics import Metrics, evaluate
from glasshouse.evaluation.privacy import Guesses
from glasshouse.evaluation.thresholds import Policy, Threshold, estimate_thresholds, thresholds_from
from glasshouse.evidence import Evidence
from glasshouse.progress import note_work

__all__ = ["AttackOutcome", "no_threshold", "run_attack"]


class Named(Protocol):
    """What an outcome needs to know of its attack; beside that it is a dataclass."""

    name: ClassVar[str]


@dataclass(frozen=True, eq=False)
class AttackOutcome:
    """One attack against one target.

    Args:
        attack: with its parameters, tuned ones as they were settled; a graph's attacks are of another kind.
        scores: [N], higher means member.
        thresholds: from simulated targets, one for each wanted FPR that tied scores let be reached; where they let
            none, one for the first rate that can be; empty where there are too few shadow models.
        note: why there are none, why this attack was picked, or why not to believe it; mostly empty.
        details: figures that only this attack has, such as a sampler's precision.
        metrics: against the true members; None where they are not known.
        seconds: spent on scoring the target, with what is picked, tuned or learned on simulated targets first;
            thresholds are not counted.
        queries: how often models were asked for it; None where nobody counted.
    """

    attack: Named
    scores: FloatArray
    thresholds: tuple[Threshold, ...]
    metrics: Metrics | None
    seconds: float
    note: str = ""
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)
    queries: QueryCount | None = None

    @property
    def ranks(self) -> FloatArray:
        """[N], 1 for the most exposed record; equal scores share a rank."""
        return np.asarray(rankdata(-self.scores, method="min"), dtype=np.int64)

    def guesses(self, members: BoolArray) -> tuple[Guesses, ...]:
        """How many records each threshold calls members, and how many of them are."""
        called = [threshold.decide(self.scores) for threshold in self.thresholds]
        return tuple(Guesses(correct=int((who & members).sum()), made=int(who.sum())) for who in called)


def no_threshold(name: str, error: InputError) -> str:
    """Why an attack that could score the target has no threshold."""
    told = str(error).split(" Train ")[0].rstrip(".")  # how many to train is said of the pool here
    return (
        f"{name} has no threshold: {told}. Simulated targets have two shadow models fewer than the target; train more."
    )


def run_attack(
    attack: Attack,
    evidence: Evidence,
    *,
    fprs: Sequence[float],
    members: BoolArray | None = None,
    policy: Policy = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
    simulated: Scored | None = None,
) -> AttackOutcome:
    """Score the target, estimate thresholds from the pool, and evaluate where the members are known.

    Args:
        attack: to run; `Best` picks one first, and the outcome is of that one.
        evidence: to run it on.
        fprs: wanted false-positive rates.
        members: [N] who trained the target; reaches no attack.
        policy: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        progress: whether to show a bar.
        simulated: scores of the simulated targets and who trained them, where they are already there.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> run_attack(LossThreshold(), evidence, fprs=[]).ranks
        array([1, 2])
    """
    if isinstance(attack, Best):
        began = time.perf_counter()
        pick = attack.pick(evidence)
        picking = time.perf_counter() - began
        outcome = run_attack(
            pick.attack,
            evidence,
            fprs=fprs,
            members=members,
            policy=policy,
            confidence=confidence,
            simulated=pick.simulated,
        )
        note = " ".join([pick.reason, outcome.note]).strip()
        return dataclasses.replace(outcome, note=note, seconds=picking + outcome.seconds)
    started = time.perf_counter()
    attack = attack.tuned(evidence)
    scores = attack.score(evidence)
    seconds = time.perf_counter() - started
    if not np.isfinite(scores).all():
        record = str(evidence.ids[~np.isfinite(scores)][0])
        raise InputError(f"{attack.name}: record {record!r} got a score that is not a number; please report this.")
    thresholds: tuple[Threshold, ...] = ()
    note = attack.warning(evidence)
    if simulated is not None:
        thresholds = thresholds_from(simulated, fprs, policy=policy, confidence=confidence)
    elif fprs:
        try:
            thresholds = estimate_thresholds(
                attack, evidence, fprs, policy=policy, confidence=confidence, progress=progress
            )
        except InputError as error:  # the target could be scored, so only the thresholds are missing
            note = f"{note} {no_threshold(attack.name, error)}".strip()
    metrics = None if members is None else evaluate(scores, members, fprs=fprs, confidence=confidence)
    note_work("An attack had been run.")
    return AttackOutcome(attack, scores, thresholds, metrics, seconds, note, queries=attack.queries(evidence))
