"""Simulated targets: the only place where an attack may learn, tune or pick a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence

__all__ = ["SimulatedTarget", "check_simulation", "reference_rows", "simulated_targets"]


class SimulatedTarget(NamedTuple):
    """A shadow model in the target's place: evidence against it, and who truly trained it [N]."""

    evidence: Evidence
    members: BoolArray


def simulated_targets(evidence: Evidence) -> Iterator[SimulatedTarget]:
    """Each shadow model k in turn as the target, judged by the rest of the pool less k's complement.

    With the complement among the references, the count of in-models would tell who trained k. Where the pool has no
    complementary pairs but every record is in equally many models, one model of the opposite side is left out record
    by record, for the same reason; where training sets were drawn independently, leaving out k is enough.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.0, 0.0], shadow_loss=[[1, 2], [3, 4], [5, 6], [7, 8]],
        ...     shadow_members=[[1, 0], [0, 1], [1, 0], [0, 1]],
        ... )
        >>> first = next(simulated_targets(evidence))
        >>> first.evidence.target_loss, first.members
        (array([1., 2.]), array([ True, False]))
    """
    check_simulation(evidence.models)
    members = evidence.shadow_members
    columns = np.arange(evidence.records)
    for k in range(evidence.models):
        rows = reference_rows(members, k)  # [R, 1] the same models for all, or [R, N] record by record
        logits = evidence.shadow_logits
        yield SimulatedTarget(
            Evidence(
                target_loss=evidence.shadow_loss[k],
                shadow_loss=evidence.shadow_loss[rows, columns],
                shadow_members=members[rows, columns],
                ids=evidence.ids,
                labels=evidence.labels,
                target_logits=None if logits is None else logits[k],
                shadow_logits=None if logits is None else logits[rows, columns],
            ),
            members[k],
        )


def check_simulation(models: int) -> None:
    """Refuse a pool of so few models that none can play the target.

    Example:
        >>> check_simulation(2)
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadows: 2 shadow models are too few to simulate targets with; train 4 or more.
    """
    if models < 4:
        raise InputError(f"shadows: {models} shadow models are too few to simulate targets with; train 4 or more.")


def reference_rows(members: BoolArray, k: int) -> NDArray[np.intp]:
    """Rows of the pool that may speak about simulated target k: [R, 1] for all records alike, or [R, N].

    Example:
        >>> reference_rows(np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool), 0).tolist()
        [[2], [3]]
    """
    others = np.delete(np.arange(len(members)), k)
    complements = others[(members[others] == ~members[k]).all(axis=1)]
    if len(complements):
        return np.setdiff1d(others, complements[:1])[:, None]
    if len(np.unique(members.sum(axis=0))) != 1:
        return others[:, None]
    opposite = members[others] != members[k]  # [K - 1, N]
    # the partner moves round the pool with the record, so that no model is left out more often than another
    turn = (np.arange(len(others))[:, None] + np.arange(members.shape[1])[None, :]) % len(others)
    partner = np.where(opposite, turn, -1).argmax(axis=0)
    keep = np.argsort(np.arange(len(others))[:, None] == partner, axis=0, kind="stable")[:-1]
    return others[keep]
