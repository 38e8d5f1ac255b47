"""Data sets by name: the embedded one that needs no download, and others from files that the user has placed."""

from __future__ import annotations

from collections.abc import Callable

from glasshouse.datasets.adult import adult
from glasshouse.datasets.cifar import cifar10, cifar100
from glasshouse.datasets.dataset import Dataset, data_root
from glasshouse.datasets.digits import digits
from glasshouse.registry import Registry

__all__ = ["Dataset", "adult", "cifar10", "cifar100", "data_root", "dataset_names", "digits", "load_dataset"]

_DATASETS: Registry[Callable[..., Dataset]] = Registry("a data set")
_DATASETS.add("digits", digits)
_DATASETS.add("adult", adult)
_DATASETS.add("cifar10", cifar10)
_DATASETS.add("cifar100", cifar100)


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
