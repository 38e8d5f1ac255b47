"""Losses of the parts of records, such as the tokens of texts: kept beside their sums, for attacks that look inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import FloatArray, IntArray, Positions
from glasshouse.core.errors import InputError

Parts = NDArray[np.float32]

_DETAILS = "loss=TokenLoss(details=True)"
_GIVEN_BY = {"reference": "loss=TokenLoss(reference=…)", "compressed": "loss=TokenLoss()"}


class Ragged(NamedTuple):
    """What is told about the parts of N records, those of one record after those of another.

    Args:
        told: [P] float32 by name, among them "loss".
        offsets: [N + 1] where each record begins, and the end.

    Example:
        >>> Ragged.of({"loss": np.array([[1.0, np.nan], [2.0, 3.0]])}).told["loss"]
        array([1., 2., 3.], dtype=float32)
    """

    told: dict[str, Parts]
    offsets: IntArray

    @classmethod
    def of(cls, padded: Mapping[str, NDArray[Any]]) -> Ragged:
        """From arrays [N, T], of which the losses are NaN where a record has no such part."""
        there = ~np.isnan(padded["loss"])
        told = {name: values[there].astype(np.float32) for name, values in padded.items()}
        return cls(told, np.concatenate([[0], np.cumsum(there.sum(axis=1))]))


@dataclass(frozen=True, eq=False, kw_only=True)
class PartLosses:
    """Losses of the parts of N records, of the target and of the shadow models; see `Evidence.parts`.

    Simulated targets see the same arrays: ``model`` is the shadow model in the target's place, None for the target, and
    ``rows`` [R, 1] or [R, N] are the shadow models that are references, all by default. Nothing is copied before
    `losses` is called.

    Args:
        target: [P] losses of the target.
        shadow: [K, P] losses of the shadow models.
        offsets: [N + 1] where the parts of each record begin, and the end.
        details: what else is known about the parts, by name: [1 + K, P] of the target and the shadow models, or [1, P]
            where it is the same for all of them.
    """

    target: Parts
    shadow: Parts
    offsets: IntArray
    details: Mapping[str, Parts] = field(default_factory=dict)
    model: int | None = None
    rows: Positions | None = None

    def __post_init__(self) -> None:
        ends = self.offsets
        if len(ends) < 2 or ends[0] != 0 or ends[-1] != len(self.target) or (np.diff(ends) < 1).any():
            raise InputError("part_offsets: give [N + 1] rising positions from 0 to the number of parts.")
        if self.shadow.ndim != 2 or self.shadow.shape[1] != len(self.target):
            raise InputError(
                f"shadow_parts: shape {self.shadow.shape} does not fit target_parts, {self.target.shape}; expected "
                f"[K, {len(self.target)}]."
            )

    def among(self, rows: Positions, *, model: int | None) -> PartLosses:
        """What is seen by a simulated target, as `Evidence.among` says."""
        if self.rows is not None:  # a part of a part, which is rare
            target, shadow, _ = self.losses()
            return PartLosses(target=target, shadow=shadow, offsets=self.offsets).among(rows, model=model)
        return replace(self, rows=rows, model=self.model if model is None else model)

    def of_records(self, at: NDArray[np.intp]) -> PartLosses:
        """The parts of some records, by position."""
        sizes = np.diff(self.offsets)[at]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        columns = np.repeat(self.offsets[at] - ends[:-1], sizes) + np.arange(ends[-1])
        rows = self.rows if self.rows is None or self.rows.shape[1] == 1 else self.rows[:, at]
        details = {name: values[:, columns] for name, values in self.details.items()}
        held = {"target": self.target[columns], "shadow": self.shadow[:, columns], "details": details}
        return replace(self, **held, offsets=ends, rows=rows)

    def sums(self) -> FloatArray:
        """[1 + K, N] their sums, of the target and of the shadow models."""
        every = (self.target, *self.shadow)  # all at once they would be copied
        return np.stack([np.add.reduceat(one, self.offsets[:-1], dtype=np.float64) for one in every])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that is known, by the names that a file of evidence has."""
        told = {f"parts_{name}": values for name, values in self.details.items()}
        return {"target_parts": self.target, "shadow_parts": self.shadow, "part_offsets": self.offsets, **told}

    def scaled(self, factors: FloatArray) -> PartLosses:
        """With the target's losses of each record multiplied by a factor, [N]."""
        return replace(self, target=(self.target * np.repeat(factors, np.diff(self.offsets))).astype(np.float32))

    def detail(self, name: str) -> Parts:
        """[P] what is known about the parts of the target, or of the shadow model in its place; "loss" is the loss."""
        if name == "loss":
            return self.target if self.model is None else self.shadow[self.model]
        if name not in self.details:
            raise InputError(f"it looks at {name!r} of each part; pass {_GIVEN_BY.get(name, _DETAILS)}. Leave it out.")
        rows = self.details[name]
        found: Parts = rows[0] if self.model is None or len(rows) == 1 else rows[1 + self.model]
        return found

    def losses(self) -> tuple[NDArray[np.float32], NDArray[np.float32], IntArray]:
        """Losses [P] of what is in the target's place and [R, P] of its references, and [P] whose part each is."""
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        shadow = self.shadow
        if self.rows is not None:
            one = self.rows.shape[1] == 1
            shadow = shadow[self.rows[:, 0]] if one else np.take_along_axis(shadow, self.rows[:, owner], axis=0)
        return self.detail("loss"), shadow, owner
