"""The parameters that both stacked attacks share, and which shadow models play the target with which references."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.attacks.shared.prior import check_prior, learned_posterior, with_prior
from glasshouse.attacks.stacking.learners import Boosted, Learner, Linear
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.evidence import Mode
from glasshouse.evidence.simulation import at_rows, check_simulation, reference_rows

_GROUPS = 4  # held out in turn; more groups need more fits and are hardly better
ENOUGH = 100_000  # pairs of a simulated target and a record: more of them cost time and memory and teach little


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetPlan:
    """Simulated targets of a pool."""

    targets: NDArray[np.intp]  # [T] rows of the pool that play the target
    references: tuple[
        NDArray[np.intp], ...
    ]  # the rows that each may be compared with: [R, 1] for all records, or [R, N]
    groups: NDArray[np.intp]  # [T] a target and its complement share a group, which is held out as a whole
    # sets of references for the true target, each as large as that of a simulated target; its scores are averaged over
    # them, so that what was learned with few references is not used with more
    panels: tuple[NDArray[np.intp], ...]


def plan_targets(members: BoolArray, *, targets: int, seed: int, enough: int | None = None) -> TargetPlan:
    """Choose simulated targets, in pairs where the pool has pairs: at most so many, and in small pools all models.

    With more than ``enough`` pairs of a simulated target and a record, fewer models play the target: one of each pair,
    then fewer pairs, but at least four.
    """
    count = len(members)
    check_simulation(count)
    order = np.arange(count) if count <= targets else generator(seed, "simulated").permutation(count)
    sets: dict[bytes, list[int]] = {}  # targets by their references: a model and its complement have the same
    rows = {}
    for k in order.tolist():
        if sum(map(len, sets.values())) >= targets:
            break
        for each in [k, *np.flatnonzero((members == ~members[k]).all(axis=1))[:1].tolist()]:  # and its complement
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


@dataclass(frozen=True, kw_only=True)
class StackedParameters:
    """Parameters of `Stacked` and `GStacked`, where they are explained.

    A copy by `dataclasses.replace` keeps what was learned if only the prior or the number of jobs changes. With another
    mode or seed, for example, it drops what was learned and learns again, so that nothing outdated is used.
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    prior: float | ArrayLike = 0.5
    targets: int = 16
    folds: int = 4
    boosted: Boosted = field(default_factory=Boosted)
    linear: Linear = field(default_factory=Linear)
    seed: int = 0
    jobs: int = field(default=-1, repr=False, compare=False)  # changes the time, not the result
    fit_: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_prior(self.prior)
        if self.folds < 2 or self.targets < 4:
            raise InputError(f"folds, targets: {self.folds}, {self.targets}; use 2 and 4, or more.")
        if self.fit_ is not None and self.fit_.parameters != self._parameters:
            object.__setattr__(self, "fit_", None)  # it was copied from an attack with other parameters

    @property
    def _parameters(self) -> tuple[object, ...]:
        """Those that affect the learning; the prior and the number of jobs do not."""
        names = [one.name for one in dataclasses.fields(self) if one.compare and one.name != "prior"]
        return tuple(getattr(self, name) for name in names)

    @property
    def _learners(self) -> dict[str, Learner]:
        return {"linear": self.linear, "boosted": self.boosted}

    def check(self, members: BoolArray) -> None:
        """Refuse a pool, members [K, N], with too few models to simulate targets, or too few out-models offline."""
        check_simulation(len(members))
        plan = plan_targets(members, targets=self.targets, seed=self.seed, enough=ENOUGH)
        seen = (members[at_rows(rows, members.shape[1])] for rows in plan.references)
        lost = sum(references.all(axis=0) for references in seen)  # [N] targets without out-models
        if self.mode == "offline" and np.any(lost):
            raise InputError(
                f"shadow_members: {int(np.count_nonzero(lost))} records have no out-model among the references of some "
                f"simulated target. Train more shadow models, use a smaller share (fraction), or mode online."
            )

    def _scores(self, odds: FloatArray, share: float) -> FloatArray:
        """Posteriors [N] for this prior, from log-odds [N] that were learned with this share of members."""
        return learned_posterior(with_prior(odds, share=share, prior=self.prior))
