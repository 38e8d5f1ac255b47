"""The population: records with stable ids and labels, and the draws of those that train a model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, IntArray, TextArray
from glasshouse.digests import digest_arrays, row_digests
from glasshouse.errors import InputError
from glasshouse.randomness import generator

__all__ = [
    "AnyPopulation",
    "Population",
    "as_ids",
    "as_members",
    "as_population",
    "check_population",
    "complementary_halves",
    "random_subsets",
    "select",
    "share_size",
]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population:
    """Records that a model may have been trained on.

    Args:
        x: [N, ...] a model's inputs: a numpy array, a torch tensor, a scipy sparse matrix or a data frame.
        y: [N] labels of any kind; stored as columns 0..C-1 of the sorted `classes`.
        ids: [N] stable, unique names of the records; their positions by default.
        classes: [C] every label that a model knows, if `y` does not hold them all.

    Example:
        >>> population = Population([[0.0], [1.0], [2.0]], ["no", "yes", "no"], ids=["ann", "bob", "eve"])
        >>> population.y, population.classes
        (array([0, 1, 0]), array(['no', 'yes'], dtype='<U3'))
        >>> len(population)
        3
    """

    x: Any
    y: IntArray
    ids: TextArray
    classes: NDArray[Any]

    def __init__(
        self,
        x: Any,
        y: ArrayLike,
        *,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        x = np.asarray(x) if isinstance(x, list | tuple) else x
        given = np.asarray(y)
        if given.ndim != 1:
            raise InputError(f"population: labels have shape {given.shape}; give one label per record, [N].")
        if x.shape[0] != len(given):
            raise InputError(f"population: {x.shape[0]} records but {len(given)} labels; give one label per record.")
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise InputError(f"population: the label of record {_first(~np.isfinite(given))} is not a number.")
        known = np.unique(given if classes is None else np.asarray(classes))
        if len(known) < 2:
            raise InputError(
                f"population: all records have the label {known.tolist()}; a classifier needs two or more."
            )
        outside = ~np.isin(given, known)
        if outside.any():
            raise InputError(
                f"population: record {_first(outside)} has the label {given[outside].tolist()[0]!r}, which is not "
                f"among the classes {known.tolist()}."
            )
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "classes", known)
        object.__setattr__(self, "y", np.searchsorted(known, given).astype(np.int64))
        object.__setattr__(self, "ids", as_ids(ids, len(given), place="population"))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Population({len(self)} records, {len(self.classes)} classes)"

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


@runtime_checkable
class AnyPopulation(Protocol):
    """What a shadow pool needs from the data that models are trained on: a `Population`, or the nodes of a graph."""

    def __len__(self) -> int:
        """N, the number of records."""
        ...

    @property
    def ids(self) -> TextArray:
        """[N] stable names of the records."""
        ...

    @property
    def training_data(self) -> Any:
        """What a trainer is called with."""
        ...

    @property
    def independent(self) -> bool:
        """Whether a model's answer about a record depends on that record alone; answers can then replace a model."""
        ...

    def fingerprint(self) -> str:
        """A short hash of the data, by which a pool and a report identify it."""
        ...

    def digests(self) -> NDArray[np.bytes_]:
        """[N] a short hash of each record: equal records have equal hashes."""
        ...


@functools.singledispatch
def as_population(data: Any) -> AnyPopulation:
    """The data that a user trains models on, as a population; a package registers its own type of data here.

    Example:
        >>> population = Population([[0.0], [1.0]], [0, 1])
        >>> as_population(population) is population
        True
    """
    if isinstance(data, AnyPopulation):
        return data
    raise InputError(
        f"population: {type(data).__name__} is not a population; give a glasshouse.Population. For a graph, "
        f"import glasshouse.graph first."
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


def as_ids(ids: Sequence[Any] | NDArray[Any] | None, count: int, *, place: str) -> TextArray:
    """Record ids as strings, [N]: unique and not empty; positions if none are given.

    Example:
        >>> as_ids(None, 3, place="evidence").tolist()
        ['0', '1', '2']
    """
    if ids is None:
        return np.arange(count).astype(str)
    names = np.asarray(ids)
    if names.shape != (count,):
        raise InputError(
            f"{place}: ids have shape {names.shape}, but there are {count} records; give one id per record."
        )
    missing = np.array([name is None or name != name for name in names.tolist()], dtype=bool)
    names = names.astype(str)
    missing |= np.char.strip(names) == ""
    if missing.any():
        raise InputError(f"{place}: record {_first(missing)} has no id; every record needs one.")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) != count:
        raise InputError(f"{place}: id {str(unique[counts > 1][0])!r} is repeated; every record needs its own id.")
    return names


def as_members(members: ArrayLike, shape: tuple[int, ...], *, place: str) -> BoolArray:
    """A membership mask of the wanted shape, checked: booleans or 0 and 1.

    Example:
        >>> as_members([1, 0], (2,), place="members")
        array([ True, False])
    """
    mask = np.asarray(members)
    if mask.shape != shape:
        numbers = mask.ndim == 1 == len(shape) and mask.dtype.kind in "iu"
        advice = f" From record numbers, make a mask with np.isin(np.arange({shape[0]}), numbers)." if numbers else ""
        raise InputError(f"{place}: shape {mask.shape} does not fit; expected {shape}, one entry per record.{advice}")
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise InputError(f"{place}: a membership mask holds only true and false (or 1 and 0).")
        mask = mask.astype(np.bool_)
    return mask


def complementary_halves(count: int, *, models: int, seed: int) -> BoolArray:
    """Which records train which shadow model, [models, count] (paper, Algorithm 1).

    Models 2k and 2k + 1 take a random half and its complement, so every record is in exactly half of the models. Each
    pair has its own random stream, so more models can be added later without changing the first ones.

    Example:
        >>> members = complementary_halves(5, models=4, seed=0)
        >>> members.sum(axis=0)
        array([2, 2, 2, 2, 2])
    """
    if models < 2 or models % 2:
        raise InputError(
            f"shadows: {models} is not a positive even number; models are trained in complementary pairs. "
            f"Use {max(2, models - models % 2)} or {max(2, models - models % 2) + 2}."
        )
    members = np.zeros((models, count), dtype=np.bool_)
    for pair in range(models // 2):
        order = generator(seed, "halves", pair).permutation(count)
        members[2 * pair, order[: count // 2]] = True
        members[2 * pair + 1] = ~members[2 * pair]
    return members


def random_subsets(count: int, *, models: int, fraction: float, seed: int, stream: str = "subset") -> BoolArray:
    """Independent random training sets of a given share, [models, count].

    For targets, and for shadows that are meant to differ from Algorithm 1 (the paper's mismatched adversary trains
    its target on 35 %).

    Args:
        count: number of records.
        models: number of training sets.
        fraction: share of the records in each.
        seed: of the draws; a larger number of models does not change the first ones.
        stream: name of the random stream. Targets and shadows of one seed use different streams, or shadow 0 would
            train on the target's members.

    Example:
        >>> random_subsets(100, models=2, fraction=0.35, seed=0).sum(axis=1)
        array([35, 35])
    """
    size = share_size(fraction, count)
    members = np.zeros((models, count), dtype=np.bool_)
    for model in range(models):
        members[model, generator(seed, stream, model).permutation(count)[:size]] = True
    return members


def share_size(fraction: float, count: int, *, of: str = "records") -> int:
    """How many a share of the records is, where that leaves some inside and some outside.

    Example:
        >>> share_size(0.35, 100)
        35
    """
    if not 0.0 < fraction < 1.0:
        raise InputError(f"fraction: {fraction} is not a share of the {of}; use a number between 0 and 1, such as 0.5.")
    size = round(fraction * count)
    if not 0 < size < count:
        raise InputError(f"fraction: {fraction} of {count} {of} leaves none of them inside or none outside.")
    return size


def _first(mask: BoolArray) -> int:
    return int(np.flatnonzero(mask)[0])
