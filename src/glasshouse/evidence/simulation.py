"""Simulated targets: the only place where an attack may learn, tune or pick a threshold."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError

__all__ = ["SimulatedTarget", "check_simulation", "reference_rows", "shared_rows"]

_FEW = 64  # records that show of nearly every pair of models that they are not complements

V = TypeVar("V")


class SimulatedTarget(NamedTuple, Generic[V]):
    """A shadow model in the target's place: what an attack may look at, and the true members of the model [N]."""

    view: V
    members: BoolArray


def check_simulation(models: int) -> None:
    """Refuse a pool with too few models for one of them to play the target.

    Example:
        >>> check_simulation(2)
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadows: 2 shadow models are too few to simulate targets with; train 4 or more.
    """
    if models < 4:
        raise InputError(f"shadows: {models} shadow models are too few to simulate targets with; train 4 or more.")


def reference_rows(members: BoolArray, k: int) -> NDArray[np.intp]:
    """Rows of the pool that simulated target k is compared with: [R, 1] the same for all records, or [R, N].

    Example:
        >>> reference_rows(np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool), 0).tolist()
        [[2], [3]]
    """
    paired = _without_pair(members, k)
    if paired is not None:
        return paired
    return _by_record(members, k) if _balanced(members) else _others(members, k)[:, None]


def shared_rows(members: BoolArray) -> list[NDArray[np.intp]] | None:
    """`reference_rows` of every simulated target, [R, 1] each; None if they differ from record to record for one.

    Example:
        >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
        >>> [rows.ravel().tolist() for rows in shared_rows(members)]
        [[2, 3], [2, 3], [0, 1], [0, 1]]
    """
    found = [_without_pair(members, k) for k in range(len(members))]
    if any(rows is None for rows in found) and _balanced(members):
        return None
    return [_others(members, k)[:, None] if rows is None else rows for k, rows in enumerate(found)]


def _others(members: BoolArray, k: int) -> NDArray[np.intp]:
    return np.delete(np.arange(len(members)), k)


def _without_pair(members: BoolArray, k: int) -> NDArray[np.intp] | None:
    """[R, 1] the other models without the complement of k; None if it has none."""
    others = _others(members, k)
    # row by row, and a few records first: a copy of all members for each target would take longer than everything else
    few = members[:, :_FEW] != members[k, :_FEW]
    hopeful = others[few[others].all(axis=1)].tolist()
    complement = next((j for j in hopeful if (members[j] != members[k]).all()), None)
    return None if complement is None else np.asarray(others[others != complement][:, None])


def _balanced(members: BoolArray) -> bool:
    """Whether every record is in equally many models."""
    return len(np.unique(members.sum(axis=0))) == 1


def _by_record(members: BoolArray, k: int) -> NDArray[np.intp]:
    """[R, N] the other models without one of the opposite side for each record."""
    others = _others(members, k)
    opposite = members[others] != members[k]  # [K - 1, N]
    # the partner changes from record to record, so that no model is left out more often than another
    turn = (np.arange(len(others))[:, None] + np.arange(members.shape[1])[None, :]) % len(others)
    partner = np.where(opposite, turn, -1).argmax(axis=0)
    keep = np.argsort(np.arange(len(others))[:, None] == partner, axis=0, kind="stable")[:-1]
    return others[keep]
