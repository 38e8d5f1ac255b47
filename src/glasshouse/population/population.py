"""The population: records with stable ids and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import TextArray
from glasshouse.digests import digest_arrays, row_digests
from glasshouse.errors import InputError
from glasshouse.population.ids import as_ids, first_of
from glasshouse.population.targets import as_targets, check_classes

__all__ = ["Population", "check_population", "select"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population:
    """Records that a model may have been trained on.

    Args:
        x: [N, ...] a model's inputs: a numpy array, a torch tensor, a scipy sparse matrix or a data frame.
        y: [N] labels of any kind; stored as columns 0..C-1 of the sorted `classes`.
        ids: [N] stable, unique names of the records; their positions by default.
        classes: [C] every label that a model knows, if `y` does not hold them all.
        regression: True if `y` holds real numbers that a model predicts; they stay as they are, and there are no
            classes. By default labels are classes, and numbers that do not look like classes are refused; False says
            that they are classes nevertheless.

    Example:
        >>> population = Population([[0.0], [1.0], [2.0]], ["no", "yes", "no"], ids=["ann", "bob", "eve"])
        >>> population.y, population.classes
        (array([0, 1, 0]), array(['no', 'yes'], dtype='<U3'))
        >>> len(population)
        3
        >>> Population([[0.0], [1.0]], [0.25, 1.5], regression=True).y
        array([0.25, 1.5 ])
    """

    x: Any
    y: NDArray[Any]
    ids: TextArray
    classes: NDArray[Any]
    regression: bool

    def __init__(
        self,
        x: Any,
        y: ArrayLike,
        *,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        classes: ArrayLike | None = None,
        regression: bool | None = None,
    ) -> None:
        x = np.asarray(x) if isinstance(x, list | tuple) else x
        given = np.asarray(y)
        if given.ndim != 1:
            raise InputError(f"population: labels have shape {given.shape}; give one label per record, [N].")
        if x.shape[0] != len(given):
            raise InputError(f"population: {x.shape[0]} records but {len(given)} labels; give one label per record.")
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise InputError(f"population: the label of record {first_of(~np.isfinite(given))} is not a number.")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "ids", as_ids(ids, len(given), place="population"))
        object.__setattr__(self, "regression", bool(regression))
        if regression:
            object.__setattr__(self, "y", as_targets(given, classes))
            object.__setattr__(self, "classes", np.empty(0))
            return
        if regression is None and classes is None:
            check_classes(given)
        known = np.unique(given if classes is None else np.asarray(classes))
        if len(known) < 2:
            raise InputError(
                f"population: all records have the label {known.tolist()}; a classifier needs two or more."
            )
        outside = ~np.isin(given, known)
        if outside.any():
            raise InputError(
                f"population: record {first_of(outside)} has the label {given[outside].tolist()[0]!r}, which is not "
                f"among the classes {known.tolist()}."
            )
        object.__setattr__(self, "classes", known)
        object.__setattr__(self, "y", np.searchsorted(known, given).astype(np.int64))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "real-valued targets" if self.regression else f"{len(self.classes)} classes"
        return f"Population({len(self)} records, {kind})"

    @property
    def labels(self) -> NDArray[Any]:
        """[N] labels as their owner writes them; the targets themselves for a regression.

        Example:
            >>> Population([[0.0], [1.0]], ["no", "yes"]).labels
            array(['no', 'yes'], dtype='<U3')
        """
        return self.y if self.regression else self.classes[self.y]

    def fingerprint(self) -> str:
        """A short hash of features, labels and ids, by which a report identifies its data.

        Example:
            >>> len(Population([[0.0], [1.0]], [0, 1]).fingerprint())
            16
        """
        x = self.x.to_numpy() if hasattr(self.x, "to_numpy") else self.x
        parts = [x.data, x.indices, x.indptr] if hasattr(x, "indptr") else [x]
        return digest_arrays([*parts, self.y, self.ids])

    @property
    def training_data(self) -> Population:
        """What a trainer is called with: the population itself."""
        return self

    @property
    def independent(self) -> bool:
        """True: a model answers about each record by itself."""
        return True

    def digests(self) -> NDArray[np.bytes_]:
        """[N] a short hash of each record's features and label: equal records have equal hashes.

        Example:
            >>> first, second, third = Population([[0.0], [1.0], [0.0]], [0, 1, 0]).digests()
            >>> first == third, first == second
            (True, False)
        """
        return row_digests(self.x, self.y)


def check_population(population: Any) -> None:
    """Refuse what is not a population of records.

    Example:
        >>> check_population([[0.0], [1.0]])
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: list is not a Population; call audit(population, model=…, ...
    """
    if not isinstance(population, Population):
        raise InputError(
            f"population: {type(population).__name__} is not a Population; call audit(population, model=…, members=…, "
            f"trainer=…). For a graph call glasshouse.graph.audit(data, model=…, members=…, trainer=…)."
        )


def select(x: Any, rows: NDArray[Any]) -> Any:
    """Rows of anything a population may hold, by mask or by index.

    Example:
        >>> select(np.array([10, 20, 30]), np.array([True, False, True]))
        array([10, 30])
    """
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return x[rows]
