"""Real-valued targets of a regression, checked; and numbers that look like targets where classes are expected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import FloatArray
from glasshouse.errors import InputError

__all__ = ["as_targets", "check_classes"]

_FEW = 20  # different numbers that may well be classes, whatever they are
_RECORDS_EACH = 3  # on average, of a class that a model can learn


def as_targets(given: NDArray[Any], classes: ArrayLike | None = None) -> FloatArray:
    """Targets of a regression as float64, [N]: finite numbers that are not all equal.

    Args:
        given: [N].
        classes: what the user gave as classes; a regression has none.

    Example:
        >>> as_targets(np.array([1, 3]))
        array([1., 3.])
        >>> as_targets(np.array(["a", "b"]))
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: a regression predicts real numbers, but the targets are of type <U1; \
leave out regression=True for classes.
    """
    if classes is not None:
        raise InputError("population: a regression has no classes; leave out classes, or regression=True.")
    if given.dtype.kind not in "iuf":
        raise InputError(
            f"population: a regression predicts real numbers, but the targets are of type {given.dtype}; leave out "
            f"regression=True for classes."
        )
    targets = given.astype(np.float64)
    if len(np.unique(targets)) < 2:
        raise InputError("population: all records have the same target; a regression needs two or more.")
    return targets


def check_classes(given: NDArray[Any], *, say: str = "Population(x, y, regression=True)") -> None:
    """Refuse numbers that look like the targets of a regression, and would become hundreds of classes.

    They do if there are more than 20 different ones, and some are not whole or most occur hardly more than once.

    Args:
        given: [N] labels of any kind; names are never refused.
        say: how the user says that it is a regression.

    Example:
        >>> check_classes(np.linspace(0.0, 1.0, 100))
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: the labels are 100 different numbers, such as 0 and 0.010101, \
which look like the targets of a regression. Say Population(x, y, regression=True); if each is a class, \
regression=False.
        >>> check_classes(np.repeat(np.arange(50), 10))
    """
    if given.dtype.kind not in "iuf":
        return
    values = np.unique(given)
    whole = given.dtype.kind in "iu" or bool((values == np.floor(values)).all())
    if len(values) <= _FEW or (whole and len(given) >= _RECORDS_EACH * len(values)):
        return
    first, second = (f"{value:.6g}" for value in values[:2].tolist())
    raise InputError(
        f"population: the labels are {len(values)} different numbers, such as {first} and {second}, which look like "
        f"the targets of a regression. Say {say}; if each is a class, regression=False."
    )
