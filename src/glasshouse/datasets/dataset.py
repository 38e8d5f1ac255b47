"""What a data set is, and where its files are looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from glasshouse.arrays import BoolArray
from glasshouse.population import Population

__all__ = ["Dataset", "data_root"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """A population with its story.

    Args:
        name: by which it is asked for.
        about: a sentence for readers of figures; says what in it is made up.
        population: the records.
        wrong_labels: [N] whose label was made wrong on purpose; None where nobody's was.
    """

    name: str
    about: str
    population: Population
    wrong_labels: BoolArray | None = None


def data_root() -> Path:
    """Where data files are looked for: ``GLASSHOUSE_DATA``, or ``data`` in the working folder."""
    return Path(os.environ.get("GLASSHOUSE_DATA", "data"))
