"""The result of one attack: its scores, its thresholds, and its metrics if the true members are known."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.evaluation.discoveries import discovery_levels
from glasshouse.evaluation.fewer import FewerReferences
from glasshouse.evaluation.metrics import Metrics
from glasshouse.evaluation.simulated import SimulatedFigures
from glasshouse.evaluation.thresholds import Threshold
from glasshouse.evaluation.whole import WholeFigures

__all__ = ["AttackOutcome"]


@dataclass(frozen=True, eq=False)
class AttackOutcome:
    """One attack against one target.

    Args:
        attack: the attack with its parameters, after tuning.
        scores: [N], higher means member.
        thresholds: from simulated targets, one for each wanted FPR that can be reached despite tied scores; if none
            can, one for the first rate that can be reached; empty if there are too few shadow models, or if the target
            is unlike them.
        note: why there are none, why this attack was picked, or why not to believe it; usually empty.
        details: figures that only this attack has, such as a sampler's precision.
        metrics: against the true members; None if they are not known.
        seconds: time for scoring the target, with all picking, tuning and learning on simulated targets before it, and
            without thresholds.
        queries: how often models were asked; None if this was not counted.
        simulated: how strong it is on simulated targets; None if there are too few shadow models.
        doubt: why scores that are meant as probabilities of membership cannot be believed; empty if they can, or if
            they are not meant so.
        withheld: thresholds whose false-positive rate is not known, since the target is unlike the shadow models; no
            report shows them, but experiments measure how wrong they would be.
        flag_scores: [N] scores by as many references as simulated targets have, which thresholds judge
            (`Attack.flag_scores`); None if no target could be simulated.
        prior: the stated share of members among the records, for the list at a false-discovery rate.
        p_values: [N] how rare each score would be for a non-member, by simulated targets; None without them.
        steady: [N] the share of sub-pools in which a record is still called a member at the first threshold; None
            without a threshold, or if the attack is not cheap enough to run often.
        fewer: its strength with half of the references; None if that was not tried.
        picked: the name of the attack that `best` picked; empty for all others.
        whole: what the scores of a sample say about all records; None if the records are no random sample of more.
    """

    attack: Attack[Any]
    scores: FloatArray
    thresholds: tuple[Threshold, ...]
    metrics: Metrics | None
    seconds: float
    note: str = ""
    details: Mapping[str, float] = dataclasses.field(default_factory=dict)
    queries: QueryCount | None = None
    simulated: SimulatedFigures | None = None
    doubt: str = ""
    withheld: tuple[Threshold, ...] = ()
    flag_scores: FloatArray | None = None
    prior: float = 0.0
    p_values: FloatArray | None = None
    steady: FloatArray | None = None
    fewer: FewerReferences | None = None
    picked: str = ""
    whole: WholeFigures | None = None

    def of_records(self, rows: IntArray) -> AttackOutcome:
        """The same outcome with its records in another order, [N] places; metrics are those of all records."""
        return dataclasses.replace(
            self,
            scores=self.scores[rows],
            flag_scores=None if self.flag_scores is None else self.flag_scores[rows],
            p_values=None if self.p_values is None else self.p_values[rows],
            steady=None if self.steady is None else self.steady[rows],
        )

    @property
    def believed(self) -> bool:
        """Whether its scores may be read as probabilities of membership."""
        return self.attack.posterior and not self.doubt

    def flagged(self, threshold: Threshold) -> BoolArray:
        """[N] which records one of its thresholds flags."""
        return threshold.decide(self.scores if self.flag_scores is None else self.flag_scores)

    @property
    def first_threshold(self) -> Threshold | None:
        """The threshold of the first wanted rate, by which records are decided; None if no wanted rate is reached."""
        return next((threshold for threshold in self.thresholds if not threshold.first), None)

    @functools.cached_property
    def discovery_levels(self) -> FloatArray | None:
        """[N] the smallest false-discovery rate at which each record is listed; None without a threshold.

        A list needs what a threshold needs: that non-members of the target score as those of simulated targets do.
        """
        return (
            None if self.p_values is None or not self.thresholds else discovery_levels(self.p_values, prior=self.prior)
        )

    @property
    def ranks(self) -> FloatArray:
        """[N], 1 for the most exposed record; equal scores share a rank."""
        return np.asarray(rankdata(-self.scores, method="min"), dtype=np.int64)
