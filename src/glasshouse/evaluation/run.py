"""Run an attack on a view: score the target, estimate thresholds from simulated targets, evaluate."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from glasshouse.attacks.attack import Attack, Judgement, QueryCount, View, seen_by
from glasshouse.attacks.by_unit import ByUnit, for_view
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import not_finite
from glasshouse.core.progress import note_work, showing
from glasshouse.core.randomness import generator
from glasshouse.data import Population
from glasshouse.data.design import Draw
from glasshouse.evaluation.best import AttackCache, Best
from glasshouse.evaluation.checks.calibration import calibration_excess, posterior_doubt
from glasshouse.evaluation.checks.random_members import few_columns
from glasshouse.evaluation.intervals import SamplingIntervals
from glasshouse.evaluation.metrics import Metrics, evaluate
from glasshouse.evaluation.pool_size import FewerReferences, compare_references, stability, strength
from glasshouse.evaluation.thresholds import (
    ConformalCounts,
    NotSimulatedError,
    Pair,
    Scored,
    SimulatedFigures,
    SimulatedSummary,
    Threshold,
    ThresholdRule,
    discovery_levels,
    of_each,
    simulated_figures,
    simulating,
    thresholds_from,
)
from glasshouse.evidence import Evidence, PublicRecords
from glasshouse.evidence.simulation import check_simulation


@dataclass(frozen=True, eq=False)
class AttackOutcome:
    """One attack against one target."""

    attack: Attack[Any]  # with its parameters, after tuning
    scores: FloatArray  # [N], higher means member
    thresholds: tuple[Threshold, ...]  # see `thresholds_from`; none for a target that is unlike the shadow models
    metrics: Metrics | None  # against the true members; None if they are not known
    seconds: float  # for scoring the target, with all picking, tuning and learning on simulated targets before it
    note: str = ""  # why there are no thresholds, why this attack was picked, or why not to believe it; usually empty
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)  # such as a sampler's precision
    queries: QueryCount | None = None  # how often models were asked; None if this was not counted
    simulated: SimulatedFigures | None = None  # how strong it is there; None if there are too few shadow models
    doubt: str = ""  # why scores that are meant as probabilities of membership are not calibrated; empty if they are
    withheld: tuple[Threshold, ...] = ()  # of a target unlike the shadow models; only experiments look at them
    flag_scores: FloatArray | None = None  # [N] what thresholds judge (`Attack.flag_scores`), if targets are simulated
    prior: float = 0.0  # the stated share of members among the records, for flags at a false-discovery rate
    p_values: FloatArray | None = None  # [N] how rare each score would be for a non-member, by simulated targets
    stability: FloatArray | None = None  # [N] the share of sub-pools that flag a record; None if that was not tried
    fewer: FewerReferences | None = None  # its strength with half of the references; None if that was not tried
    picked: str = ""  # the name of the attack that `best` picked; empty for all others
    sampling_intervals: SamplingIntervals | None = None  # about all records; None if no random sample was audited

    def __repr__(self) -> str:
        auc = "" if self.metrics is None else f", AUC {self.metrics.auc:.3f}"
        return f"AttackOutcome({self.attack}, {len(self.scores)} records{auc})"

    def of_records(self, rows: IntArray) -> AttackOutcome:
        """The same outcome with its records in another order, [N] places; metrics are those of all records."""
        names = ("scores", "flag_scores", "p_values", "stability")
        known = {name: values for name in names if (values := getattr(self, name)) is not None}
        return dataclasses.replace(self, **{name: values[rows] for name, values in known.items()})

    @property
    def calibrated(self) -> bool:
        """Whether its scores may be read as probabilities of membership."""
        return self.attack.posterior and not self.doubt

    def flagged(self, threshold: Threshold) -> BoolArray:
        """[N] which records one of its thresholds flags."""
        return threshold.decide(self.scores if self.flag_scores is None else self.flag_scores)

    @property
    def first_threshold(self) -> Threshold | None:
        """The threshold of the first wanted rate, by which records are decided; None if no wanted rate is reached."""
        return next((threshold for threshold in self.thresholds if not threshold.first), None)

    @property
    def discovery_levels(self) -> FloatArray | None:
        """[N] the smallest false-discovery rate at which each record is flagged; None without a threshold.

        It needs what a threshold needs: that non-members of the target score as those of simulated targets do.
        """
        if self.p_values is None or not self.thresholds:
            return None
        return discovery_levels(self.p_values, prior=self.prior)

    @property
    def ranks(self) -> FloatArray:
        """[N], 1 for the most exposed record; equal scores share a rank."""
        return np.asarray(rankdata(-self.scores, method="min"), dtype=np.int64)


def run_attack(
    attack: Attack[Any],
    view: View,
    *,
    fprs: Sequence[float],
    members: BoolArray | None = None,
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
    cache: AttackCache | None = None,
    prior: float | ArrayLike = 0.5,
    mismatch: bool = False,
    draw: Draw | None = None,
) -> AttackOutcome:
    """Score the target, estimate thresholds from the pool, and evaluate if the members are known.

    For a target unlike the shadow models there are no thresholds, and no score is called a probability.

    Args:
        attack: the attack to run; `Best` picks one first, and the outcome is that of the picked one.
        view: what it looks at: evidence about records, or a scene, of which attacks on records see only the evidence.
        fprs: wanted false-positive rates.
        members: [N] which audited records trained the target; no attack sees it.
        threshold: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        progress: whether to show a bar.
        cache: of the same pool; an attack that was tuned and tried before is not tuned and tried again.
        prior: λ, the share of members that is expected, one number or one per record of the population, for attacks
            that have no prior of their own.
        mismatch: whether the target is already known to be unlike the shadow models.
        draw: how members were drawn, if not record by record: intervals follow it.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evidence import Evidence
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> run_attack(LossThreshold(), evidence, fprs=[]).ranks
        array([1, 2])
    """
    cache = AttackCache(view, progress=progress) if cache is None else cache
    attack = attack if isinstance(attack, Best) else for_view(attack, view)
    started = time.perf_counter()
    pick = attack.pick(view, cache) if isinstance(attack, Best) else None
    attack = cache.tuned(attack if pick is None else pick.attack)
    seen = seen_by(attack, view)
    with showing(progress, label=f"Attack {attack.name}"):
        judgement = attack.judge(seen)
    seconds = time.perf_counter() - started
    scores, notes = judgement.scores, ["" if pick is None else pick.reason, judgement.warning]
    if (wrong := not_finite(scores)).any():
        record = str(view.ids[wrong][0])
        raise InputError(f"{attack.name}: record {record!r} got a score that is not finite; please report this.")
    metrics = None
    if members is not None:
        by_unit = isinstance(attack, ByUnit)
        metrics = evaluate(scores, members, fprs=fprs, confidence=confidence, draw=draw, units=by_unit)
    expected = _prior_of(attack, view, prior)
    mismatch = mismatch or bool(judgement.warning)  # what an attack learned from shadow models does not hold
    found: _Simulated | None = None
    if fprs or members is not None:
        try:
            found = _simulated(attack, seen, cache, fprs, prior=expected)
        except NotSimulatedError as error:  # the target was scored: only what simulated targets say is missing
            if fprs and len(view.shadow_members) >= 2:  # without a pool, one sentence for all attacks says so
                reason = str(error).split(" Train ")[0].rstrip(".")  # how many to train is in the next sentence
                notes.append(
                    f"{attack.name} has no threshold: {reason}. Simulated targets have two shadow models fewer than "
                    f"the target; train more shadow models."
                )
    share = float(np.mean(np.asarray(expected)))
    non_members = len(scores) * (1 - share)
    options: dict[str, Any] = {"threshold": threshold, "confidence": confidence, "non_members": non_members}
    thresholds = () if found is None else thresholds_from(found.scored, fprs, summaries=found.summaries, **options)
    doubt = ""
    if attack.posterior:
        unlike = "the target is unlike the shadow models"
        doubt = unlike if mismatch else posterior_doubt(scores, () if found is None else found.excess, prior=expected)
    note_work("An attack had been run.")
    outcome = AttackOutcome(
        attack,
        scores,
        () if mismatch else thresholds,
        metrics,
        seconds,
        " ".join(filter(None, notes)),
        {**judgement.details, **_sampler_figures(judgement, members)},
        judgement.queries,
        None if found is None else simulated_figures(found.summaries),
        doubt,
        thresholds if mismatch else (),
        picked="" if pick is None else pick.name,
    )
    if found is None:
        return outcome
    outcome = dataclasses.replace(
        outcome,
        flag_scores=found.flag_scores,
        prior=share,
        p_values=found.counts.p_values(),
        fewer=compare_references(attack, seen, found.strengths, fprs),
    )
    pick = found = None  # they may be as large as the evidence, and are not needed any more
    first = outcome.first_threshold
    return outcome if first is None else dataclasses.replace(outcome, stability=stability(attack, seen, first))


class _Simulated(NamedTuple):
    """What simulated targets say about an attack and its scores of the target."""

    scored: Scored
    flag_scores: FloatArray  # [N] of the target
    counts: ConformalCounts
    summaries: list[SimulatedSummary]
    excess: list[float]  # of their calibration errors; 0 of scores that are not probabilities
    strengths: list[float]  # as `compare_references` needs them


def _simulated(
    attack: Attack[Any], seen: Any, cache: AttackCache, fprs: Sequence[float], *, prior: float | ArrayLike
) -> _Simulated:
    """Score the simulated targets, and look at each only once: together their scores are as large as the evidence."""
    with simulating():
        check_simulation(len(seen.shadow_members))
        scored, flag_scores = cache.simulated(attack), attack.flag_scores(seen)
    counts = ConformalCounts(flag_scores)

    def look(pair: Pair) -> tuple[SimulatedSummary, float, float]:
        counts.add(pair)
        excess = calibration_excess(*pair, prior=prior) if attack.posterior else 0.0
        return SimulatedSummary.of(pair, fprs), excess, strength(attack, pair, fprs)

    summaries, excess, strengths = map(list, zip(*of_each(look, scored), strict=True))
    return _Simulated(scored, flag_scores, counts, summaries, excess, strengths)


def _prior_of(attack: Attack[Any], view: View, prior: float | ArrayLike) -> float | ArrayLike:
    """The prior of the audited records, [] or [N], that an attack's scores are meant for: its own, or the given one."""
    own = getattr(attack, "prior", None)
    own = None if isinstance(own, str) or callable(own) else own  # a rule, whose answer only the attack knows
    if own is not None and (np.ndim(own) == 0 or attack.kind == "records"):
        return np.asarray(own)
    wide = prior if own is None else own  # one number per record of the population
    return wide if np.ndim(wide) == 0 else view.audited(wide)


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


def with_public_records(evidence: Evidence, population: Population, public: BoolArray, *, seed: int) -> Evidence:
    """The evidence about the other records, with the ``public`` ones [N] of the population as material."""
    columns = few_columns(population.features, generator(seed, "public features"))
    loss, labels = evidence.target_loss[public], population.y[public]
    known = PublicRecords(loss=loss, labels=labels, features=columns[public], audited=columns[~public])
    return evidence.of_records(~public).with_public(known)
