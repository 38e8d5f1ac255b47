"""Handwritten digits: the embedded data set, which needs no download."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from glasshouse.datasets.dataset import Dataset
from glasshouse.errors import InputError
from glasshouse.population import Population
from glasshouse.randomness import generator

__all__ = ["digits"]


def digits(*, mislabelled: float = 0.1, seed: int = 0) -> Dataset:
    """1 797 handwritten digits of 8 x 8 pixels, part of scikit-learn, some with a wrong label on purpose.

    Clean digits leak little. A wrong label can only be memorised, so a share of them shows what a leak looks like.

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
            f"wrong label can only be memorised."
        )
    population = Population(bunch.data / 16, labels, ids=[f"digit-{i:04d}" for i in range(len(labels))])
    return Dataset(name="digits", about=about, population=population, wrong_labels=wrong)
