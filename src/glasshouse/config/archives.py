"""A population from an npz archive of the user's own."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from glasshouse.config.tables.records import Records
from glasshouse.config.tables.section import TableSection
from glasshouse.errors import InputError
from glasshouse.population import Population, as_members, check_classes

__all__ = ["read_archive"]


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
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    if strange := sorted(section.model_fields_set - {"name", "path", "groups", "regression"}):
        raise InputError(
            f"data.{strange[0]}: is for tables; an archive has the arrays x, y, ids and members. Leave it out."
        )
    arrays = _arrays(path)
    for name in ("x", "y"):
        if name not in arrays:
            raise InputError(f"{path}: has no array {name!r}; it needs x [N, …] and y [N].")
    if lost := [name for name in section.groups if name not in arrays]:
        raise InputError(f"{path}: has no array {lost[0]!r} for groups. Arrays: {', '.join(arrays)}.")
    try:
        if section.regression is None:
            check_classes(arrays["y"], say="regression: true in the section data")
        population = Population(arrays["x"], arrays["y"], ids=arrays.get("ids"), regression=bool(section.regression))
    except InputError as error:
        raise InputError(*[f"{path}: {fault}" for fault in error.faults]) from error
    members = arrays.get("members")
    if members is not None:
        members = as_members(members, (len(population),), place=f"{path}: members")
    return Records(population=population, members=members, groups={name: arrays[name] for name in section.groups})


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except ValueError as error:
        raise InputError(f"{path}: holds pickled objects or is damaged; refused: {error}") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise InputError(f"{path}: is not a complete .npz file: {error}.") from error
