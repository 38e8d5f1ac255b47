"""A population from the user's own file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.evidence.tables import as_flags, read_columns
from glasshouse.population import Population, as_members, check_classes

__all__ = ["read_group_columns", "read_population"]

_MISSING = ("", "nan", "none", "null", "na", "n/a")  # as spreadsheets and pandas write an empty cell
_TRUTHS = ("true", "false", "yes", "no", "1", "0", "1.0", "0.0")


def read_population(
    path: Path,
    *,
    label: str = "label",
    id_column: str | None = None,
    member: str | None = None,
    groups: Sequence[str] = (),
    regression: bool | None = None,
) -> tuple[Population, BoolArray | None]:
    r"""Records from ``.npz`` (x, y, optionally ids and members), or ``.csv`` or ``.parquet`` with numeric features.

    A column of True and False (or yes and no) counts as 1 and 0. An empty cell is refused.

    Args:
        path: the file.
        label: column of the labels (tables only).
        id_column: column of the ids; None uses positions.
        member: column of 1 and 0, True and False or yes and no: whether the record trained the target.
        groups: columns that are not features (`read_group_columns`).
        regression: whether the labels are real numbers that a model predicts; None refuses what looks like it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "data.csv"
        ...     _ = path.write_text("age,label\n30,no\n40,yes\n")
        ...     population, members = read_population(path)
        >>> population.x
        array([[30.], [40.]])
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    if path.suffix == ".npz":
        return _from_npz(path, regression)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: records are read from .npz, .csv or .parquet.")
    columns = read_columns(path)
    wanted = [name for name in (label, id_column, member, *groups) if name is not None]
    lost = [name for name in wanted if name not in columns]
    if lost:
        raise InputError(f"{path}: has no column {lost[0]!r}. Columns: {', '.join(columns)}.")
    features = [name for name in columns if name not in wanted]
    if not features:
        raise InputError(f"{path}: has no column of features.")
    values = [_feature(columns[name], name, path) for name in features]
    ids = columns[id_column] if id_column else None
    _refuse_empty(np.char.strip(columns[label]) == "", label, path)
    labels = _numbers_or_text(columns[label]) if regression else columns[label]
    population = _said_of(path, np.stack(values, axis=1), labels, ids, regression)
    if member is None:
        return population, None
    flags = as_flags(columns[member], place=f"{path}: {member}")
    _refuse_empty(flags < 0, member, path)
    return population, flags == 1


def read_group_columns(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    r"""Columns [N] that divide the records, by name: numbers if all cells are, with NaN for an empty cell; else text.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "data.csv"
        ...     _ = path.write_text("age,sex\n30,f\n40,m\n")
        ...     read_group_columns(path, ["sex", "age"])
        {'sex': array(['f', 'm'], dtype='<U1'), 'age': array([30., 40.])}
    """
    columns: dict[str, np.ndarray] = _arrays(path) if path.suffix == ".npz" else dict(read_columns(path))
    if lost := [name for name in names if name not in columns]:
        raise InputError(f"{path}: has no column {lost[0]!r}. Columns: {', '.join(columns)}.")
    return {name: _numbers_or_text(columns[name]) for name in names}


def _numbers_or_text(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "U":
        return values
    missing = np.isin(np.char.lower(np.char.strip(values)), _MISSING)
    try:
        return np.where(missing, "nan", values).astype(np.float64)
    except ValueError:
        return np.where(missing, "missing", values) if missing.any() else values


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except ValueError as error:
        raise InputError(f"{path}: holds pickled objects or is damaged; refused: {error}") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise InputError(f"{path}: is not a complete .npz file: {error}.") from error


def _from_npz(path: Path, regression: bool | None) -> tuple[Population, BoolArray | None]:
    arrays = _arrays(path)
    for name in ("x", "y"):
        if name not in arrays:
            raise InputError(f"{path}: has no array {name!r}; it needs x [N, …] and y [N].")
    population = _said_of(path, arrays["x"], arrays["y"], arrays.get("ids"), regression)
    members = arrays.get("members")
    if members is None:
        return population, None
    return population, as_members(members, (len(population),), place=f"{path}: members")


def _said_of(path: Path, x: np.ndarray, y: np.ndarray, ids: np.ndarray | None, regression: bool | None) -> Population:
    try:
        if regression is None:  # a table has text in all cells, so only here numbers are seen
            check_classes(_numbers_or_text(y), say="regression: true in the section data")
        return Population(x, y, ids=ids, regression=bool(regression))
    except InputError as error:
        raise InputError(*[f"{path}: {fault}" for fault in error.faults]) from error


def _feature(values: np.ndarray, name: str, path: Path) -> np.ndarray:
    """A column of text as numbers [N]."""
    words = np.char.lower(np.char.strip(values))
    missing = np.isin(words, _MISSING)
    there = words[~missing]
    if np.isin(there, _TRUTHS).all():
        numbers = np.isin(there, ("true", "yes", "1", "1.0")).astype(np.float64)
    else:
        try:
            numbers = there.astype(np.float64)
        except ValueError:
            raise InputError(
                f"{path}: {name}: holds text; features are numbers. Encode categories first, or give the data from "
                f"Python (data: {{name: python, factory: 'module:function'}})."
            ) from None
    _refuse_empty(missing, name, path)
    return np.asarray(numbers)


def _refuse_empty(missing: np.ndarray, name: str, path: Path) -> None:
    """Refuse a column with empty cells, and name the rows; rows are counted without the header."""
    rows = np.flatnonzero(missing) + 1
    if len(rows):
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        raise InputError(f"{path}: {name}: row {rows[0]}{more}: the cell is empty. Fill it in, or leave the row out.")
