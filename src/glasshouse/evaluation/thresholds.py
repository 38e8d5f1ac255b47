"""Decision thresholds from simulated targets, never from the target's own membership (paper, App. C).

Of each simulated target a few numbers are kept: all that thresholds and figures need of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import betabinom
from scipy.stats import t as student

from glasshouse.attacks.attack import Attack, View
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.progress import track
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation.intervals import Interval
from glasshouse.evaluation.privacy.bounds import shares_right
from glasshouse.evaluation.roc import SortedScores, checked

Scored = Sequence[tuple[FloatArray, BoolArray]]  # scores [N] and members [N] of each simulated target


@dataclass(frozen=True, kw_only=True)
class TriedTarget:
    """An attack on one simulated target. Its curve would take three times the memory of its scores.

    Args:
        auc: area under the ROC.
        rates: true-positive rate at each wanted false-positive rate, with ties broken at random where they must be.
        reached: for each wanted rate, whether a threshold reaches it.
        cuts: for each wanted rate, the lowest score that keeps it.
        first_fpr: the smallest false-positive rate that any threshold reaches.
        shares_right: shares of right guesses, for each way to guess that a bound on ε may use.
    """

    auc: float
    rates: tuple[float, ...]
    reached: tuple[bool, ...]
    cuts: tuple[float, ...]
    first_fpr: float
    shares_right: tuple[float, ...]


def tried_targets(scored: Scored, fprs: Sequence[float]) -> list[TriedTarget]:
    """Each simulated target in a few numbers, on all cores.

    Args:
        scored: pairs of scores [N] and members [N].
        fprs: wanted false-positive rates.

    Example:
        >>> import numpy as np
        >>> first, = tried_targets([(np.arange(20.0), np.arange(20) >= 10)], [0.1])
        >>> first.auc, first.rates, first.cuts
        (1.0, (1.0,), (9.0,))
    """
    return side_by_side(
        lambda pair: _tried(pair[0], pair[1], fprs), scored, records=len(scored[0][0]) if len(scored) else 0
    )


def _tried(scores: FloatArray, members: BoolArray, fprs: Sequence[float]) -> TriedTarget:
    values, mask = checked(scores, members)
    ordered = SortedScores.of(values, mask)
    rates = [ordered.rate_at(fpr) for fpr in fprs]
    return TriedTarget(
        auc=ordered.area,
        rates=tuple(rate for rate, _ in rates),
        reached=tuple(reached for _, reached in rates),
        cuts=tuple(ordered.cut_at(fpr) for fpr in fprs),
        first_fpr=ordered.first_fpr,
        shares_right=shares_right(values, mask, ordered=ordered),
    )


ThresholdRule = Literal["mean", "max"]


@dataclass(frozen=True)
class Threshold:
    """From which score on records are called members, and the expected false-positive rate.

    Args:
        wanted: the false-positive rate aimed at.
        value: records that score at least this are called members.
        rule: ``"mean"`` of the simulated targets' own thresholds, or their ``"max"``, which is more careful.
        expected_fpr: mean rate over simulated targets, each with the threshold of all the others.
        interval: where the rate on one more target is expected to lie (a prediction interval).
        simulated: how many targets were simulated.
        first: whether it aims at the first rate that can be reached, because tied scores prevent all wanted rates.
    """

    wanted: float
    value: float
    rule: ThresholdRule
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
    threshold: ThresholdRule = "mean",
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
    return thresholds_from(simulate(attack, view, progress=progress), fprs, threshold=threshold, confidence=confidence)


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
    threshold: ThresholdRule = "mean",
    confidence: float = 0.95,
    non_members: float | None = None,
    tried: Sequence[TriedTarget] | None = None,
) -> tuple[Threshold, ...]:
    """A threshold for each wanted rate that can be reached despite ties; if none can, one for the first that can.

    Args:
        scored: simulated targets: pairs of scores [N] and members [N].
        fprs: wanted false-positive rates.
        threshold: ``"mean"`` or ``"max"`` of the simulated targets' thresholds.
        confidence: of every interval.
        non_members: how many the target is expected to have; as many as a simulated target by default.
        tried: `tried_targets` of the same targets and rates, if they are known already.

    Example:
        >>> pair = (np.repeat([1.0, 0.0], 50), np.tile([True, False], 50))  # half of the non-members have the top score
        >>> [(threshold.wanted, threshold.value, threshold.first) for threshold in thresholds_from([pair] * 2, [0.01])]
        [(0.5, 1.0, True)]
    """
    options: dict[str, Any] = {"threshold": threshold, "confidence": confidence, "non_members": non_members}
    tried = tried_targets(scored, fprs) if tried is None else tried
    found = [
        _threshold(scored, fpr, np.array([one.cuts[place] for one in tried]), **options)
        for place, fpr in enumerate(fprs)
        if any(one.reached[place] for one in tried)
    ]
    if fprs and not found:
        first = max(one.first_fpr for one in tried)
        found.append(dataclasses.replace(threshold_from(scored, first, **options), first=True))
    return tuple(found)


def threshold_from(
    scored: Scored,
    fpr: float,
    *,
    threshold: ThresholdRule = "mean",
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
    return _threshold(scored, fpr, own, threshold=threshold, confidence=confidence, non_members=non_members)


def _threshold(
    scored: Scored,
    fpr: float,
    own: FloatArray,
    *,
    threshold: ThresholdRule,
    confidence: float,
    non_members: float | None,
) -> Threshold:
    """From the thresholds [T] of the simulated targets."""
    agreed = [_agreed(np.delete(own, at), threshold) for at in range(len(own))]
    counts = side_by_side(lambda at: _false_alarms(scored[at], agreed[at]), range(len(own)), records=len(scored[0][0]))
    false = np.array(counts)
    others = np.array([len(members) - np.count_nonzero(members) for _, members in scored])
    return Threshold(
        wanted=fpr,
        value=_agreed(own, threshold),
        rule=threshold,
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


def _agreed(thresholds: FloatArray, rule: ThresholdRule) -> float:
    return float(thresholds.max() if rule == "max" else thresholds.mean())


def _false_alarms(pair: tuple[FloatArray, BoolArray], threshold: float) -> int:
    scores, members = pair
    return int(np.count_nonzero((scores >= threshold) > members))


@dataclass(frozen=True, kw_only=True)
class SimulatedFigures:
    """How strong an attack is on the simulated targets of a pool: a choice by it does not use the target.

    Args:
        targets: how many shadow models played the target.
        auc: mean area under their ROC curves.
        strengths: mean true-positive rate per allowed false-positive rate, one for each wanted rate: at ties that keep
            a rate from being reached, the TPR when ties are broken at random.
        shares_right: mean share of right guesses for each way to guess that a bound on ε may use.
    """

    targets: int
    auc: float
    strengths: tuple[float, ...]
    shares_right: tuple[float, ...] = ()


def simulated_figures(
    scored: Scored, fprs: Sequence[float], *, tried: Sequence[TriedTarget] | None = None
) -> SimulatedFigures:
    """The figures of an attack from simulated targets that are already scored: pairs of scores [N] and members [N].

    ``tried`` are the `tried_targets` of the same targets and rates, if they are known already.

    Example:
        >>> pair = (np.arange(20.0), np.arange(20) >= 10)
        >>> figures = simulated_figures([pair, pair], [0.1])
        >>> figures.targets, figures.auc, figures.strengths
        (2, 1.0, (1.0,))
    """
    tried = tried_targets(scored, fprs) if tried is None else tried
    return SimulatedFigures(
        targets=len(scored),
        auc=float(np.mean([one.auc for one in tried])),
        strengths=tuple(float(np.mean([one.rates[place] for one in tried])) for place in range(len(fprs))),
        shares_right=tuple(np.mean([one.shares_right for one in tried], axis=0).tolist()),
    )


def rate_with_ties(scores: FloatArray, members: BoolArray, fpr: float) -> tuple[float, bool]:
    """TPR at a rate, and whether a threshold reaches it; if not, the TPR there when ties are broken at random.

    Example:
        >>> rate_with_ties(np.zeros(20), np.arange(20) >= 10, 0.1)
        (0.1, False)
    """
    return SortedScores.of(*checked(scores, members)).rate_at(fpr)
