"""A population from an npz archive of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.config.tables.encoding import LARGEST
from glasshouse.config.tables.records import Records
from glasshouse.config.tables.section import TableSection
from glasshouse.errors import InputError, shortened
from glasshouse.population import Population, as_members, check_classes, first_of
from glasshouse.reading import guarded, read_npz

__all__ = ["read_archive"]

_OWN = ("x", "y", "ids", "members")
_AT_ONCE = 2**22  # features that are checked at once


def read_archive(section: TableSection, path: Path) -> Records:
    """Records from ``.npz``: x [N, …], y [N], optionally ids [N] and members [N]; groups are further arrays [N].

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "data.npz"
        ...     np.savez(path, x=np.zeros((2, 3)), y=["no", "yes"], members=[1, 0])
        ...     records = read_archive(TableSection(name="file", path="data.npz"), path)
        >>> records.members
        array([ True, False])
    """
    if strange := sorted(section.model_fields_set - {"name", "path", "groups", "regression"}):
        raise InputError(
            f"data.{strange[0]}: is for tables; an archive has the arrays x, y, ids and members. Leave it out."
        )
    arrays = read_npz(path, only={*_OWN, *section.groups}, mapped=("x",))
    for name in ("x", "y"):
        if name not in arrays:
            raise InputError(f"{path}: has no array {name!r}; it needs x [N, …] and y [N].")
    if lost := [name for name in section.groups if name not in arrays]:
        raise InputError(f"{path}: has no array {shortened(lost[0])} for groups. Arrays: {', '.join(arrays)}.")
    _check_features(arrays["x"], path)
    with guarded(path, what="an archive of records"):
        try:
            if section.regression is None:
                check_classes(arrays["y"], say="regression: true in the section data")
            population = Population(
                arrays["x"], arrays["y"], ids=arrays.get("ids"), regression=bool(section.regression)
            )
        except InputError as error:
            raise InputError(*[f"{path}: {fault}" for fault in error.faults]) from error
    for name in section.groups:
        if arrays[name].shape != (len(population),):
            raise InputError(
                f"{path}: {name}: has shape {arrays[name].shape}; a group is given by one entry per record, "
                f"[{len(population)}]."
            )
    members = arrays.get("members")
    if members is not None:
        members = as_members(members, (len(population),), place=f"{path}: members")
    return Records(population=population, members=members, groups={name: arrays[name] for name in section.groups})


def _check_features(x: NDArray[Any], path: Path) -> None:
    if x.dtype.kind not in "biuf":
        raise InputError(
            f"{path}: x: is of type {x.dtype}; save numbers. Texts and other records come from a function of your own: "
            f"data: {{name: python, factory: …}}."
        )
    if not x.size:
        raise InputError(f"{path}: x: has shape {x.shape}; save one row per record.")
    rows = x.reshape(len(x), -1)
    step = max(1, _AT_ONCE // rows.shape[1])  # some at a time: a copy of all features may be too large
    parts = [~(np.abs(rows[at : at + step]) <= LARGEST).all(axis=1) for at in range(0, len(rows), step)]  # of NaN too
    bad = np.concatenate(parts)
    if bad.any():
        raise InputError(
            f"{path}: x: record {first_of(bad)} has a feature that is NaN, infinite or above {LARGEST:g}; fill it in, "
            f"or leave the record out."
        )
