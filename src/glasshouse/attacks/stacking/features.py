"""Features of a record from one query: signals of single attacks on the losses of the target and the shadow models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from glasshouse.attacks.lira import VariancePrior, fit_variance_prior
from glasshouse.attacks.shared.in_out_moments import Moments, moments
from glasshouse.attacks.stacking.fitting import in_blocks
from glasshouse.core.arrays import BoolArray, FloatArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import log_mean_exp, loss_to_margin
from glasshouse.evidence import Evidence, Mode
from glasshouse.evidence.simulation import at_rows
from glasshouse.evidence.units import UnitView

Features = dict[str, FloatArray]
_LARGEST = 1e15  # a loss of 1e300 is finite, but its square is not, and learners square, in single precision
_FEW = 512  # records whose parts are handled at once
_OF_PARTS = ("base", "ratio", "own_ratio", "own_from_outside")
_SMALLEST_VARIANCE = 1e-6  # equal margins are possible; certainty is not


class Usual(NamedTuple):
    """What the features of a single record need to know of all records: a few numbers."""

    shift: float  # from the mean margin of out-models to that of in-models; 0 offline
    # by the name of a side: one variance for all records, and the prior of a record's own variance (None if no record
    # has two models there)
    sides: dict[str, tuple[float, VariancePrior | None]]
    parts: Usual | None = None  # the same of the parts of records, if there are any
    summed: Mapping[str, FloatArray] = {}  # what `summed_parts` found for these records, which takes long


def usual_of(evidence: Evidence, references: Positions, *, mode: Mode) -> Usual:
    """The numbers that all records share, from rows of the pool [R, 1] or [R, N], without a copy of the pool."""
    members = evidence.shadow_members[at_rows(references, evidence.records)]
    _check(members, mode)
    known: dict[str, Moments] = {}
    for records in in_blocks(np.arange(evidence.records)):
        part = evidence.among(references, records=records)
        for name, side in _known_sides(part, mode).items():
            whole = known.setdefault(name, Moments(*np.empty((3, evidence.records))))
            for values, some in zip(whole, side, strict=True):
                values[records] = some
    usual = _usual(known, members)
    if evidence.parts is None:
        return usual
    view = UnitView.of_parts(evidence)
    of_parts = references if references.shape[1] == 1 else references[:, view.units.rows]
    return usual._replace(parts=usual_of(view.rows, of_parts, mode=mode))


def record_features(evidence: Evidence, *, mode: Mode, usual: Usual | None = None) -> Features:
    """Log-confidence, margin, and how both compare with the shadow models', by name, [N] each.

    Online, a side without models has the mean of the other side, moved by the usual shift between the sides. Of records
    with parts also what compares each part with the shadow models', summed, unless that is known.
    """
    target, shadows, members = evidence.target_loss, evidence.shadow_loss, evidence.shadow_members
    if usual is None and evidence.parts is not None:
        usual = usual_of(evidence, np.arange(evidence.models)[:, None], mode=mode)
    if usual is None:
        _check(members, mode)
    known = _known_sides(evidence, mode)
    usual = usual or _usual(known, members)
    margin = loss_to_margin(target)
    asked = None if mode == "online" else ~members
    found: Features = {"confidence": -target, "margin": margin, "base": -target - log_mean_exp(-shadows, where=asked)}
    densities = []
    for name, side in _filled_sides(known, members, usual.shift).items():
        variance, prior = usual.sides[name]
        # degrees of freedom and variance of each record, [N] each, shrunk towards the usual variance
        freedom, own = (np.full(len(margin), np.inf), np.ones(len(margin))) if prior is None else prior.updated(side)
        own = np.maximum(own, _SMALLEST_VARIANCE)
        scale = np.sqrt(own * (1 + 1 / side.models))
        found[name] = side.mean
        found[f"from_{name}"] = (margin - side.mean) / np.sqrt(variance)
        found[f"own_from_{name}"] = (margin - side.mean) / scale
        found[f"spread_{name}"] = scale
        # of a Gaussian, without the constant that cancels in every ratio
        density = -0.5 * np.log(variance) - 0.5 * (margin - side.mean) ** 2 / variance
        densities.append((density, student.logpdf(margin, freedom, side.mean, scale)))
    if mode == "online":
        (outside, own_outside), (inside, own_inside) = densities
        found["ratio"], found["own_ratio"] = inside - outside, own_inside - own_outside
    found |= usual.summed or summed_parts(evidence, mode=mode, usual=usual)
    return {name: np.clip(values, -_LARGEST, _LARGEST) for name, values in found.items()}


def summed_parts(evidence: Evidence, *, mode: Mode, usual: Usual) -> Features:
    """What compares a part of a record with the shadow models', summed over its parts, by name, [N] each."""
    found: dict[str, list[FloatArray]] = {}
    blocks = np.split(np.arange(evidence.records), range(_FEW, evidence.records, _FEW))
    for some in [] if evidence.parts is None else blocks:
        view = UnitView.of_parts(evidence.of_records(some))
        for name, values in record_features(view.rows, mode=mode, usual=usual.parts).items():
            if name in _OF_PARTS:
                found.setdefault(f"parts_{name}", []).append(view.units.sums(values))
    return {name: np.concatenate(values) for name, values in found.items()}


def _check(members: BoolArray, mode: Mode) -> None:
    """Refuse references of whom too many lie on one side."""
    inside, outside = members.any(axis=0), ~members.all(axis=0)  # [N] which records have such models
    if not ((inside & outside).any() if mode == "online" else outside.all()):
        has = "no record has in-models and out-models" if mode == "online" else "not every record has out-models"
        raise InputError(
            f"shadow_members: among the references of some simulated target {has}. Train "
            f"more shadow models, or use a share (fraction) nearer to 0.5."
        )


def _usual(known: dict[str, Moments], members: BoolArray) -> Usual:
    shift = 0.0
    if "inside" in known:
        both = members.any(axis=0) & ~members.all(axis=0)
        shift = float((known["inside"].mean - known["outside"].mean)[both].mean())
    found: dict[str, tuple[float, VariancePrior | None]] = {}
    for name, side in _filled_sides(known, members, shift).items():
        freedom = float((side.models - 1).sum())
        if freedom:
            found[name] = max(float(side.squares.sum() / freedom), _SMALLEST_VARIANCE), fit_variance_prior(side)
        else:  # each record has a single model, which has no spread
            found[name] = 1.0, None
    return Usual(shift, found)


def _known_sides(evidence: Evidence, mode: Mode) -> dict[str, Moments]:
    """Moments of the out-models and, online, of the in-models of every record; of all models if it has none."""
    margins, members = loss_to_margin(evidence.shadow_loss), evidence.shadow_members
    if mode == "offline":
        return {"outside": moments(margins, ~members)}
    return {
        "outside": moments(margins, ~members | members.all(axis=0)),
        "inside": moments(margins, members | ~members.any(axis=0)),
    }


def _filled_sides(known: dict[str, Moments], members: BoolArray, shift: float) -> dict[str, Moments]:
    """The same, where a side without models has the mean of the other side, moved by the shift."""
    if "inside" not in known:
        return known
    outside, inside = known["outside"], known["inside"]
    return {
        "outside": _filled(outside, np.asarray(~members.all(axis=0)), inside.mean - shift),
        "inside": _filled(inside, np.asarray(members.any(axis=0)), outside.mean + shift),
    }


def _filled(side: Moments, known: BoolArray, mean: FloatArray) -> Moments:
    """The moments, with one model of the expected mean [N] for each record that has none."""
    parts = ((side.models, np.ones(len(mean))), (side.mean, mean), (side.squares, np.zeros(len(mean))))
    return side if known.all() else Moments(*(np.where(known, own, other) for own, other in parts))
