"""Features of a record from one query: signals of single attacks on the losses of the target and the shadow models."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.bavaria import fit_variance_prior
from glasshouse.attacks.sides import Moments, moments
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence, Mode
from glasshouse.numerics import log_mean_exp, loss_to_margin

__all__ = ["Features", "record_features"]

Features = dict[str, FloatArray]
_LARGEST = 1e15  # a loss of 1e300 is finite, but its square is not, and learners square, in single precision
_SMALLEST_VARIANCE = 1e-6  # equal margins are possible; certainty is not


def record_features(evidence: Evidence, *, mode: Mode) -> Features:
    """Log-confidence, margin, and how both compare with the shadow models', by name, [N] each.

    They are: BASE's log-odds; the mean margin of out-models, the distance to it in units of one spread for all records
    and of the record's own spread (estimated from few models as BaVarIA does), and that spread; online the same for
    in-models, and the log ratios of LiRA and BaVarIA. Offline no in-model of a record is used.

    In a pool of small or large training sets some records have no in-model or no out-model. Online the mean of that
    side is then the mean of the other side, moved by the usual shift between the sides.

    Args:
        evidence: losses of a target and of the shadow models that it is compared with.
        mode: ``"online"`` or ``"offline"``.

    Example:
        >>> evidence = Evidence(target_loss=[0.1], shadow_loss=[[0.2], [1.0]], shadow_members=[[True], [False]])
        >>> list(record_features(evidence, mode="offline"))
        ['confidence', 'margin', 'base', 'outside', 'from_outside', 'own_from_outside', 'spread_outside']
    """
    target, shadows, members = evidence.target_loss, evidence.shadow_loss, evidence.shadow_members
    sides = _sides(loss_to_margin(shadows), members, mode)
    margin = loss_to_margin(target)
    asked = None if mode == "online" else ~members
    found: Features = {
        "confidence": -target,
        "margin": margin,
        "base": -target - log_mean_exp(-shadows, where=asked),
    }
    densities = []
    for name, side in sides.items():
        pooled, (freedom, own) = _pooled(side), _own(side)
        scale = np.sqrt(own * (1 + 1 / side.models))
        found[name] = side.mean
        found[f"from_{name}"] = (margin - side.mean) / np.sqrt(pooled)
        found[f"own_from_{name}"] = (margin - side.mean) / scale
        found[f"spread_{name}"] = scale
        densities.append((_log_density(margin, side.mean, pooled), student.logpdf(margin, freedom, side.mean, scale)))
    if mode == "online":
        (outside, own_outside), (inside, own_inside) = densities
        found["ratio"], found["own_ratio"] = inside - outside, own_inside - own_outside
    return {name: np.clip(values, -_LARGEST, _LARGEST) for name, values in found.items()}


def _sides(margins: FloatArray, members: BoolArray, mode: Mode) -> dict[str, Moments]:
    """Moments of the out-models and, online, of the in-models of every record."""
    inside = np.asarray(members.any(axis=0))  # [N] which records have such models
    outside = np.asarray((~members).any(axis=0))
    both = inside & outside
    if not (both.any() if mode == "online" else outside.all()):
        has = "no record has in-models and out-models" if mode == "online" else "not every record has out-models"
        raise InputError(
            f"shadow_members: among the references of some simulated target {has}. Train "
            f"more shadow models, or use a share (fraction) nearer to 0.5."
        )
    if mode == "offline":
        return {"outside": moments(margins, ~members)}
    found = {"outside": moments(margins, ~members | ~outside), "inside": moments(margins, members | ~inside)}
    shift = float((found["inside"].mean - found["outside"].mean)[both].mean())
    return {
        "outside": _filled(found["outside"], outside, found["inside"].mean - shift),
        "inside": _filled(found["inside"], inside, found["outside"].mean + shift),
    }


def _filled(side: Moments, known: BoolArray, mean: FloatArray) -> Moments:
    """The moments, with one model of the expected mean [N] for each record that has none."""
    return Moments(
        np.where(known, side.models, 1.0), np.where(known, side.mean, mean), np.where(known, side.squares, 0.0)
    )


def _pooled(side: Moments) -> FloatArray:
    """One variance for all records, []; 1 if each has a single model, which has no spread."""
    freedom = float((side.models - 1).sum())
    variance = side.squares.sum() / freedom if freedom else 1.0
    return np.asarray(max(float(variance), _SMALLEST_VARIANCE))


def _own(side: Moments) -> tuple[FloatArray, FloatArray]:
    """Degrees of freedom and variance of each record, [N] each, shrunk towards the usual variance."""
    if not (side.models > 1).any():
        return np.full(len(side.mean), np.inf), np.ones(len(side.mean))
    freedom, variance = fit_variance_prior(side).updated(side)
    return freedom, np.maximum(variance, _SMALLEST_VARIANCE)


def _log_density(value: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Log-density of a Gaussian, without the constant that cancels in every ratio."""
    return np.asarray(-0.5 * np.log(variance) - 0.5 * (value - mean) ** 2 / variance)
