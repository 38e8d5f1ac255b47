"""The one attack whose figures stand for an audit, chosen so that its figures are not lucky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.evaluation.leak import LEVEL, Figure, LeakTest, expected_log_p, leak_test
from glasshouse.evaluation.metrics import Metrics, evaluate, headline_rate
from glasshouse.evaluation.outcome import AttackOutcome
from glasshouse.evaluation.roc import allowed_wrong, auc
from glasshouse.evaluation.simulated import rate_with_ties
from glasshouse.randomness import generator

__all__ = ["Headline", "Way", "headline"]

Way = Literal["simulated", "half", "only", "shown"]
_CONFIDENCE = 0.95  # of the intervals
_FEWEST = 10  # members and others in each half; with fewer a choice by halves is a guess


@dataclass(frozen=True, kw_only=True, eq=False)
class Headline:
    """The attack that a verdict is about, its figures, and whether there is any leak.

    Args:
        attack: its name.
        way: how it was chosen: on ``"simulated"`` targets, on one ``"half"`` of the records, because it is the
            ``"only"`` one (or the first, if there are too few records to choose by), or because the leak is
            ``"shown"`` by it and not by the attack that was chosen in one of these ways.
        tried: among how many.
        metrics: its figures on records that the choice did not look at: all of them, or the other half. An attack that
            was chosen because the leak is shown by it is measured on the records that chose it, so its estimates tend
            to be too high; its intervals hold for all attacks at once, and so for the chosen one.
        fpr: the rate to report first; None if no wanted rate can be measured.
        test: whether any attack shows a leak at all.
    """

    attack: str
    way: Way
    tried: int
    metrics: Metrics
    fpr: float | None
    test: LeakTest


def headline(
    outcomes: Mapping[str, AttackOutcome], members: BoolArray, *, fprs: Sequence[float] = (), seed: int = 0
) -> Headline:
    """Choose the strongest attack without luck, and measure it.

    If all attacks were tried on simulated targets, the strongest there is taken: the choice does not use the target.
    Strongest is the one with the largest TPR at the rate to report first, if simulated targets find more than chance
    there. Where that rate is too noisy to rank by, it is the one whose AUC or TPR would be the most surprising on a
    target of this size (`expected_log_p`); most of the leak test's error is spent on that figure. Otherwise the
    strongest on a random half of the records is taken, and measured on the other half.

    A leak that is shown must be shown by the attack that the verdict is about: if none of its own figures shows it, by
    p-values that are corrected for all figures, the attack that shows it best takes its place.

    Args:
        outcomes: of the attacks, by name; those that are given the members of the target do not take part.
        members: [N] which records trained the target.
        fprs: wanted false-positive rates.
        seed: of the halves and of the leak test.

    Example:
        >>> from glasshouse.attacks import LossThreshold
        >>> members = np.arange(40) < 20
        >>> scores = np.where(members, 1.0, 0.0) + np.arange(40) % 2
        >>> outcome = AttackOutcome(LossThreshold(), scores, (), evaluate(scores, members, fprs=[0.5]), 0.0)
        >>> found = headline({"loss": outcome}, members, fprs=[0.5])
        >>> found.attack, found.way, found.test.leak
        ('loss', 'only', True)
    """
    attackers = {name: one for name, one in outcomes.items() if not one.attack.knows_truth} or dict(outcomes)
    inside, outside = int(members.sum()), int((~members).sum())
    rate = headline_rate(fprs, outside)
    known = {name: (one.simulated.auc, *one.simulated.strengths) for name, one in attackers.items() if one.simulated}
    surprise = expected_log_p(known, inside, outside, fprs) if len(known) == len(attackers) else {}
    first = min(surprise, key=lambda figure: surprise[figure]) if surprise else None
    test = leak_test({name: one.scores for name, one in attackers.items()}, members, fprs=fprs, first=first, seed=seed)
    name, way, measured = _chosen(attackers, members, surprise=surprise, rate=rate, seed=seed)
    confidence = None
    if test.leak and test.adjusted[name] > LEVEL:
        name, way, measured = test.attack, "shown", np.ones(len(members), dtype=np.bool_)
        confidence = 1 - (1 - _CONFIDENCE) / len(attackers)  # of each interval, so that all attacks' hold together
    scores, metrics = attackers[name].scores, attackers[name].metrics
    left = int((~members[measured]).sum())
    kept = [fpr for fpr in fprs if allowed_wrong(fpr, left) >= 1]
    if metrics is None or confidence is not None or not measured.all() or kept != list(fprs):
        metrics = evaluate(scores[measured], members[measured], fprs=kept, confidence=confidence or _CONFIDENCE)
    return Headline(
        attack=name, way=way, tried=len(attackers), metrics=metrics, fpr=headline_rate(kept, left), test=test
    )


def _chosen(
    attackers: Mapping[str, AttackOutcome],
    members: BoolArray,
    *,
    surprise: Mapping[Figure, float],
    rate: float | None,
    seed: int,
) -> tuple[str, Way, BoolArray]:
    """The attack, how it was chosen, and the records [N] that the choice did not look at."""
    everyone = np.ones(len(members), dtype=np.bool_)
    if len(attackers) == 1:
        return next(iter(attackers)), "only", everyone
    if surprise:
        at_rate = {one: surprise[one, f"tpr@{rate:g}"] for one in attackers} if rate is not None else {}
        if at_rate and min(at_rate.values()) <= np.log(LEVEL):  # more than chance: the rate can be ranked by
            areas = {one: surprise[one, "auc"] for one in attackers}
            return min(attackers, key=lambda one: (at_rate[one], areas[one])), "simulated", everyone
        return min(surprise, key=lambda figure: surprise[figure])[0], "simulated", everyone
    half = _half(members, seed)
    if min(int(half[members].sum()), int(half[~members].sum())) < _FEWEST:
        return next(iter(attackers)), "only", everyone
    scored = {name: one.scores[half] for name, one in attackers.items()}
    strengths = {
        name: (0.0 if rate is None else rate_with_ties(scores, members[half], rate)[0], auc(scores, members[half]))
        for name, scores in scored.items()
    }
    return max(strengths, key=lambda name: strengths[name]), "half", ~half


def _half(members: BoolArray, seed: int) -> BoolArray:
    """A random half of the members and of the others, [N]."""
    random = generator(seed, "halves")
    half = np.zeros(len(members), dtype=np.bool_)
    for side in (members, ~members):
        places = random.permutation(np.flatnonzero(side))
        half[places[: len(places) // 2]] = True
    return half
