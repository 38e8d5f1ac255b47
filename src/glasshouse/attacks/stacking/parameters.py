"""The parameters that both stacked attacks share, and what follows from them alone."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.prior import check_prior, learned_posterior, with_prior
from glasshouse.attacks.regression import record_folds
from glasshouse.attacks.stacking.learners import Boosted, Learner, Linear
from glasshouse.attacks.stacking.plan import ENOUGH, plan_targets
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.evidence.simulation import check_simulation

__all__ = ["StackedParameters"]


class _Fit(Protocol):
    """What an attack learned."""

    @property
    def parameters(self) -> tuple[object, ...]:
        """The parameters of the attack that affect the learning."""


@dataclass(frozen=True, kw_only=True)
class StackedParameters:
    """Parameters of `Stacked` and `GStacked`, where they are explained.

    A copy by `dataclasses.replace` keeps what was learned if only the prior or the number of jobs changes. With another
    mode or seed, for example, it drops what was learned and learns again, so that nothing outdated is used.

    Example:
        >>> StackedParameters(folds=1)
        Traceback (most recent call last):
        glasshouse.errors.InputError: folds, targets: 1, 16; use 2 and 4, or more.
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
    fit_: _Fit | None = field(default=None, repr=False, compare=False)

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
        columns = np.arange(members.shape[1])
        lost = sum(members[rows, columns].all(axis=0) for rows in plan.references)  # [N] targets without out-models
        if self.mode == "offline" and np.any(lost):
            raise InputError(
                f"shadow_members: {int(np.count_nonzero(lost))} records have no out-model among the references of some "
                f"simulated target. Train more shadow models, use a smaller share (fraction), or mode online."
            )

    def _fold_of(self, records: int) -> NDArray[np.intp]:
        """The fold of each record, [N]; only one fold online. Offline a single record is refused: it has no others."""
        folds = 1 if self.mode == "online" else min(self.folds, max(records, 2))
        return record_folds(records, folds=folds, seed=self.seed)

    def _scores(self, odds: FloatArray, share: float) -> FloatArray:
        """Posteriors [N] for this prior, from log-odds [N] that were learned with this share of members."""
        return learned_posterior(with_prior(odds, share=share, prior=self.prior))
