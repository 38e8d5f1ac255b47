"""Simulated targets: the only place where an attack may learn, tune or pick a threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from glasshouse.core.arrays import BoolArray, Positions
from glasshouse.core.errors import InputError
from glasshouse.core.threads import cached_blocks

V = TypeVar("V")


class SimulatedTarget(NamedTuple, Generic[V]):
    """A shadow model in the target's place: what an attack may look at, and the true members of the model [N]."""

    view: V
    members: BoolArray


def check_simulation(models: int) -> None:
    """Refuse a pool with too few models for one of them to play the target."""
    if models < 4:
        raise InputError(f"shadows: {models} shadow models are too few to simulate targets with; train 4 or more.")


def reference_rows(members: BoolArray, k: int) -> Positions:
    """Rows of the pool that simulated target k is compared with: [R, 1] the same for all records, or [R, N]."""
    return rows_without(next(left_out_models(members, [k])), len(members))


def at_rows(rows: Positions, records: int) -> Any:
    """Where rows of a pool, [R, 1] the same for all records (faster to copy) or [R, N], are in arrays [K, N]."""
    return rows[:, 0] if rows.shape[1] == 1 else (rows, np.arange(records))


def rows_without(left: Positions, models: int) -> Positions:
    """The rows of a pool, rising, [R, 1] or [R, N], without those that are left out, [L, 1] or [L, N] and rising."""
    rows = np.repeat(np.arange(models - len(left))[:, None], left.shape[1], axis=1)
    for gone in left:
        rows += rows >= gone
    return rows


def left_out_models(members: BoolArray, targets: Iterable[int] | None = None) -> Iterator[Positions]:
    """The rows of the pool that a simulated target is not compared with, rising: [L, 1], or [2, N] record by record.

    They are the target itself and its complement, or else, if every record is in equally many models, one model of the
    opposite side for each record; `Evidence.simulated` has the reason.
    """
    chosen = list(range(len(members)) if targets is None else targets)
    first = {row: len(members) - 1 - back for back, row in enumerate(reversed(_rows_as_bytes(members)))}
    complements = [first.get(row) for row in _rows_as_bytes(~members[chosen])]
    balanced = len(members) > 1 and len(np.unique(members.sum(axis=0))) == 1  # every record is in equally many models
    opposite = _opposite_models(members) if None in complements and balanced else None
    for k, complement in zip(chosen, complements, strict=True):
        if complement is not None:
            yield np.array([[min(k, complement)], [max(k, complement)]])
        else:
            yield np.array([[k]]) if opposite is None else opposite(k)


def _rows_as_bytes(members: BoolArray) -> list[bytes]:
    return [row.tobytes() for row in np.packbits(members, axis=1)]


def _opposite_models(members: BoolArray) -> Callable[[int], Positions]:
    """From a simulated target to itself and, for each record, a model of the other side than its own: [2, N], rising.

    With the models but the target in a circle, a record takes the first one of the opposite side from a place of its
    own downwards, so that no model is left out more often than another.
    """
    models, records = members.shape
    start = (models - 2 - np.arange(records)) % (models - 1)  # [N], counted without the target
    found = np.empty((2, 2, records), dtype=np.intp)  # by side, and by whether the target comes before
    for some in cached_blocks(records, models=models):
        for after in (0, 1):
            rows = (start[some] + after - np.arange(models)[:, None]) % models
            inside = np.take_along_axis(members[:, some], rows, axis=0)
            for side in (0, 1):
                fits = inside == bool(side)
                at = np.take_along_axis(rows, fits.argmax(axis=0)[None], axis=0)[0]
                found[side, after, some] = np.where(fits.any(axis=0), at, -1)

    def with_target(k: int) -> Positions:
        partner = found[(~members[k]).astype(np.intp), (start >= k).astype(np.intp), np.arange(records)]
        partner[partner < 0] = int(k == 0)  # no model is on the opposite side
        return np.sort(np.stack([np.full(records, k), partner]), axis=0)

    return with_target
