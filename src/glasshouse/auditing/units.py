"""An audit by unit: what `audit_view` needs of units, from what is known about their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.randomness import generator
from glasshouse.data import Units, select
from glasshouse.data.design import Design, Draw, as_design
from glasshouse.evaluation import Known
from glasshouse.evaluation.checks.auxiliary import few_columns, label_columns
from glasshouse.evidence.units import UnitView


def audited_draw(
    design: Design | str | Mapping[str, Any] | None,
    *,
    members: BoolArray | None,
    units: Units | None,
    columns: Mapping[str, NDArray[Any]],
    at: IntArray,
) -> Draw | None:
    """The draw of the audited units or records by a declared design of all; None if none is declared.

    Args:
        design: how members were chosen, as declared.
        members: [N] which of all records trained the target.
        units: whose records all are.
        columns: [N] by name, which the design may name.
        at: positions of the audited records.
    """
    declared = as_design(design)
    if declared is None or members is None:
        return None
    draw = declared.drawn(len(members), units, columns)
    inside = members if units is None else units.members(members, place="members")
    rows = at if units is None else units.rows[at]
    rows = rows[np.sort(np.unique(rows, return_index=True)[1])]  # audited units are in the order of their first record
    return replace(draw.at(rows), counted=draw.count_chance(inside))


def by_unit(
    rows: Any,
    units: Units | None,
    *,
    members: BoolArray | None,
    labels: NDArray[Any] | None,
    groups: Mapping[str, NDArray[Any]],
    known: Known,
    seed: int,
    draw: Draw | None = None,
) -> dict[str, Any]:
    """The view, members, labels, groups, knowledge and draw of an audit: of units [U], or of rows without units.

    Where a declared draw has strata with unequal shares of members, only units that make them equal are kept.

    Args:
        rows: what the attacks look at, row by row.
        units: whose rows the audited ones are; None leaves everything as it is.
        members: [N] which audited rows trained the target.
        labels: [N] of the audited rows; units have one only where it is the same in all of their rows.
        groups: [N] columns of the audited rows.
        known: about the rows without the target.
        seed: of the sketch of wide features, and of who is left out.
        draw: how the audited members were drawn, as declared.
    """
    left_out = 0
    if draw is not None and members is not None:
        inside = members if units is None else units.members(members, place="members")
        kept = draw.even(inside, seed=seed)
        if kept is not None:
            draw, left_out = draw.at(kept), int((~kept).sum())
            at = np.flatnonzero(kept if units is None else kept[units.rows])
            rows, members, labels = rows.of_records(at), members[at], None if labels is None else labels[at]
            groups = {name: values[at] for name, values in groups.items()}
            known = replace(known, audited=at if known.audited is None else known.audited[at])
            units = None if units is None else units.at(at)
    found = {"view": rows, "members": members, "labels": labels, "groups": dict(groups), "known": known}
    found |= {"draw": draw, "left_out_units": left_out}
    if units is None:
        return found
    return found | {
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
