"""Census income: a table with numbers and categories, from files that the user has placed."""

from __future__ import annotations

import csv

import numpy as np

from glasshouse.arrays import FloatArray
from glasshouse.datasets.dataset import Dataset, data_root
from glasshouse.errors import InputError
from glasshouse.numerics import check_finite
from glasshouse.population import Population
from glasshouse.randomness import generator
from glasshouse.reading import check_memory, guarded, read_content

__all__ = ["adult"]

_TIMES = 12  # how much larger the cells are than the file


def adult(*, records: int | None = None, seed: int = 0) -> Dataset:
    """Census income (UCI Adult): ``adult/adult.data`` and ``adult/adult.test`` under `data_root`.

    Numbers are standardised and categories are one-hot, so that one population works for every kind of model.

    Args:
        records: how many to draw; all 48 842 by default.
        seed: of the draw.
    """
    folder = data_root() / "adult"
    rows: list[list[str]] = []
    for name in ("adult.data", "adult.test"):
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path}: there is no such file. Place UCI's {name} there, or set GLASSHOUSE_DATA.")
        with guarded(path, what=f"UCI's {name}"):
            lines = read_content(path, times=_TIMES).decode().splitlines()
            rows += [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15]
    if not rows:
        raise InputError(f"{folder}: holds no records. Place UCI's files there again.")
    if records is not None:
        chosen = generator(seed, "adult").permutation(len(rows))[:records]
        rows = [rows[index] for index in np.sort(chosen).tolist()]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    features = np.concatenate([_encoded(column) for column in columns[:14]], axis=1)
    advice = "Place UCI's files again."
    check_finite(features, np.arange(len(features)).astype(str), place=str(folder), advice=advice)
    labels = np.char.rstrip(columns[14], ".")
    about = f"UCI Adult (census income), {len(labels)} records."
    return Dataset(name="adult", about=about, population=Population(features, labels))


def _encoded(column: np.ndarray) -> FloatArray:
    """A column of text as numbers: standardised [N, 1], or one-hot [N, values]."""
    try:
        values = column.astype(np.float64)
    except ValueError:
        found = np.unique(column)
        check_memory(9 * len(column) * len(found), place="adult", what="a column with a feature for each text takes")
        return np.asarray(column[:, None] == found[None, :], dtype=np.float64)
    return np.asarray((values - values.mean()) / (values.std() or 1.0))[:, None]
