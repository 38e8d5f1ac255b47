"""Losses of the parts of records, such as the tokens of texts: kept beside their sums, for attacks that look inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, Positions
from glasshouse.core.errors import InputError

if TYPE_CHECKING:
    from glasshouse.evidence.evidence import Evidence


class Ragged(NamedTuple):
    """Numbers of the parts of N records, those of one record after those of another.

    Args:
        values: [P] float32.
        offsets: [N + 1] where each record begins, and the end.

    Example:
        >>> Ragged.of(np.array([[1.0, np.nan], [2.0, 3.0]])).values
        array([1., 2., 3.], dtype=float32)
    """

    values: NDArray[np.float32]
    offsets: IntArray

    @classmethod
    def of(cls, padded: FloatArray) -> Ragged:
        """From losses [N, T] with NaN or minus infinity where a record has no such part."""
        there = np.isfinite(padded)
        return cls(padded[there].astype(np.float32), np.concatenate([[0], np.cumsum(there.sum(axis=1))]))


@dataclass(frozen=True, eq=False, kw_only=True)
class PartLosses:
    """Losses of the parts of N records, of the target and of the shadow models; see `Evidence.parts`.

    Simulated targets see the same arrays: ``model`` is the shadow model in the target's place, None for the target, and
    ``rows`` [R, 1] or [R, N] are the shadow models that are references, all by default. Nothing is copied before
    `as_evidence` is called.

    Args:
        target: [P] losses of the target.
        shadow: [K, P] losses of the shadow models.
        offsets: [N + 1] where the parts of each record begin, and the end.
    """

    target: NDArray[np.float32]
    shadow: NDArray[np.float32]
    offsets: IntArray
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
        if self.rows is not None:  # rows of rows
            width = max(rows.shape[1], self.rows.shape[1])
            held = np.broadcast_to(self.rows, (len(self.rows), width))
            rows = np.take_along_axis(held, np.broadcast_to(rows, (len(rows), width)), axis=0)
        return replace(self, rows=rows, model=self.model if model is None else model)

    def of_records(self, at: NDArray[np.intp]) -> PartLosses:
        """The parts of some records, by position."""
        sizes = np.diff(self.offsets)[at]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        columns = np.repeat(self.offsets[at] - ends[:-1], sizes) + np.arange(ends[-1])
        rows = self.rows if self.rows is None or self.rows.shape[1] == 1 else self.rows[:, at]
        return replace(self, target=self.target[columns], shadow=self.shadow[:, columns], offsets=ends, rows=rows)

    def sums(self, values: FloatArray) -> FloatArray:
        """[N] sums of the numbers [P] of each record's parts."""
        return np.add.reduceat(values, self.offsets[:-1])

    def as_evidence(self, shadow_members: BoolArray) -> Evidence:
        """Evidence in which every part is a record; ``shadow_members`` [K, N] are those of the references."""
        from glasshouse.evidence.evidence import Evidence

        sizes = np.diff(self.offsets)
        shadow = self.shadow
        if self.rows is not None:
            wide = self.rows if self.rows.shape[1] == 1 else np.repeat(self.rows, sizes, axis=1)
            shadow = shadow[wide[:, 0]] if wide.shape[1] == 1 else np.take_along_axis(shadow, wide, axis=0)
        return Evidence(
            target_loss=self.target if self.model is None else self.shadow[self.model],
            shadow_loss=shadow,
            shadow_members=np.repeat(shadow_members, sizes, axis=1),
        )
