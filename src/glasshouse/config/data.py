"""The ``data`` section: which records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from glasshouse.arrays import BoolArray
from glasshouse.config.data_files import read_group_columns, read_population
from glasshouse.config.imports import imported
from glasshouse.config.strict import Strict
from glasshouse.datasets import Dataset, load_dataset
from glasshouse.errors import InputError
from glasshouse.population import Population

__all__ = ["AdultData", "Data", "DigitsData", "FileData", "ImageData", "PythonData", "data_names"]


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


class FileData(Strict):
    """Your own records from a path: npz with x, y and optionally ids and members, or csv with a label column."""

    name: Literal["file"]
    path: str
    label: str = "label"
    id: str | None = None
    member: str | None = None
    groups: tuple[str, ...] = Field(default=(), strict=False)
    regression: bool | None = None

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """The records, and which of them trained the target if the file has such a column."""
        place = folder / self.path
        population, members = read_population(
            place,
            label=self.label,
            id_column=self.id,
            member=self.member,
            groups=self.groups,
            regression=self.regression,
        )
        data = Dataset(
            name="file",
            about=f"{len(population)} records from {place.name}.",
            population=population,
            groups=read_group_columns(place, self.groups) if self.groups else {},
        )
        return data, members


class PythonData(Strict):
    """Records from a factory, your own function ``module:function``, importable from the audit file's folder."""

    name: Literal["python"]
    factory: str

    def load(self, folder: Path, seed: int) -> tuple[Dataset, BoolArray | None]:
        """Whatever the function gives, checked to be a population."""
        made = imported(self.factory, folder, "data.factory")()
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
