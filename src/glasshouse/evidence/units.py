"""What an attack may look at, unit by unit: a view of rows, and whose rows they are."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, TextArray
from glasshouse.data import Units
from glasshouse.evidence.evidence import Evidence, Kind
from glasshouse.evidence.simulation import SimulatedTarget


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
