"""Simulated targets: the only place where an attack may learn, tune or pick a threshold."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError

__all__ = ["SimulatedTarget", "check_simulation", "reference_rows"]

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
    others = np.delete(np.arange(len(members)), k)
    # row by row: a copy of all members for each simulated target would take longer than everything else
    complement = next((j for j in others.tolist() if (members[j] != members[k]).all()), None)
    if complement is not None:
        return np.asarray(others[others != complement][:, None])
    if len(np.unique(members.sum(axis=0))) != 1:
        return others[:, None]
    opposite = members[others] != members[k]  # [K - 1, N]
    # the partner changes from record to record, so that no model is left out more often than another
    turn = (np.arange(len(others))[:, None] + np.arange(members.shape[1])[None, :]) % len(others)
    partner = np.where(opposite, turn, -1).argmax(axis=0)
    keep = np.argsort(np.arange(len(others))[:, None] == partner, axis=0, kind="stable")[:-1]
    return others[keep]
