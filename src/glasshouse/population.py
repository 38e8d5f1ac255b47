"""The population: records with stable ids and labels, and who is drawn from it to train a model."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.arrays import BoolArray, IntArray, TextArray
from glasshouse.errors import InputError
from glasshouse.randomness import generator

__all__ = [
    "Population",
    "as_ids",
    "as_members",
    "check_population",
    "complementary_halves",
    "random_subsets",
    "record_count",
    "row_digests",
    "select",
]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population:
    """Records that a model may have been trained on.

    Args:
        x: [N, ...] what a model is asked with: a numpy array, a torch tensor, a scipy sparse matrix or a data frame.
        y: [N] labels of any kind; stored as columns 0..C-1 of the sorted `classes`.
        ids: [N] stable, unique names of the records; their positions by default.
        classes: [C] every label that a model knows, where `y` alone does not show them all.

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
            raise InputError(f"population: labels have shape {given.shape}; give one label a record, [N].")
        if x.shape[0] != len(given):
            raise InputError(f"population: {x.shape[0]} records but {len(given)} labels; give one label a record.")
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
        """A short hash of features, labels and ids, by which a report says what data it speaks of.

        Example:
            >>> len(Population([[0.0], [1.0]], [0, 1]).fingerprint())
            16
        """
        x = self.x.to_numpy() if hasattr(self.x, "to_numpy") else self.x
        parts = [x.data, x.indices, x.indptr] if hasattr(x, "indptr") else [x]
        return _digest([*parts, self.y, self.ids])

    def digests(self) -> NDArray[np.bytes_]:
        """[N] a short hash of each record's features and label: equal records have equal ones.

        Example:
            >>> first, second, third = Population([[0.0], [1.0], [0.0]], [0, 1, 0]).digests()
            >>> first == third, first == second
            (True, False)
        """
        return row_digests(self.x, self.y)


def check_population(population: Any) -> None:
    """Refuse what is no population of records.

    Example:
        >>> check_population([[0.0], [1.0]])
        Traceback (most recent call last):
        glasshouse.errors.InputError: population: list is not a Population; the order is audit(model, population, ...
    """
    if hasattr(population, "edge_index"):
        raise InputError(
            "population: this is a graph; call glasshouse.graph.audit(data, model=…, members=…, trainer=…)."
        )
    if not isinstance(population, Population):
        kind = type(population).__name__
        raise InputError(
            f"population: {kind} is not a Population; the order is audit(model, population, members, trainer)."
        )


def row_digests(x: Any, y: IntArray) -> NDArray[np.bytes_]:
    """[N] a short hash of each row of anything a population may hold, with its label.

    Example:
        >>> len(set(row_digests(np.zeros((3, 2)), np.array([0, 0, 1])).tolist()))
        2
    """
    if hasattr(x, "tocsr"):
        rows = x.tocsr()
        rows.sort_indices()
        parts: Iterator[bytes] = (
            rows.indices[start:stop].tobytes() + rows.data[start:stop].tobytes()
            for start, stop in itertools.pairwise(rows.indptr)
        )
    else:
        array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
        array = array.astype(str) if array.dtype == object else array
        parts = (row.tobytes() for row in array)  # one at a time: all of them would be a second copy of the data
    return np.array([_short_hash(part, label) for part, label in zip(parts, y.tolist(), strict=True)])


def _short_hash(content: bytes, label: int) -> bytes:
    return hashlib.blake2b(content + str(label).encode(), digest_size=8).hexdigest().encode()


def fingerprint_of(population: Any) -> str:
    """A short hash of a population: of its features, labels and ids, or of all that a graph holds.

    Example:
        >>> fingerprint_of(Population([[0.0], [1.0]], [0, 1])) == Population([[0.0], [1.0]], [0, 1]).fingerprint()
        True
    """
    if isinstance(population, Population):
        return population.fingerprint()
    main = _digest([population.x, population.edge_index, population.y])
    # edge weights, masks and the like may steer the training of a user's own trainer; a graph without keeps its hash
    names = (
        sorted(set(population.keys()) - {"x", "edge_index", "y", "about", "ids"}) if hasattr(population, "keys") else []
    )
    more = [(name, value) for name in names if (value := getattr(population, name, None)) is not None]
    if not more:
        return main
    parts = [main, *(f"{name} {_in_short(value)}" for name, value in more)]
    return hashlib.sha256("; ".join(parts).encode()).hexdigest()[:16]


def _in_short(value: Any) -> str:
    if hasattr(value, "detach") or hasattr(value, "__array__"):
        return _digest([value])
    return repr(value) if isinstance(value, str | int | float | bool | list | tuple) else type(value).__name__


def _digest(arrays: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for one in arrays:
        array = np.asarray(one.detach().cpu() if hasattr(one, "detach") else one)
        values = array.astype(str) if array.dtype == object else array
        digest.update(f"{values.dtype}{values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def select(x: Any, rows: NDArray[Any]) -> Any:
    """Rows of anything a population may hold, by mask or by index.

    Example:
        >>> select(np.array([10, 20, 30]), np.array([True, False, True]))
        array([10, 30])
    """
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return x[rows]


def record_count(population: Any) -> int:
    """How many records a population has, or nodes where it is a graph (whose length is something else).

    Example:
        >>> record_count(Population([[0.0], [1.0]], [0, 1]))
        2
    """
    return int(population.num_nodes) if hasattr(population, "num_nodes") else len(population)


def as_ids(ids: Sequence[Any] | NDArray[Any] | None, count: int, *, place: str) -> TextArray:
    """Record ids as strings, [N]: unique, none empty; positions where none are given.

    Example:
        >>> as_ids(None, 3, place="evidence").tolist()
        ['0', '1', '2']
    """
    if ids is None:
        return np.arange(count).astype(str)
    names = np.asarray(ids)
    if names.shape != (count,):
        raise InputError(f"{place}: ids have shape {names.shape}, but there are {count} records; give one id a record.")
    missing = np.array([name is None or name != name for name in names.tolist()], dtype=bool)
    names = names.astype(str)
    missing |= np.char.strip(names) == ""
    if missing.any():
        raise InputError(f"{place}: record {_first(missing)} has no id; every record needs one.")
    unique, counts = np.unique(names, return_counts=True)
    if len(unique) != count:
        raise InputError(
            f"{place}: id {str(unique[counts > 1][0])!r} is repeated; every record needs an id of its own."
        )
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
        advice = f" For numbers of records say np.isin(np.arange({shape[0]}), numbers)." if numbers else ""
        raise InputError(f"{place}: shape {mask.shape} does not fit; expected {shape}, one entry a record.{advice}")
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise InputError(f"{place}: a membership mask holds true and false (or 1 and 0) only.")
        mask = mask.astype(np.bool_)
    return mask


def complementary_halves(count: int, *, models: int, seed: int) -> BoolArray:
    """Who trains which shadow model, [models, count] (paper, Algorithm 1).

    Models 2k and 2k + 1 take a random half and its complement, so every record is in exactly half of the models. Each
    pair has a random stream of its own: asking for more models later leaves the first ones as they were.

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
        seed: of the draws; a larger number of models leaves the first ones as they were.
        stream: for whom is drawn. Targets and shadows of one seed take different ones, or shadow 0 would train on the
            target's members.

    Example:
        >>> random_subsets(100, models=2, fraction=0.35, seed=0).sum(axis=1)
        array([35, 35])
    """
    if not 0.0 < fraction < 1.0:
        raise InputError(
            f"fraction: {fraction} is not a share of the records; use a number between 0 and 1, such as 0.5."
        )
    size = round(fraction * count)
    if not 0 < size < count:
        raise InputError(f"fraction: {fraction} of {count} records leaves nobody inside or nobody outside.")
    members = np.zeros((models, count), dtype=np.bool_)
    for model in range(models):
        members[model, generator(seed, stream, model).permutation(count)[:size]] = True
    return members


def _first(mask: BoolArray) -> int:
    return int(np.flatnonzero(mask)[0])
