"""The one type of evidence: losses of the target and of the shadow models on every record."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, Floats, IntArray, TextArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.numerics import check_finite, loss_to_margin
from glasshouse.core.randomness import generator
from glasshouse.core.threads import forget_mapped
from glasshouse.data import Units, as_ids, as_members
from glasshouse.data.units import as_units
from glasshouse.evidence.parts import PartLosses
from glasshouse.evidence.simulation import SimulatedTarget, at_rows, check_simulation, reference_rows
from glasshouse.evidence.trace import traced_losses

_FEWEST = 20  # public records, and records that are left to be judged on each side


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicRecords:
    """Records that an attacker knows not to have trained the target, such as a published test set.

    They are the material of attacks without shadow models, and they are not judged themselves.

    Example:
        >>> column = np.zeros((2, 1))
        >>> public = PublicRecords(loss=np.ones(2), labels=np.array([0, 1]), features=column, audited=column)
        >>> len(public)
        2
    """

    loss: FloatArray  # [P] losses of the target on them
    labels: IntArray  # [P] columns of their classes
    features: FloatArray  # [P, F] what is known about them without the target, as numbers
    audited: FloatArray  # [N, F] the same about the audited records

    def __len__(self) -> int:
        return len(self.loss)


def public_mask(
    public: ArrayLike | None,
    members: BoolArray,
    *,
    seed: int,
    ids: TextArray | None = None,
    units: Units | None = None,
) -> BoolArray:
    """[N] which records are public: a mask, or a share of the non-members that is set aside at random; None for none.

    A member of the target cannot be public. With ``ids`` [N], public records may be given by these. Units are public as
    a whole.
    """
    if units is not None and public is not None:
        if np.ndim(public) == 0:
            inside = units.members(members, place="members")
            return public_mask(public, inside, seed=seed, ids=units.names)[units.rows]
        return units.members(public_mask(public, members, seed=seed, ids=ids), place="public")[units.rows]
    mask, others = np.zeros(len(members), dtype=np.bool_), np.flatnonzero(~members)
    if public is None:
        return mask
    if np.ndim(public) == 0:
        given = np.asarray(public)
        share = float(given) if given.dtype.kind in "fi" else 0.0
        if not 0 < share < 1:
            raise InputError(f"public: {public!r} is not a share; give a number between 0 and 1, or a mask, [N].")
        mask[generator(seed, "public").permutation(others)[: round(share * len(others))]] = True
    else:
        mask = as_members(public, members.shape, place="public", ids=ids)
        if (both := int((mask & members).sum())) > 0:
            raise InputError(
                f"public: {both} of the public records trained the target (members); a public record is known not to. "
                f"Leave them out of the mask."
            )
    if mask.sum() < _FEWEST or len(others) - mask.sum() < _FEWEST:
        raise InputError(
            f"public: {int(mask.sum())} of {len(others)} non-members are public; at least {_FEWEST} are needed to "
            f"learn from, and {_FEWEST} others to be judged."
        )
    return mask


_ROUNDING = 1e-5  # a loss in float32 may be so far below 0
_BY_MODEL = ("shadow_loss", "shadow_members", "shadow_logits", "shadow_residual", "target_trace")  # records come second

Mode = Literal["online", "offline"]
Kind = Literal["records", "graph", "edges", "any"]  # what an attack looks at


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Evidence:
    """What an attack may look at. It does not contain the target's members.

    Args:
        target_loss: [N] losses of the model under audit.
        shadow_loss: [K, N] losses of the shadow models; none by default.
        shadow_members: [K, N] members of each shadow model.
        ids: [N] record ids, in the order of all other arrays; positions by default.
        labels: [N] columns of the true classes, for attacks that need them.
        target_logits: [N, C], for attacks that look at all classes.
        shadow_logits: [K, N, C], the same for shadow models.
        target_residual: [N] true value minus prediction, for a regression, in standard deviations of what models get
            wrong outside their members.
        shadow_residual: [K, N], the same for shadow models.
        target_trace: [T, N] losses at several moments of the target's training, if its owner recorded them.
        parts: losses of the parts of each record, such as the tokens of a text, whose sums are the losses.
        public: records that are known not to have trained the target, for attacks without shadow models.
        notes: how the models' answers were handled, in sentences for a report.
        unit: [N] whose record each one is, or `Units`, if one person may have several records.

    Example:
        >>> losses, members = [[0.5, 1.0], [0.7, 1.2]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=losses, shadow_members=members)
        >>> evidence.records, evidence.models
        (2, 2)
        >>> evidence.references("offline")
        array([[False,  True],
               [ True, False]])
    """

    target_loss: FloatArray
    shadow_loss: FloatArray
    shadow_members: BoolArray
    ids: TextArray
    labels: IntArray | None
    target_logits: Floats | None
    shadow_logits: Floats | None
    target_residual: FloatArray | None
    shadow_residual: FloatArray | None
    target_trace: FloatArray | None
    parts: PartLosses | None
    public: PublicRecords | None
    notes: tuple[str, ...]
    unit: Units | None

    def __init__(
        self,
        *,
        target_loss: ArrayLike,
        shadow_loss: ArrayLike | None = None,
        shadow_members: ArrayLike | None = None,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        labels: ArrayLike | None = None,
        target_logits: ArrayLike | None = None,
        shadow_logits: ArrayLike | None = None,
        target_residual: ArrayLike | None = None,
        shadow_residual: ArrayLike | None = None,
        target_trace: ArrayLike | None = None,
        parts: PartLosses | None = None,
        public: PublicRecords | None = None,
        notes: Sequence[str] = (),
        unit: ArrayLike | Units | None = None,
    ) -> None:
        target = _as_numbers(target_loss, "target_loss")
        if (shadow_loss is None) != (shadow_members is None):
            lacking = "shadow_loss" if shadow_loss is None else "shadow_members"
            raise InputError(f"{lacking}: missing; give shadow_loss and shadow_members, [K, N], or neither of them.")
        shadows = np.empty((0, target.size)) if shadow_loss is None else _as_numbers(shadow_loss, "shadow_loss")
        shadow_members = np.zeros(shadows.shape, dtype=np.bool_) if shadow_members is None else shadow_members
        if target.ndim != 1 or not len(target):
            raise InputError(f"target_loss: shape {target.shape}; expected [N], one loss per record.")
        if shadows.ndim != 2 or shadows.shape[1] != len(target):
            raise InputError(
                f"shadow_loss: shape {shadows.shape} does not fit target_loss, which has {len(target)} records; "
                f"expected [K, {len(target)}], one row per shadow model."
            )
        names = as_ids(ids, len(target), place="ids")
        if (target_residual is None) != (shadow_residual is None):
            raise InputError("residuals: give target_residual and shadow_residual, or neither.")
        made: dict[str, Any] = {"ids": names, "parts": parts, "public": public, "notes": tuple(notes)}
        faults: list[str] = []
        for place, given in (("target_loss", target), ("shadow_loss", shadows)):
            try:
                made[place] = checked_losses(given, names, place=place)
            except InputError as error:
                faults += error.faults
        raise_faults(faults)
        made["shadow_members"] = as_members(shadow_members, shadows.shape, place="shadow_members")
        made["labels"] = codes = None if labels is None else checked_labels(labels, len(target))
        made["target_logits"] = _beside(target_logits, target.shape, "target_logits", names, codes)
        made["shadow_logits"] = _beside(shadow_logits, shadows.shape, "shadow_logits", names, codes)
        made["target_residual"] = _beside(target_residual, target.shape, "target_residual", names)
        made["shadow_residual"] = _beside(shadow_residual, shadows.shape, "shadow_residual", names)
        made["target_trace"] = traced_losses(target_trace, len(target), ids=names)
        made["unit"] = as_units(unit, len(target))
        vars(self).update(made)  # the class is frozen, so its fields are set through its dictionary

    def __repr__(self) -> str:
        return f"Evidence({self.records} records, {self.models} shadow models)"

    @property
    def records(self) -> int:
        """N, the number of records."""
        return len(self.target_loss)

    @property
    def models(self) -> int:
        """K, the number of shadow models."""
        return len(self.shadow_loss)

    @property
    def regression(self) -> bool:
        """Whether it is about real-valued targets, with residuals."""
        return self.target_residual is not None

    @property
    def target_statistic(self) -> FloatArray:
        """[N] what is near normal over training sets: the margin of the loss, or the residual of a regression.

        A residual is its prediction with another sign and origin, and a regressor's prediction is near normal over
        training sets; exactly so for a linear model with Gaussian noise. The margin of a squared error is not: its
        logarithm goes to minus infinity wherever a prediction happens to be right.
        """
        return loss_to_margin(self.target_loss) if self.target_residual is None else self.target_residual

    @property
    def shadow_statistic(self) -> FloatArray:
        """[K, N] the same for shadow models."""
        return self.statistic_of()

    def statistic_of(self, models: Any = slice(None), records: slice = slice(None)) -> FloatArray:
        """The same of some shadow models and records, in new memory: of all it is as large as the losses."""
        if self.shadow_residual is not None:
            return np.array(self.shadow_residual[models, records])
        return loss_to_margin(np.ascontiguousarray(self.shadow_loss[models, records]))

    def references(self, mode: Mode) -> BoolArray:
        """[K, N], which shadow models are used for which record: all of them online, out-models offline."""
        if mode == "offline":
            self.require_side(inside=False)
            return ~self.shadow_members
        return np.ones_like(self.shadow_members)

    @property
    def evidence(self) -> Evidence:
        """The evidence itself: what attacks on records look at."""
        return self

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Which kinds of attack can use it: those on records."""
        return ("records",)

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """The entries of the audited records, [N]; here all records are audited."""
        return np.asarray(values)

    def simulated(self) -> Iterator[SimulatedTarget[Evidence]]:
        """Each shadow model k in turn as the target, judged by the rest of the pool without k's complement.

        With the complement among the references, the count of in-models would reveal the members of k. If the pool has
        no complementary pairs but every record is in equally many models, one model of the opposite side is left out
        for each record, for the same reason. If training sets were drawn independently, leaving out k is enough.
        """
        check_simulation(self.models)
        for k in range(self.models):
            yield self.simulated_target(k)

    def simulated_target(self, k: int) -> SimulatedTarget[Evidence]:
        """Shadow model k as the target; see `simulated`."""
        return SimulatedTarget(self.among(reference_rows(self.shadow_members, k), model=k), self.shadow_members[k])

    def in_place_of(self, k: int) -> Evidence:
        """The same target, compared only with the references of simulated target k."""
        return self.among(reference_rows(self.shadow_members, k))

    def among(
        self, rows: NDArray[np.intp], *, model: int | None = None, records: NDArray[np.intp] | None = None
    ) -> Evidence:
        """The evidence about the target, or about the shadow model in its place, with some of the models as references.

        Rows of the pool are [R, 1], the same for all records, or [R, N]. The ``records`` are positions, all by default.
        """
        if records is not None:
            return self.of_records(records).among(rows if rows.shape[1] == 1 else rows[:, records], model=model)
        logits, residuals = self.shadow_logits, self.shadow_residual
        at = at_rows(rows, self.records)
        return self._part(
            target_loss=self.target_loss if model is None else self.shadow_loss[model],
            shadow_loss=self.shadow_loss[at],
            shadow_members=self.shadow_members[at],
            target_logits=self.target_logits if model is None or logits is None else logits[model],
            shadow_logits=None if logits is None else logits[at],
            target_residual=self.target_residual if model is None or residuals is None else residuals[model],
            shadow_residual=None if residuals is None else residuals[at],
            target_trace=self.target_trace if model is None else None,  # they are about the target alone
            parts=None if self.parts is None else self.parts.among(rows, model=model),
            public=self.public if model is None else None,
            notes=(),
        )

    def of_records(self, rows: NDArray[Any]) -> Evidence:
        """The evidence about some of the records, by mask [N] or by position."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        held = {name: value for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        taken: dict[str, Any] = {
            name: _of_models(value, at) if name in _BY_MODEL else value[at] for name, value in held.items()
        }
        taken |= {"unit": None if self.unit is None else self.unit.at(at)}
        return self._part(**taken, parts=None if self.parts is None else self.parts.of_records(at))

    def losses_alone(self, *, details: bool = True, parts: bool = True) -> Evidence:
        """The same evidence without logits, trace and public records, which attacks on losses do not need.

        Without ``details`` of its parts too, or without the parts.
        """
        kept = self.parts if parts else None
        kept = kept if details or kept is None else replace(kept, details={})
        return self._part(target_logits=None, shadow_logits=None, target_trace=None, parts=kept, public=None, notes=())

    def of_parts(self) -> Evidence:
        """Evidence in which every part of a record, such as a token of a text, is a nameless record of its own."""
        target, shadow, owner = self.require_parts().losses()
        ids = np.broadcast_to(np.str_("(a part)"), owner.shape)  # to name millions would take most of the time
        made = dict.fromkeys(vars(self)) | {"ids": ids, "notes": (), "shadow_members": self.shadow_members[:, owner]}
        for name, given in (("target_loss", target), ("shadow_loss", shadow)):
            made[name] = checked_losses(given.astype(np.float64), ids, place=name)
        return self._part(**made)

    def require_parts(self) -> PartLosses:
        """The losses of parts; refused where there are none."""
        if self.parts is None:
            raise InputError(
                "it looks at parts of records, such as tokens, and there are none: pass loss=TokenLoss(), or a loss "
                "that gives [B, T]. Leave it out."
            )
        return self.parts

    def with_public(self, public: PublicRecords) -> Evidence:
        """The same evidence with these public records, for attacks without shadow models."""
        return self._part(public=public)

    def with_ids(self, ids: TextArray) -> Evidence:
        """The same evidence with other names [N] of the records."""
        return self._part(ids=ids)

    def with_target_loss(self, loss: FloatArray) -> Evidence:
        """The same evidence with other losses [N] of the target; those of a record's parts change in proportion."""
        before = self.target_loss
        factors = np.divide(loss, before, out=np.ones_like(loss), where=before > 0)
        return self._part(target_loss=loss, parts=None if self.parts is None else self.parts.scaled(factors))

    def with_units(self, unit: ArrayLike | Units | None) -> Evidence:
        """The same evidence with units [N]: whose record each one is."""
        return self._part(unit=as_units(unit, self.records))

    def with_trace(self, losses: FloatArray) -> Evidence:
        """The same evidence with losses [T, N] from the target's training."""
        return self._part(target_trace=losses)

    def _part(self, **changed: Any) -> Evidence:
        """The same evidence with some arrays replaced by parts of arrays that were checked already."""
        made = object.__new__(Evidence)
        vars(made).update(vars(self), **changed)
        return made

    def require_side(self, *, inside: bool, models: int = 1) -> None:
        """Refuse if a record has fewer than ``models`` in-models (or out-models)."""
        counts = (self.shadow_members if inside else ~self.shadow_members).sum(axis=0)
        short = counts < models
        if short.any():
            kind = "in-model" if inside else "out-model"
            # with shares far from one half, even many models leave some records without one
            other = "a larger share (fraction), or mode offline" if inside else "a smaller share (fraction)"
            raise InputError(
                f"shadow_members: record {str(self.ids[short][0])!r} has {counts[short][0]} {kind}s and this attack "
                f"needs {models} ({int(short.sum())} such records). Train more shadow models, in pairs, or "
                f"use {other}."
            )


def _of_models(values: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
    """Values [K, N, …] at some of the records, model by model: little of a mapped array is in memory at once."""
    found = np.empty((len(values), len(at), *values.shape[2:]), dtype=values.dtype)
    for part, one in zip(found, values, strict=True):
        part[...] = one[at]
        forget_mapped()
    return found


def checked_losses(losses: FloatArray, ids: TextArray, *, place: str) -> FloatArray:
    """Losses [N] or [K, N] that are finite and not negative; rounding below 0 becomes 0, anything else is refused."""
    check_finite(losses, ids, place=place, models=losses.ndim == 2)
    if losses.min(initial=0.0) >= 0:
        return losses
    negative = losses < -_ROUNDING
    if not negative.any():
        return np.maximum(losses, 0.0)
    *model, record = np.argwhere(negative)[0]
    first = f"record {str(ids[record])!r}" + (f", shadow model {model[0]}" if model else "")
    raise InputError(
        f"{place}: {int(negative.sum())} of {losses.size} losses are negative, first at {first}. If they are "
        f"log-likelihoods, negate them (loss = -log-likelihood); for a likelihood that is a density, subtract the "
        f"smallest loss of all models from every loss."
    )


def checked_labels(labels: ArrayLike, records: int) -> IntArray:
    """Columns [N] of the true classes, as whole numbers; anything else is refused."""
    values = np.asarray(labels)
    if values.shape != (records,):
        raise InputError(f"labels: shape {values.shape} does not fit {records} records; give one label per record.")
    if values.dtype.kind not in "iufb" or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise InputError("labels: give whole numbers, the columns of the true classes, starting at 0.")
    return values.astype(np.int64)


def _as_numbers(given: ArrayLike, name: str) -> FloatArray:
    """Numbers as float64; text, dates and complex numbers are refused, of which numpy would make numbers."""
    try:
        values = np.asarray(given)
    except ValueError:
        raise InputError(f"{name}: its rows have different lengths; give one number per record.") from None
    if values.dtype.kind not in "iufb":
        raise InputError(f"{name}: is of type {values.dtype}; give numbers.")
    return values.astype(np.float64, copy=False)


def _beside(
    given: ArrayLike | None, shape: tuple[int, ...], name: str, ids: TextArray, labels: IntArray | None = None
) -> Floats | None:
    """Residuals of the losses' shape, or logits of all classes beside them; refused if they do not fit."""
    if given is None:
        return None
    logits = name.endswith("logits")
    values = np.asarray(given) if logits else _as_numbers(given, name)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name}: is of type {values.dtype}; give numbers.")
    if (values.shape[:-1] if logits else values.shape) != shape:
        wanted = ", ".join(map(str, (*shape, "C") if logits else shape))
        raise InputError(f"{name}: shape {values.shape} does not fit; expected [{wanted}].")
    check_finite(values, ids, place=name, labels=labels, models=len(shape) == 2)
    return values


@dataclass(frozen=True, eq=False)
class UnitView:
    """A view of which each record is a unit, such as a person; the rows stay visible inside.

    Attacks score the rows and join them (`glasshouse.attacks.by_unit.ByUnit`). Everything else sees units as records:
    ids, members, thresholds, tests, groups and lists.

    Args:
        rows: the evidence of the rows, or a scene of a graph.
        units: whose rows the audited ones are.

    Example:
        >>> rows = Evidence(target_loss=[0.1, 2.0, 0.3], shadow_loss=[[0.5, 1.0, 0.7]], shadow_members=[[1, 0, 1]])
        >>> view = UnitView(rows, Units(["ann", "bob", "ann"]))
        >>> view.ids.tolist(), view.shadow_members.tolist(), view.evidence.target_loss
        (['ann', 'bob'], [[True, False]], array([0.2, 2. ]))
    """

    rows: Any
    units: Units

    @classmethod
    def of_parts(cls, evidence: Evidence) -> UnitView:
        """Records as units of their parts, such as texts as units of their tokens."""
        return cls(evidence.of_parts(), Units.in_order(evidence.ids, evidence.require_parts().offsets))

    @property
    def ids(self) -> TextArray:
        """[U] names of the units."""
        return self.units.names

    @functools.cached_property
    def shadow_members(self) -> BoolArray:
        """[K, U] which units trained each shadow model."""
        inside = [
            self.units.members(self.rows.audited(one), place="shadow members") for one in self.rows.shadow_members
        ]
        return np.array(inside, dtype=np.bool_).reshape(len(inside), len(self.units))

    @functools.cached_property
    def evidence(self) -> Evidence:
        """Mean losses of each unit: what is asked about the models as a whole looks at these."""
        rows, means = self.rows.evidence, self.units.means
        both = ("target_residual", "shadow_residual") if rows.regression else ()
        residuals: dict[str, Any] = {name: means(getattr(rows, name)) for name in both}
        return Evidence(
            target_loss=means(rows.target_loss),
            shadow_loss=means(rows.shadow_loss),
            shadow_members=self.shadow_members,
            ids=self.units.names,
            notes=rows.notes,
            **residuals,
        )

    @property
    def offers(self) -> tuple[Kind, ...]:
        """Which kinds of attack can score its rows."""
        offered: tuple[Kind, ...] = self.rows.offers
        return offered

    def audited(self, values: ArrayLike) -> NDArray[Any]:
        """[U] means over the rows of each audited unit, from an array with one entry per record of the population."""
        return self.units.means(self.rows.audited(values))

    def simulated(self) -> Iterator[SimulatedTarget[UnitView]]:
        """Each shadow model in turn as the target."""
        return map(self.simulated_target, range(len(self.shadow_members)))

    def simulated_target(self, k: int) -> SimulatedTarget[UnitView]:
        """Shadow model k as the target."""
        return SimulatedTarget(UnitView(self.rows.simulated_target(k).view, self.units), self.shadow_members[k])

    def in_place_of(self, k: int) -> UnitView:
        """The same target, compared only with the references of simulated target k."""
        return UnitView(self.rows.in_place_of(k), self.units)
