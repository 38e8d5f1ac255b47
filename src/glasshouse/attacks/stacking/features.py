"""Features of a record from one query: what single attacks make of the target's loss and its references' losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from glasshouse.attacks.sides import Moments, moments
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.numerics import FloatArray, log_mean_exp, loss_to_margin
from glasshouse.population import BoolArray

__all__ = ["MODELS_FOR_OWN_SPREAD", "Answers", "Features", "own_spread", "record_features"]

Features = dict[str, FloatArray]
MODELS_FOR_OWN_SPREAD = 8  # references on a side from which a record's own spread says more than noise
_SMALLEST_VARIANCE = 1e-6  # equal margins are possible; certainty is not


class Answers(NamedTuple):
    """Losses from one query: of the target [N], of the references [R, N], and who trained those [R, N]."""

    target: FloatArray
    references: FloatArray
    members: BoolArray


def own_spread(members: BoolArray, mode: Mode) -> bool:
    """Whether every record has references enough for a spread of its own; members [R, N].

    Example:
        >>> own_spread(np.tile([[True], [False]], (8, 3)), "online")
        True
    """
    inside = members.sum(axis=0)
    outside = len(members) - inside
    fewest = outside.min() if mode == "offline" else min(inside.min(), outside.min())
    return bool(fewest >= MODELS_FOR_OWN_SPREAD)


def record_features(answers: Answers, *, mode: Mode, own: bool = False) -> Features:
    """Log-confidence, margin, and how both stand among the references, by name, [N] each.

    BASE's log-odds and the standardised distance to the out-models' mean; online also that to the in-models' mean and
    LiRA's log ratio with one variance a side. Offline no in-model of a record is looked at.

    Args:
        answers: losses of the target and of its references.
        mode: ``"online"`` or ``"offline"``.
        own: whether a record's own spread is told too, and LiRA's ratio by it.

    Example:
        >>> answers = Answers(np.array([0.1]), np.array([[0.2], [1.0]]), np.array([[True], [False]]))
        >>> list(record_features(answers, mode="offline"))
        ['confidence', 'margin', 'base', 'outside', 'from_outside']
    """
    margin, margins = loss_to_margin(answers.target), loss_to_margin(answers.references)
    outside = _side(margins, ~answers.members, "out")
    asked = None if mode == "online" else ~answers.members
    found: Features = {
        "confidence": -answers.target,
        "margin": margin,
        "base": -answers.target - log_mean_exp(-answers.references, where=asked),
        "outside": outside.mean,
        "from_outside": (margin - outside.mean) / np.sqrt(_pooled(outside)),
    }
    if own:
        found["spread_outside"] = np.sqrt(_each(outside))
        found["own_from_outside"] = (margin - outside.mean) / found["spread_outside"]
    if mode == "offline":
        return found
    inside = _side(margins, answers.members, "in")
    found["inside"] = inside.mean
    found["from_inside"] = (margin - inside.mean) / np.sqrt(_pooled(inside))
    found["ratio"] = _log_density(margin, inside.mean, _pooled(inside)) - _log_density(
        margin, outside.mean, _pooled(outside)
    )
    if own:
        found["spread_inside"] = np.sqrt(_each(inside))
        found["own_from_inside"] = (margin - inside.mean) / found["spread_inside"]
        found["own_ratio"] = _log_density(margin, inside.mean, _each(inside)) - _log_density(
            margin, outside.mean, _each(outside)
        )
    return found


def _side(margins: FloatArray, who: BoolArray, name: str) -> Moments:
    if not who.any(axis=0).all():
        raise InputError(
            f"shadow_members: some simulated target has a record without {name}-models among its references. Train "
            f"more shadow models, in complementary pairs."
        )
    return moments(margins, who)


def _pooled(side: Moments) -> FloatArray:
    """One variance for all records; 1 where each has a single model, which has no spread."""
    freedom = float((side.models - 1).sum())
    variance = side.squares.sum() / freedom if freedom else 1.0
    return np.asarray(max(float(variance), _SMALLEST_VARIANCE))


def _each(side: Moments) -> FloatArray:
    return np.maximum(side.squares / np.maximum(side.models - 1, 1), _SMALLEST_VARIANCE)


def _log_density(value: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Of a Gaussian, less a constant that every ratio loses."""
    return np.asarray(-0.5 * np.log(variance) - 0.5 * (value - mean) ** 2 / variance)
