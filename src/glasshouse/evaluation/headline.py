"""The one attack whose figures stand for an audit, chosen so that its figures are not lucky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.evaluation.leak import LeakTest, leak_test
from glasshouse.evaluation.metrics import Metrics, evaluate, headline_rate
from glasshouse.evaluation.outcome import AttackOutcome
from glasshouse.evaluation.roc import allowed_wrong, auc
from glasshouse.evaluation.simulated import rate_with_ties
from glasshouse.randomness import generator

__all__ = ["Headline", "Way", "headline"]

Way = Literal["simulated", "half", "only"]
_FEWEST = 10  # members and others in each half; with fewer a choice by halves is a guess


@dataclass(frozen=True, kw_only=True, eq=False)
class Headline:
    """The attack that a verdict is about, its figures, and whether there is any leak.

    Args:
        attack: its name.
        way: how it was chosen: on ``"simulated"`` targets, on one ``"half"`` of the records, or because it is the
            ``"only"`` one (or the first, if there are too few records to choose by).
        tried: among how many.
        metrics: its figures on records that the choice did not look at: all of them, or the other half.
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
    Otherwise the strongest on a random half of the records is taken, and measured on the other half.

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
    rate = headline_rate(fprs, int((~members).sum()))
    name, way, measured = _chosen(attackers, members, fprs=fprs, rate=rate, seed=seed)
    scores = attackers[name].scores
    left = int((~members[measured]).sum())
    kept = [fpr for fpr in fprs if allowed_wrong(fpr, left) >= 1]
    known = attackers[name].metrics if measured.all() and kept == list(fprs) else None
    metrics = evaluate(scores[measured], members[measured], fprs=kept) if known is None else known
    return Headline(
        attack=name,
        way=way,
        tried=len(attackers),
        metrics=metrics,
        fpr=headline_rate(kept, left),
        test=leak_test({one: outcome.scores for one, outcome in attackers.items()}, members, fprs=fprs, seed=seed),
    )


def _chosen(
    attackers: Mapping[str, AttackOutcome],
    members: BoolArray,
    *,
    fprs: Sequence[float],
    rate: float | None,
    seed: int,
) -> tuple[str, Way, BoolArray]:
    """The attack, how it was chosen, and the records [N] that the choice did not look at."""
    everyone = np.ones(len(members), dtype=np.bool_)
    first = next(iter(attackers))
    if len(attackers) == 1:
        return first, "only", everyone
    known = {name: one.simulated for name, one in attackers.items() if one.simulated is not None}
    if len(known) == len(attackers):
        place = None if rate is None else list(fprs).index(rate)
        strengths = {
            name: (0.0 if place is None else figures.strengths[place], figures.auc) for name, figures in known.items()
        }
        return max(strengths, key=lambda name: strengths[name]), "simulated", everyone
    half = _half(members, seed)
    if min(int(half[members].sum()), int(half[~members].sum())) < _FEWEST:
        return first, "only", everyone
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
