"""The ``data`` section: which records."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from glasshouse.arrays import BoolArray
from glasshouse.config.archives import read_archive
from glasshouse.config.imports import called
from glasshouse.config.strict import Strict
from glasshouse.config.tables.records import read_records
from glasshouse.config.tables.section import TableSection
from glasshouse.datasets import Dataset, load_dataset
from glasshouse.errors import InputError
from glasshouse.population import Population
from glasshouse.visible import visible

__all__ = ["AdultData", "Data", "DigitsData", "FileData", "ImageData", "PythonData", "data_names"]

_LOG = logging.getLogger("glasshouse")


class DigitsData(Strict):
    """The embedded digits."""

    name: Literal["digits"]
    mislabelled: Annotated[float, Field(ge=0, lt=1)] = 0.1

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """The data set; the members of the target are drawn later."""
        return load_dataset("digits", mislabelled=self.mislabelled, seed=seed), None


class AdultData(Strict):
    """UCI Adult, from files."""

    name: Literal["adult"]
    records: Annotated[int, Field(ge=100)] | None = None

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """The data set; the members of the target are drawn later."""
        return load_dataset("adult", records=self.records, seed=seed), None


class ImageData(Strict):
    """CIFAR-10 or CIFAR-100, from files; for the trainer wide-resnet."""

    name: Literal["cifar10", "cifar100"]
    records: Annotated[int, Field(ge=100)] | None = None

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """The data set; the members of the target are drawn later."""
        return load_dataset(self.name, records=self.records, seed=seed), None


class FileData(TableSection):
    """Your own records: a csv or parquet table with a label column, or an npz archive with x and y."""

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """The records, and which of them trained the target if the file says so."""
        archive = self.path is not None and self.path.endswith(".npz")
        records = read_archive(self, folder / str(self.path)) if archive else read_records(self, folder)
        for warning in records.warnings:  # before the long work; the report has them too
            _LOG.warning("%s", visible(warning))
        files = " and ".join(visible(Path(name).name) for name in self.files)
        data = Dataset(
            name="file",
            about=f"{len(records.population)} records from {files}.",
            population=records.population,
            groups=records.groups,
            notes=(*records.notes, *records.warnings),
            remade=records.remade,
        )
        return data, records.members


class PythonData(Strict):
    """Records from a factory, your own function ``module:function``, importable from the audit file's folder."""

    name: Literal["python"]
    factory: str

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """Whatever the function gives, checked to be a population."""
        made = called(self.factory, folder, "data.factory")
        if not isinstance(made, Population):
            raise InputError(f"data.factory: {self.factory} gave {type(made).__name__}; expected a Population.")
        return Dataset(name="python", about=f"{len(made)} records from {self.factory}.", population=made), None


Data = Annotated[DigitsData | AdultData | ImageData | FileData | PythonData, Field(discriminator="name")]


def data_names() -> dict[str, str]:
    """Every name that ``data: {name: …}`` accepts, and what it means.

    Example:
        >>> list(data_names())
        ['digits', 'adult', 'cifar10', 'cifar100', 'file', 'python']
    """
    sections: tuple[Any, ...] = get_args(get_args(Data)[0])
    return {
        name: (section.__doc__ or "").replace("``", "").rstrip(".")
        for section in sections
        for name in get_args(section.model_fields["name"].annotation)
    }
