"""An audit by unit: what `audit_view` needs of units, from what is known about their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.attacks.attack import View
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import generator
from glasshouse.data import Units, select
from glasshouse.evaluation import Known
from glasshouse.evaluation.checks.auxiliary import few_columns, label_columns
from glasshouse.evidence.units import UnitView


def by_unit(
    rows: View,
    units: Units | None,
    *,
    members: BoolArray | None,
    labels: NDArray[Any] | None,
    groups: Mapping[str, NDArray[Any]],
    known: Known,
    seed: int,
) -> dict[str, Any]:
    """The view, members, labels, groups and auxiliary knowledge of an audit: of units [U], or of rows without units.

    Args:
        rows: what the attacks look at, row by row.
        units: whose rows the audited ones are; None leaves everything as it is.
        members: [N] which audited rows trained the target.
        labels: [N] of the audited rows; units have one only where it is the same in all of their rows.
        groups: [N] columns of the audited rows.
        known: about the rows without the target.
        seed: of the sketch of wide features.
    """
    found = {"view": rows, "members": members, "labels": labels, "groups": dict(groups), "known": known}
    if units is None:
        return found
    return {
        "view": UnitView(rows, units),
        "members": None if members is None else units.members(members, place="members"),
        "labels": units.column(labels) if labels is not None and units.constant(labels) else None,
        "groups": {name: units.column(values) for name, values in groups.items()},
        "known": Known(x=_columns_of(known, units, seed=seed)),
    }


def unit_settings(units: Units | None) -> dict[str, str]:
    """What a report says about the units; nothing without them."""
    if units is None:
        return {}
    many = f"{len(units)} {units.word}s with {len(units.rows)} records, at most {int(units.sizes.max())} of one"
    return {"unit": units.word, "units": many}


def _columns_of(known: Known, units: Units, *, seed: int) -> FloatArray:
    """[U, F] what is known about units without the target: means over their rows, and how many rows they have."""
    columns = [units.sizes[:, None].astype(np.float64)]
    at = np.arange(len(units.rows)) if known.audited is None else known.audited
    if known.x is not None:
        columns.append(units.means(few_columns(select(known.x, at), generator(seed, "unit features")).T).T)
    if known.labels is not None:
        columns.append(units.means(label_columns(known.labels)[at].T).T)
    return np.hstack(columns)
