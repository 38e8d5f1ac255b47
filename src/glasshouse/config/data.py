"""The ``data`` section: which records, by name, from a file or from the user's own function."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from glasshouse.config.columns import TableSection
from glasshouse.config.encoding import LARGEST, read_records
from glasshouse.config.trust import called
from glasshouse.config.yaml_model import Strict
from glasshouse.core.errors import InputError, placed, shortened
from glasshouse.core.escape import visible
from glasshouse.data import Population, as_members, check_classes, first_of
from glasshouse.data.named import Dataset, load_dataset
from glasshouse.io.arrays import read_npz
from glasshouse.io.guarded import guarded

_OWN = ("x", "y", "ids", "members")
_UNIT = ("unit", "unit_word", "unit_partly")
_AT_ONCE = 2**22  # features that are checked at once
_LOG = logging.getLogger("glasshouse")


def read_archive(section: TableSection, path: Path) -> Dataset:
    """Records from ``.npz``: x [N, …], y [N], optionally ids [N] and members [N]; groups are further arrays [N]."""
    if strange := sorted(section.model_fields_set - {"name", "path", "groups", "regression", *_UNIT}):
        raise InputError(
            f"data.{strange[0]}: is for tables; an archive has the arrays x, y, ids and members. Leave it out."
        )
    own = () if section.unit is None else (section.unit,)
    arrays = read_npz(path, only={*_OWN, *own, *section.groups}, mapped=("x",))
    for name in ("x", "y"):
        if name not in arrays:
            raise InputError(f"{path}: has no array {name!r}; it needs x [N, …] and y [N].")
    if own and own[0] not in arrays:
        raise InputError(f"{path}: has no array {shortened(own[0])} for units. Arrays: {', '.join(arrays)}.")
    if lost := [name for name in section.groups if name not in arrays]:
        raise InputError(f"{path}: has no array {shortened(lost[0])} for groups. Arrays: {', '.join(arrays)}.")
    _check_features(arrays["x"], path)
    with guarded(path, what="an archive of records"), placed(path):
        if section.regression is None:
            check_classes(arrays["y"], say="regression: true in the section data")
        known: dict[str, Any] = {"ids": arrays.get("ids"), "unit": section.units(arrays[own[0]] if own else None)}
        population = Population(arrays["x"], arrays["y"], regression=bool(section.regression), **known)
    for name in section.groups:
        if arrays[name].shape != (len(population),):
            raise InputError(
                f"{path}: {name}: has shape {arrays[name].shape}; a group is given by one entry per record, "
                f"[{len(population)}]."
            )
    members = arrays.get("members")
    if members is not None:
        members = as_members(members, (len(population),), place=f"{path}: members")
    return section.data_set(population, members=members, groups={name: arrays[name] for name in section.groups})


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


class _Named(Strict):
    """Base of the sections whose keys are the arguments of `load_dataset`."""

    name: str

    def load(self, folder: Path, seed: int) -> Dataset:
        """The data set; the members of the target are drawn later."""
        return load_dataset(**dict(self), seed=seed)


class DigitsData(_Named):
    """The embedded digits."""

    name: Literal["digits"]
    mislabelled: Annotated[float, Field(ge=0, lt=1)] = 0.1


class AdultData(_Named):
    """UCI Adult, from files."""

    name: Literal["adult"]
    records: Annotated[int, Field(ge=100)] | None = None


class ImageData(_Named):
    """CIFAR-10 or CIFAR-100, from files; for the trainer wide-resnet."""

    name: Literal["cifar10", "cifar100"]
    records: Annotated[int, Field(ge=100)] | None = None


class FileData(TableSection):
    """Your own records: a csv or parquet table with a label column, or an npz archive with x and y."""

    def load(self, folder: Path, seed: int) -> Dataset:
        """The records, and which of them trained the target if the file says so."""
        archive = self.path is not None and self.path.endswith(".npz")
        data = read_archive(self, folder / str(self.path)) if archive else read_records(self, folder)
        for warning in data.warnings:  # before the long work; the report has them too
            _LOG.warning("%s", visible(warning))
        return data


class PythonData(Strict):
    """Records from a factory, your own function ``module:function``, importable from the audit file's folder."""

    name: Literal["python"]
    factory: str

    def load(self, folder: Path, seed: int) -> Dataset:
        """Whatever the function gives, checked to be a population."""
        made = called(self.factory, folder, "data.factory", kind=Population, expected="a Population")
        return Dataset(name="python", about=f"{len(made)} records from {self.factory}.", population=made)


Data = Annotated[DigitsData | AdultData | ImageData | FileData | PythonData, Field(discriminator="name")]


def data_names() -> dict[str, str]:
    """Every name that ``data: {name: …}`` accepts, and what it means."""
    sections: tuple[Any, ...] = get_args(get_args(Data)[0])
    return {
        name: (section.__doc__ or "").replace("``", "").rstrip(".")
        for section in sections
        for name in get_args(section.model_fields["name"].annotation)
    }
