r"""Any attack on units: the joint likelihood of a unit's rows, from what the attack finds for each of them.

A row's log ratio says how much likelier the model's answer about it is if the row was trained on. Were the rows of a
unit independent, their ratios would add up. They are not: a person's visits resemble each other, so the second tells
less than the first. The score of a unit with :math:`n` rows is therefore
:math:`n^{-κ} \sum_i r_i`, where :math:`κ` (0: a sum, 1: a mean) is learned on simulated targets. Scores that are no log
ratios, such as a loss or a rank, are first made ratios of one by how often simulated targets have members there.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from glasshouse.attacks.attack import Attack, Judgement, QueryCount
from glasshouse.attacks.prior import prior_log_odds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.numerics import area_under_roc
from glasshouse.core.randomness import generator
from glasshouse.evidence import Kind
from glasshouse.evidence.evidence import UnitView

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_SURE = 1e-15  # probabilities nearer to 0 or 1 are this far from them
_BLOCKS, _BLOCK = 200, 20  # of rows with like scores, and how many are in the first and last at least
_EXAMPLES = 200_000  # rows of simulated targets that a ratio is learned from; more change little
_OF_ROWS = (  # what the attack on units has from the attack on rows
    *("name", "label", "knows_truth", "learns_much", "needs_logits", "needs_public", "needs_trace", "needs_parts"),
    *("needs_classes", "least_models", "candidate", "likelihood_ratio"),
)


@dataclass(frozen=True, kw_only=True)
class ByUnit(Attack[UnitView]):
    """An attack on rows as an attack on their units.

    Args:
        attack: what scores the rows.
        power: κ; None learns it.

    Example:
        >>> from glasshouse.attacks import create
        >>> from glasshouse.data import Units
        >>> from glasshouse.evidence import Evidence
        >>> rows = Evidence(target_loss=[0.1, 2.0, 0.3], shadow_loss=[[0.5, 1.0, 0.7]], shadow_members=[[1, 0, 1]])
        >>> view = UnitView(rows, Units(["ann", "bob", "ann"]))
        >>> ByUnit(attack=create("base"), power=0.0).score(view).round(2)
        array([ 0.8, -1. ])
    """

    kind: ClassVar[Kind] = "any"  # it looks at the rows of a view for the attack

    attack: Attack[Any]
    power: float | None = None
    ratio_: functools.partial[Any] | None = dataclasses.field(default=None, repr=False, compare=False)
    scored_: tuple[tuple[FloatArray, BoolArray], ...] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    def check(self, members: BoolArray) -> None:
        """Refuse a pool that the attack on rows refuses."""
        self.attack.check(members)

    def score(self, view: UnitView) -> FloatArray:
        """Scores [U], higher means member."""
        return self.joined(self.attack.score(view.rows), view)

    def joined(self, scores: FloatArray, view: UnitView) -> FloatArray:
        """Scores [U] of units from those of their rows [N]."""
        return joined_ratios(self._ratios(scores), view, 1.0 if self.power is None else self.power)

    def tuned(self, view: UnitView) -> Self:
        """The same with the attack on rows tuned, and what joins them learned from simulated targets."""
        attack = self.attack.tuned(view.rows)
        if len(view.shadow_members) < 4:  # nothing can be learned: the mean has the scale of the rows
            return dataclasses.replace(self, attack=attack, power=1.0 if self.power is None else self.power)
        scored = tuple(attack.simulated_scores(view.rows))
        ratio = None if attack.posterior or attack.log_ratio else _learned_ratio(scored)
        made = dataclasses.replace(self, attack=attack, ratio_=ratio)
        power = self.power
        if power is None:
            ratios = [made._ratios(one) for one, _ in scored]

            def strength(each: float) -> float:  # the mean AUC of members of simulated targets
                joined = (joined_ratios(one, view, each) for one in ratios)
                return float(np.mean([*map(area_under_roc, joined, view.shadow_members)]))

            power = max(POWERS, key=strength)
        return dataclasses.replace(made, power=power, scored_=scored)

    def simulated_scores(self, view: UnitView) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members [U] of each simulated target."""
        every = self.scored_ or self.attack.simulated_scores(view.rows)
        for (one, _), members in zip(every, view.shadow_members, strict=True):
            yield self.joined(one, view), members

    def flag_scores(self, view: UnitView) -> FloatArray:
        """Scores [U] of the target by as many references as those of simulated targets."""
        return self.joined(self.attack.flag_scores(view.rows), view)

    def row_scores(self, view: UnitView) -> FloatArray:
        """[N] what the attack finds for each row."""
        return self.attack.score(view.rows)

    def warning(self, view: UnitView) -> str:
        """What the attack on rows warns of."""
        return self.attack.warning(view.rows)

    def queries(self, view: UnitView) -> QueryCount:
        """Queries per unit: those about all of its rows."""
        found = self.attack.queries(view.rows)
        return QueryCount(found.per_record * len(view.units.rows) / len(view.units), found.shared)

    def judge(self, view: UnitView) -> Judgement:
        """Scores of units, with what the attack on rows reports."""
        found = self.attack.judge(view.rows)
        return Judgement(self.joined(found.scores, view), self.queries(view), found.warning, found.details)

    def _ratios(self, scores: FloatArray) -> FloatArray:
        """Log ratios [N] from scores of rows [N]; scores as they are where nothing could be learned."""
        if self.attack.posterior:
            prior = prior_log_odds(getattr(self.attack, "prior", 0.5), len(scores))
            return np.asarray(logit(np.clip(scores, _SURE, 1 - _SURE)) - prior)
        return scores if self.ratio_ is None else np.asarray(self.ratio_(scores))


for _name in _OF_ROWS:
    setattr(ByUnit, _name, property(operator.attrgetter(f"attack.{_name}")))


def for_view(attack: Attack[Any], view: Any) -> Attack[Any]:
    """The attack as it looks at this view: joined by unit where the view is of units."""
    if not isinstance(view, UnitView) or isinstance(attack, ByUnit):
        return attack
    return ByUnit(attack=attack)


def joined_ratios(ratios: FloatArray, view: UnitView, power: float) -> FloatArray:
    """[U] sums of ratios [N] over rows, divided by the number of rows to a power."""
    return np.asarray(view.units.sums(ratios) / view.units.sizes**power)


def _learned_ratio(scored: Sequence[tuple[FloatArray, BoolArray]]) -> functools.partial[Any]:
    """How a score of rows becomes a log ratio: it rises, and fits how often simulated targets have members there."""
    scores, inside = (np.concatenate([pair[part] for pair in scored]) for part in (0, 1))
    if len(scores) > _EXAMPLES:
        some = generator(0, "rows of simulated targets").choice(len(scores), size=_EXAMPLES, replace=False)
        scores, inside = scores[some], inside[some]
    order = np.argsort(scores, kind="stable")
    scores, inside = scores[order], inside[order].astype(np.float64)
    far = max(np.log(len(scores) / _BLOCK), 1.0)  # finer towards both ends, where the ratios are
    inner = np.rint(len(scores) * expit(np.linspace(-far, far, _BLOCKS - 1))).astype(np.intp)
    blocks = np.unique([0, *inner, len(scores)])
    counts = np.diff(blocks)
    hits = np.add.reduceat(inside, blocks[:-1])
    centres = np.add.reduceat(scores, blocks[:-1]) / counts
    rising = IsotonicRegression().fit_transform(np.arange(len(counts)), hits / counts, sample_weight=counts)
    pools = np.unique(rising, return_inverse=True)[1]  # blocks between which the share does not rise
    found, many = np.bincount(pools, hits), np.bincount(pools, counts)
    share = ((found + inside.mean()) / (many + 1))[pools]
    return functools.partial(np.interp, xp=centres, fp=logit(share) - logit(inside.mean()))
