"""Whether the target is of the shadow models' kind, from which its thresholds and probabilities come."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from glasshouse.attacks.shared.prior import prior_weights
from glasshouse.attacks.stacking.targets import Likeness, plan_targets
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import side_by_side
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import at_rows

_MOST = 100_000  # records; more give no better estimate of how sure a model is, and take seconds
_TARGETS = 32  # more tell no more about how much models of one kind differ
_FEWEST = 6  # with fewer models it is not known how much models of one kind differ
_WRONG = 0.0075  # share of targets of the pool's kind above the limit, for each of two comparisons


def target_mismatch(evidence: Evidence, *, prior: float | ArrayLike = 0.5, advice: str = "") -> str:
    """What a reader must know if the target answers unlike all shadow models; empty if it is like them.

    It looks at the margins of the records (of every second, third … if there are very many), never at the target's
    members. Shadow models are weighted to the prior: a target with another share of members is not of another kind.

    Args:
        evidence: losses of the target and of the shadow models.
        prior: λ, the share of members that is expected: one number, or one per record.
        advice: what else may be the reason, added at the end.

    Example:
        >>> losses = np.random.default_rng(0).exponential(size=(9, 500))
        >>> members = np.random.default_rng(1).random((8, 500)) < 0.5
        >>> other = Evidence(target_loss=9 * losses[0], shadow_loss=losses[1:], shadow_members=members)
        >>> target_mismatch(other).split("(")[0]
        'The target answers unlike every shadow model '
    """
    if evidence.models < _FEWEST:
        return ""
    unlikeness, largest = _unlikeness(evidence, prior), _largest(min(evidence.models, _TARGETS))
    if unlikeness <= largest:
        return ""
    return (
        f"The target answers unlike every shadow model (unlikeness {unlikeness:.1f}; targets of the same kind stay "
        f"below {largest:.1f}), so thresholds and probabilities, which come from the shadow models, would not "
        f"hold for it and are not given. Scores and ranks are. Train shadow models as the target was trained: the same "
        f"architecture, optimizer, epochs and share of the records (fraction), and state that share as the prior. "
        f"{advice}"
    ).strip()


def _largest(targets: int) -> float:
    """The unlikeness that a share `_WRONG` of targets of the same kind would exceed if all figures went together.

    Each is Student's with T - 1 degrees of freedom, times √(1 + 1/T); their root mean square is at most as spread.
    """
    return float(student.isf(_WRONG / 2, targets - 1)) * math.sqrt(1 + 1 / targets)


def _unlikeness(evidence: Evidence, prior: float | ArrayLike) -> float:
    """The larger unlikeness of two: of the margins, and of how far they are from the mean margin of the references.

    The second is blind to which records are difficult, and so notices smaller differences between models.
    """
    some = slice(None, None, -(-evidence.records // _MOST))
    inside, margins = evidence.shadow_members[:, some], loss_to_margin(evidence.shadow_loss[:, some])
    plan = plan_targets(inside, targets=_TARGETS, seed=0)
    records = margins.shape[1]
    usual = side_by_side(lambda rows: margins[at_rows(rows, records)].mean(axis=0), plan.references, records=records)
    weights = prior_weights(evidence.shadow_members[plan.targets], prior, some=some)
    theirs, its = margins[plan.targets], loss_to_margin(evidence.target_loss[some])
    away = np.stack([one - mean for one, mean in zip(theirs, usual, strict=True)])
    return max(Likeness.of(theirs, weights).unlikeness(its), Likeness.of(away, weights).unlikeness(its - usual[0]))
