"""Whether thresholds and probabilities hold for a target: simulated targets must agree, and be of its kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import t as student

from glasshouse.attacks.cross_fit import Likeness, plan_targets
from glasshouse.attacks.prior import prior_weights
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.threads import side_by_side
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import at_rows

LARGEST_EXCESS = 0.01  # of the calibration error over what chance gives
_BINS = 10


class Bins(NamedTuple):
    """Records in ten bins of their posterior, of equal width; only those bins that hold a record."""

    said: FloatArray  # mean posterior of each bin
    found: FloatArray  # share of members in it
    mass: FloatArray  # share of all records in it

    @property
    def error(self) -> float:
        """Expected calibration error: the mean of |said - found| over records."""
        return float(np.abs(self.said - self.found) @ self.mass)


def _bin_of(posteriors: FloatArray) -> IntArray:
    return np.clip((posteriors * _BINS).astype(np.int64), 0, _BINS - 1)


def binned(posteriors: FloatArray, members: BoolArray, weights: FloatArray | None = None) -> Bins:
    """Posteriors [N] and members [N] in bins, with weights [N]; all equal by default."""
    each = np.ones(len(posteriors)) if weights is None else weights
    place = _bin_of(posteriors)
    total, said, found = (
        np.bincount(place, weights=values, minlength=_BINS) for values in (each, each * posteriors, each * members)
    )
    filled = total > 0
    return Bins(said[filled] / total[filled], found[filled] / total[filled], total[filled] / total.sum())


def calibration_floor(posteriors: FloatArray, *, prior: float | ArrayLike = 0.5, share: float | None = None) -> float:
    """The calibration error that posteriors [N] have by chance, even if all of them are exactly right.

    The error of a bin is the absolute value of a normal variable with mean 0, and at most what a bin with hardly any
    members can have. With a ``share`` of members, posteriors are of a simulated target, weighted to the prior.
    """
    expected = np.asarray(prior, dtype=np.float64)  # [] or [N]
    if share is None:
        here, inside, outside = posteriors, np.ones(()), np.ones(())
    else:
        inside, outside = expected / share, (1 - expected) / (1 - share)  # weights of members and of non-members
        # how likely a record with this posterior is a member of a target with another share of members
        alike = not expected.ndim and float(expected) == share
        here = posteriors if alike else expit(logit(posteriors) + logit(share) - logit(expected))
    above, below = inside * (1 - posteriors), outside * posteriors  # what a member and another record add
    total = float((inside * here + outside * (1 - here)).sum())
    place = _bin_of(posteriors)
    variances = np.bincount(place, weights=here * above**2 + (1 - here) * below**2, minlength=_BINS)
    rare = 2 * np.bincount(place, weights=here * above, minlength=_BINS)  # E|D| = 2 E[D+] <= this, for rare members
    return float(np.minimum(np.sqrt(2 / np.pi * variances), rare).sum() / total)


def calibration_excess(posteriors: FloatArray, members: BoolArray, *, prior: float | ArrayLike = 0.5) -> float:
    """By how much the calibration error of a simulated target [N], weighted to the prior, is above that of chance."""
    error = binned(posteriors, members, prior_weights(members, prior)).error
    return error - calibration_floor(posteriors, prior=prior, share=float(members.mean()))


def posterior_doubt(scores: FloatArray, excess: Sequence[float], *, prior: float | ArrayLike = 0.5) -> str:
    """Why scores [N] that are meant as probabilities of membership are not calibrated; empty if they are.

    The `calibration_excess` of simulated targets must be at most 0.01; and the mean of the target's posteriors must be
    the prior (one number, or one per record), with the same tolerance.
    """
    if not excess:
        return "no simulated target can show whether they are calibrated"
    above = float(np.mean(excess)) + float(np.std(excess, ddof=1)) / np.sqrt(len(excess))
    if above > LARGEST_EXCESS:
        return (
            f"simulated targets do not find them calibrated (at the stated prior the calibration error is up to "
            f"{above:.3f} above what chance gives; {LARGEST_EXCESS} is allowed)"
        )
    expected, found, floor = float(np.mean(np.asarray(prior))), float(scores.mean()), calibration_floor(scores)
    if abs(found - expected) > LARGEST_EXCESS + floor:
        return (
            f"their mean on this target is {found:.3f}, and the stated prior is {expected:.3f}: another share of the "
            f"records trained the target, or it was not trained as the shadow models were"
        )
    return ""


_MOST = 100_000  # records; more give no better estimate of how sure a model is, and take seconds
_TARGETS = 32  # more tell no more about how much models of one kind differ
_FEWEST = 6  # with fewer models it is not known how much models of one kind differ
_WRONG = 0.0075  # share of targets of the pool's kind above the limit, for each of two comparisons


def target_mismatch(evidence: Evidence, *, prior: float | ArrayLike = 0.5, advice: str = "") -> str:
    """What a reader must know if the target answers unlike all shadow models; empty if it is like them.

    It never looks at the target's members. Shadow models are weighted to the prior: a target with another share of
    members is not of another kind.

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
