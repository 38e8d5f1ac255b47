"""Named data sets: the embedded one that needs no download, and others from files that the user has placed."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from glasshouse.errors import InputError
from glasshouse.numerics import FloatArray
from glasshouse.population import BoolArray, Population
from glasshouse.randomness import generator
from glasshouse.registry import Registry

__all__ = ["Dataset", "adult", "data_root", "dataset_names", "digits", "load_dataset"]


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


def digits(*, mislabelled: float = 0.1, seed: int = 0) -> Dataset:
    """1 797 handwritten digits of 8 x 8 pixels, shipped with scikit-learn, some with a wrong label on purpose.

    Clean digits leak little. A wrong label can only be learned by heart, so a share of them shows what a leak looks
    like.

    Args:
        mislabelled: share of records whose label is changed to another at random.
        seed: of the choice.

    Example:
        >>> data = digits()
        >>> len(data.population), int(data.wrong_labels.sum())
        (1797, 180)
    """
    if not 0 <= mislabelled < 1:
        raise InputError(f"mislabelled: {mislabelled} is not a share below 1.")
    bunch = load_digits()
    labels = bunch.target.astype(np.int64)
    random = generator(seed, "wrong labels")
    wrong = np.zeros(len(labels), dtype=np.bool_)
    wrong[random.permutation(len(labels))[: round(mislabelled * len(labels))]] = True
    labels[wrong] = (labels[wrong] + random.integers(1, 10, size=int(wrong.sum()))) % 10
    about = "scikit-learn's digits (8 x 8 pixels, 10 classes)."
    if wrong.any():
        about += (
            f" {int(wrong.sum())} of {len(labels)} labels were made wrong on purpose: clean digits leak little, and a "
            f"wrong label can only be learned by heart."
        )
    population = Population(bunch.data / 16, labels, ids=[f"digit-{i:04d}" for i in range(len(labels))])
    return Dataset(name="digits", about=about, population=population, wrong_labels=wrong)


def adult(*, records: int | None = None, seed: int = 0) -> Dataset:
    """Census income (UCI Adult): ``adult/adult.data`` and ``adult/adult.test`` under `data_root`.

    Numbers are standardised and categories one-hot, so that one population serves every kind of model.

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
        with path.open(newline="") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    if records is not None:
        chosen = generator(seed, "adult").permutation(len(rows))[:records]
        rows = [rows[index] for index in np.sort(chosen).tolist()]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    features = np.concatenate([_encoded(column) for column in columns[:14]], axis=1)
    labels = np.char.rstrip(columns[14], ".")
    about = f"UCI Adult (census income), {len(labels)} records."
    return Dataset(name="adult", about=about, population=Population(features, labels))


def _encoded(column: np.ndarray) -> FloatArray:
    """A column of text as numbers: standardised [N, 1], or one-hot [N, values]."""
    try:
        values = column.astype(np.float64)
    except ValueError:
        return np.asarray(column[:, None] == np.unique(column)[None, :], dtype=np.float64)
    return np.asarray((values - values.mean()) / (values.std() or 1.0))[:, None]


def data_root() -> Path:
    """Where data files are looked for: ``GLASSHOUSE_DATA``, or ``data`` in the working folder."""
    return Path(os.environ.get("GLASSHOUSE_DATA", "data"))


_DATASETS: Registry[Callable[..., Dataset]] = Registry("a data set")
_DATASETS.add("digits", digits)
_DATASETS.add("adult", adult)


def dataset_names() -> list[str]:
    """Names that `load_dataset` knows."""
    return _DATASETS.names()


def load_dataset(name: str, **options: object) -> Dataset:
    """A data set by name.

    Example:
        >>> load_dataset("digits", mislabelled=0.0).name
        'digits'
    """
    return _DATASETS.find(name)(**options)
