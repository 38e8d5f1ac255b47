"""Decision thresholds from simulated targets, never from the target's own membership (paper, App. C)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import betabinom
from scipy.stats import t as student

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.attacks.attack import Attack, View
from glasshouse.evaluation.intervals import Interval
from glasshouse.evaluation.roc import checked
from glasshouse.evaluation.sorted_scores import SortedScores
from glasshouse.evaluation.tried import Scored, TriedTarget, tried_targets
from glasshouse.progress import track
from glasshouse.threads import side_by_side

__all__ = [
    "Policy",
    "Scored",
    "Threshold",
    "estimate_thresholds",
    "predicted_rate",
    "simulate",
    "threshold_from",
    "thresholds_from",
]

Policy = Literal["mean", "max"]


@dataclass(frozen=True)
class Threshold:
    """From which score on records are called members, and the expected false-positive rate.

    Args:
        wanted: the false-positive rate aimed at.
        value: records that score at least this are called members.
        policy: ``"mean"`` of the simulated targets' own thresholds, or their ``"max"``, which is more careful.
        expected_fpr: mean rate over simulated targets, each with the threshold of all the others.
        interval: where the rate on one more target is expected to lie (a prediction interval).
        simulated: how many targets were simulated.
        first: whether it aims at the first rate that can be reached, because tied scores prevent all wanted rates.
    """

    wanted: float
    value: float
    policy: Policy
    expected_fpr: float
    interval: Interval
    simulated: int
    first: bool = False

    def decide(self, scores: FloatArray) -> BoolArray:
        """Which records are flagged, [N], by their `Attack.flag_scores` [N]."""
        return scores >= self.value


def estimate_thresholds(
    attack: Attack[Any],
    view: View,
    fprs: Sequence[float],
    *,
    policy: Policy = "mean",
    confidence: float = 0.95,
    progress: bool | None = False,
) -> tuple[Threshold, ...]:
    """Attack every simulated target of the pool once, and derive a threshold for each wanted rate.

    It judges `Attack.flag_scores` of the target, which come from as many references as those of simulated targets.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> from glasshouse.evidence import Evidence
        >>> rng = np.random.default_rng(0)
        >>> members = np.repeat(np.tile([[1, 0], [0, 1]], (2, 1)), 100, axis=1).astype(bool)
        >>> loss = rng.exponential(np.where(members, 0.5, 1.0))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> threshold, = estimate_thresholds(LossThreshold(), evidence, [0.05])
        >>> 0.01 < threshold.expected_fpr < 0.1
        True
    """
    attack = attack.tuned(view)  # a threshold belongs to one setting
    return thresholds_from(simulate(attack, view, progress=progress), fprs, policy=policy, confidence=confidence)


def simulate(attack: Attack[Any], view: View, *, progress: bool | None = False) -> Scored:
    """Scores [N] and members [N] of every simulated target, by an attack that is tuned for the pool."""
    return list(
        track(
            attack.simulated_scores(view),
            total=len(view.shadow_members),
            label=f"Simulated targets of {attack.name}",
            unit="targets",
            show=progress,
        )
    )


def thresholds_from(
    scored: Scored,
    fprs: Sequence[float],
    *,
    policy: Policy = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
    tried: Sequence[TriedTarget] | None = None,
) -> tuple[Threshold, ...]:
    """A threshold for each wanted rate that can be reached despite ties; if none can, one for the first that can.

    Args:
        scored: simulated targets: pairs of scores [N] and members [N].
        fprs: wanted false-positive rates.
        policy: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        non_members: how many the target is expected to have; as many as a simulated target by default.
        tried: `tried_targets` of the same targets and rates, if they are known already.

    Example:
        >>> pair = (np.repeat([1.0, 0.0], 50), np.tile([True, False], 50))  # half of the non-members have the top score
        >>> [(threshold.wanted, threshold.value, threshold.first) for threshold in thresholds_from([pair] * 2, [0.01])]
        [(0.5, 1.0, True)]
    """
    options: dict[str, Any] = {"policy": policy, "confidence": confidence, "non_members": non_members}
    tried = tried_targets(scored, fprs) if tried is None else tried
    found = [
        _threshold(scored, fpr, np.array([one.cuts[place] for one in tried]), **options)
        for place, fpr in enumerate(fprs)
        if any(one.reached[place] for one in tried)
    ]
    if fprs and not found:
        first = max(one.first_fpr for one in tried)
        threshold = threshold_from(scored, first, **options)
        found.append(dataclasses.replace(threshold, first=True))
    return tuple(found)


def threshold_from(
    scored: Scored,
    fpr: float,
    *,
    policy: Policy = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
) -> Threshold:
    """A threshold from simulated targets that are already scored: pairs of scores [N] and members [N].

    Example:
        >>> scores = np.arange(200.0)
        >>> pair = (scores, scores >= 100)
        >>> threshold_from([pair, pair], 0.1).value
        90.0
    """
    own = np.array([SortedScores.of(*checked(*pair)).cut_at(fpr) for pair in scored])
    return _threshold(scored, fpr, own, policy=policy, confidence=confidence, non_members=non_members)


def _threshold(
    scored: Scored, fpr: float, own: FloatArray, *, policy: Policy, confidence: float, non_members: float | None
) -> Threshold:
    """From the thresholds [T] of the simulated targets."""
    agreed = [_agreed(np.delete(own, at), policy) for at in range(len(own))]
    counts = side_by_side(lambda at: _false_alarms(scored[at], agreed[at]), range(len(own)), records=len(scored[0][0]))
    false = np.array(counts)
    others = np.array([len(members) - np.count_nonzero(members) for _, members in scored])
    return Threshold(
        wanted=fpr,
        value=_agreed(own, policy),
        policy=policy,
        expected_fpr=float(np.mean(false / others)),
        interval=predicted_rate(false, others, confidence=confidence, non_members=non_members),
        simulated=len(scored),
    )


def predicted_rate(
    false: IntArray, others: IntArray, *, confidence: float = 0.95, non_members: float | None = None
) -> Interval:
    """Where the false-positive rate of one more target is expected, from those of T simulated targets.

    It is the hull of two prediction intervals: Student's, for targets that differ by more than chance, and that of the
    beta-binomial distribution (Jeffreys' prior, all targets alike), which holds for a few false positives, where
    counts are far from normal.

    Args:
        false: [T] false positives of each simulated target, by the threshold of the others.
        others: [T] its non-members.
        confidence: of the interval.
        non_members: how many the target is expected to have; the fewer, the more its rate varies by chance. As many as
            a simulated target by default.

    Example:
        >>> low, high = predicted_rate(np.array([0, 0, 0, 0]), np.array([100, 100, 100, 100]))
        >>> low, high  # none in 400, but one in the next 100 would be no surprise
        (0.0, 0.01)
    """
    rates, count, tail = false / others, len(false), (1 - confidence) / 2
    mean, usual = float(rates.mean()), float(others.mean())
    asked = usual if non_members is None else non_members
    fewer = mean * (1 - mean) * max(1 / asked - 1 / usual, 0.0)  # variance that only the target's rate has
    spread = np.sqrt(float(np.var(rates, ddof=1)) * (1 + 1 / count) + fewer)
    reach = float(student.ppf(1 - tail, count - 1)) * spread
    asked = max(round(asked), 1)
    alike = betabinom(asked, false.sum() + 0.5, (others - false).sum() + 0.5)
    low = min(mean - reach, float(alike.ppf(tail)) / asked)
    high = max(mean + reach, float(alike.ppf(1 - tail)) / asked)
    return Interval(max(0.0, low), min(1.0, high))


def _agreed(thresholds: FloatArray, policy: Policy) -> float:
    return float(thresholds.max() if policy == "max" else thresholds.mean())


def _false_alarms(pair: tuple[FloatArray, BoolArray], threshold: float) -> int:
    scores, members = pair
    return int(np.count_nonzero((scores >= threshold) > members))
