"""Which shadow models play the target, with which references, and which of them must be held out together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.evidence.simulation import check_simulation, reference_rows
from glasshouse.randomness import generator

__all__ = ["ENOUGH", "TargetPlan", "plan_targets"]

_GROUPS = 4  # held out in turn; more groups need more fits and are hardly better
ENOUGH = 100_000  # pairs of a simulated target and a record: more of them cost time and memory and teach little


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetPlan:
    """Simulated targets of a pool.

    Args:
        targets: [T] rows of the pool that play the target.
        references: for each target the rows that it may be compared with: [R, 1] the same for all records, or [R, N].
        groups: [T] a target and its complement share a group, which is held out as a whole.
        panels: sets of references for the true target, each as large as that of a simulated target; its scores are
            averaged over them, so that what was learned with few references is not used with more.
    """

    targets: NDArray[np.intp]
    references: tuple[NDArray[np.intp], ...]
    groups: NDArray[np.intp]
    panels: tuple[NDArray[np.intp], ...]


def plan_targets(members: BoolArray, *, targets: int, seed: int, enough: int | None = None) -> TargetPlan:
    """Choose simulated targets, in pairs where the pool has pairs.

    Args:
        members: [K, N] members of each shadow model.
        targets: how many play the target, at most; in small pools all models do.
        seed: seed of the choice.
        enough: how many pairs of a simulated target and a record are enough. With more of them fewer models play the
            target: one of each pair, then fewer pairs, but at least four.

    Example:
        >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
        >>> plan = plan_targets(members, targets=16, seed=0)
        >>> plan.targets, plan.references[0].tolist(), plan.groups
        (array([0, 1, 2, 3]), [[2], [3]], array([0, 0, 1, 1]))
    """
    count = len(members)
    check_simulation(count)
    order = np.arange(count) if count <= targets else generator(seed, "simulated").permutation(count)
    sets: dict[bytes, list[int]] = {}  # targets by their references: a model and its complement have the same
    rows = {}
    for k in order.tolist():
        if sum(map(len, sets.values())) >= targets:
            break
        for each in [k, *_complement(members, k)]:
            if each not in rows:
                rows[each] = reference_rows(members, each)
                key = rows[each].tobytes() if rows[each].shape[1] == 1 else bytes([each % 256, each // 256])
                sets.setdefault(key, []).append(each)
    if enough is not None and len(rows) * members.shape[1] > enough and len(sets) >= _GROUPS:
        kept = list(sets)[: max(_GROUPS, enough // members.shape[1])]
        sets = {key: sets[key][:1] for key in kept}
        rows = {k: rows[k] for together in sets.values() for k in together}
    group = {k: number % _GROUPS for number, together in enumerate(sets.values()) for k in together}
    chosen = np.array(sorted(rows))
    alike = [rows[together[0]] for together in sets.values() if rows[together[0]].shape[1] == 1]
    return TargetPlan(
        targets=chosen,
        references=tuple(rows[k] for k in chosen.tolist()),
        groups=np.array([group[k] for k in chosen.tolist()]),
        panels=tuple(alike[:_GROUPS]) or (np.arange(count)[:, None],),
    )


def _complement(members: BoolArray, k: int) -> list[int]:
    """The partner that `reference_rows` leaves out with k."""
    partners: list[int] = np.flatnonzero((members == ~members[k]).all(axis=1))[:1].tolist()
    return partners
