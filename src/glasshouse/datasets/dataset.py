"""What a data set is, and where its files are expected."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.population import Population

__all__ = ["Dataset", "data_root"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """A population with its name and a description.

    Args:
        name: by which it is loaded.
        about: a sentence for readers of figures; it says what in the data is made up.
        population: the records.
        wrong_labels: [N] which labels were made wrong on purpose; None if there are none.
        groups: columns [N] that divide the records, by name.
        notes: what a reader of the report should know about how the features were made.
        remade: columns whose values are not features as they stand, but were encoded; a model of the user's own cannot
            know how.
    """

    name: str
    about: str
    population: Population
    wrong_labels: BoolArray | None = None
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    remade: tuple[str, ...] = ()


def data_root() -> Path:
    """The folder of data files: ``GLASSHOUSE_DATA``, or ``data`` in the working folder."""
    return Path(os.environ.get("GLASSHOUSE_DATA", "data"))
