"""The population: records with stable ids and labels; and what a shadow pool needs of it, or of a graph's nodes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, IntArray, TextArray, as_array
from glasshouse.core.digests import digest_arrays, row_digests
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import not_finite
from glasshouse.core.optional import is_made_by
from glasshouse.data.convert import opened
from glasshouse.data.features import Records, count_records, joined, plain_parts, recognised, select
from glasshouse.data.labels import (
    as_ids,
    as_labels,
    as_targets,
    check_classes,
    comes_from,
    first_of,
    is_frame,
    joined_ids,
    one_column,
)
from glasshouse.data.units import Units, as_units


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population:
    """Records that a model may have been trained on.

    Args:
        x: [N, ...] a model's inputs: a numpy array, a torch tensor, a scipy sparse matrix, a list of texts, a data
            frame of pandas or polars, a dict of arrays such as ``input_ids`` and ``attention_mask``, a torch dataset of
            pairs (x, y), a Hugging Face dataset, or a list of graphs (`torch_geometric.data.Data`). They stay in their
            form; datasets are read into arrays.
        y: [N] labels of any kind; stored as columns 0..C-1 of the sorted `classes`. Where columns have names, the name
            of one. Left out only for a torch dataset or for graphs, which hold their own.
        ids: [N] stable, unique names of the records, or the name of a column; their positions by default.
        classes: [C] every label that a model knows, if `y` does not hold them all.
        leave_out: names of columns that are not features, such as the members or a date.
        regression: True if `y` holds real numbers that a model predicts; they stay as they are, and there are no
            classes. By default labels are classes, and numbers that do not look like classes are refused; False says
            that they are classes nevertheless.

    Example:
        >>> population = Population([[0.0], [1.0], [2.0]], ["no", "yes", "no"], ids=["ann", "bob", "eve"])
        >>> population.y, population.classes
        (array([0, 1, 0]), array(['no', 'yes'], dtype='<U3'))
        >>> len(population)
        3
        >>> import pandas
        >>> frame = pandas.DataFrame({"name": ["ann", "bob"], "age": [30, 40], "income": ["low", "high"]})
        >>> Population(frame, "income", ids="name").x
           age
        0   30
        1   40
        >>> Population([[0.0], [1.0]], [0.25, 1.5], regression=True).y
        array([0.25, 1.5 ])
    """

    x: Any
    y: NDArray[Any]
    ids: TextArray
    classes: NDArray[Any]
    regression: bool
    unit: Units | None

    def __init__(
        self,
        x: Any,
        y: ArrayLike | str | None = None,
        *,
        ids: Sequence[Any] | NDArray[Any] | str | None = None,
        classes: ArrayLike | None = None,
        leave_out: Sequence[str] = (),
        regression: bool | None = None,
        unit: ArrayLike | Units | str | None = None,
    ) -> None:
        x, y, ids, classes, unit = opened(x, y, ids=ids, classes=classes, leave_out=leave_out, unit=unit)
        given = as_labels(y)
        if given.ndim != 1:
            raise InputError(
                f"population: labels have shape {given.shape}; give one label per record, [N], such as "
                f"{one_column(given)}."
            )
        self._hold(x, given, ids, unit, what="label")
        vars(self).update(regression=bool(regression))
        if regression:
            vars(self).update(y=as_targets(given, classes), classes=np.empty(0))
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
        vars(self).update(y=np.searchsorted(known, given).astype(np.int64), classes=known)

    @classmethod
    def for_loss(
        cls,
        x: Any,
        y: ArrayLike | None = None,
        *,
        ids: Sequence[Any] | NDArray[Any] | str | None = None,
        unit: Any = None,
    ) -> Population:
        """Records for an audit with a loss of its own, ``audit(…, loss=…)``: outcomes of any shape, or none.

        Args:
            x: [N, ...] a model's inputs, as `Population` takes them.
            y: [N, ...] what the loss needs to know beside the inputs, such as several labels of a record, or the time
                and the event of a survival model; nothing for texts, of which every token is predicted.
            ids: [N] as for `Population`.
            unit: [N] as for `Population`.

        Example:
            >>> Population.for_loss(["the first text", "the second"])
            Population(2 records, a loss of its own)
            >>> Population.for_loss([[0.0], [1.0]], [[0, 1], [1, 1]]).y.shape
            (2, 2)
        """
        if y is None:
            first = next(iter(x.values()), ()) if isinstance(x, Mapping) else x
            y = np.empty((first.shape[0] if hasattr(first, "shape") else len(first), 0))
        x, y, ids, _, unit = opened(x, y, ids=ids, unit=unit)
        outcomes = np.atleast_1d(as_array(y if hasattr(y, "shape") else np.asarray(y)))
        if outcomes.dtype.kind not in "iufbV":
            raise InputError(f"population: outcomes are of type {outcomes.dtype}; give numbers.")
        made = object.__new__(cls)
        made._hold(x, outcomes, ids, unit, what="outcome")
        vars(made).update(y=outcomes, classes=np.empty(0), regression=False)
        return made

    def _hold(self, x: Any, given: NDArray[Any], ids: Any, unit: Any, *, what: str) -> None:
        """Keep the records, their ids and units, if there is a finite label or outcome for each."""
        count = count_records(x)
        if not count:
            raise InputError("population: there are no records.")
        if given.shape[:1] != (count,):
            raise InputError(f"population: {count} records but {len(given)} {what}s; give one per record.")
        if given.dtype.kind == "f" and (wrong := not_finite(given)).any():
            raise InputError(f"population: the {what} of record {first_of(wrong)} is not a number.")
        vars(self).update(x=x, ids=as_ids(ids, count, place="population"), unit=as_units(unit, count))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "real-valued targets" if self.regression else f"{len(self.classes)} classes"
        return f"Population({len(self)} records, {'a loss of its own' if self.own_loss else kind})"

    @property
    def own_loss(self) -> bool:
        """Whether its outcomes have a meaning for a loss of the user's own alone; see `for_loss`."""
        return not self.regression and not len(self.classes)

    @property
    def labels(self) -> NDArray[Any]:
        """[N] labels as their owner writes them; the targets themselves for a regression or a loss of its own.

        Example:
            >>> Population([[0.0], [1.0]], ["no", "yes"]).labels
            array(['no', 'yes'], dtype='<U3')
        """
        return self.classes[self.y] if len(self.classes) else self.y

    def at(self, places: IntArray | BoolArray, *, labels: NDArray[Any] | None = None) -> Population:
        """Some of the records, by position or by mask, with all classes.

        With other ``labels`` [n] they are other records, which belong to nobody.

        Example:
            >>> Population([[0.0], [1.0], [2.0]], ["no", "yes", "no"]).at(np.array([2, 0])).ids
            array(['2', '0'], dtype='<U1')
        """
        rows = np.arange(len(self))[places]
        return Population(
            select(self.x, rows),
            self.labels[rows] if labels is None else labels,
            ids=self.ids[rows],
            classes=None if self.regression else self.classes,
            regression=self.regression,
            unit=None if self.unit is None or labels is not None else self.unit.at(rows),
        )

    def fingerprint(self) -> str:
        """A short hash of features, labels, ids and units, by which a report identifies its data.

        Example:
            >>> len(Population([[0.0], [1.0]], [0, 1]).fingerprint())
            16
        """
        if isinstance(self.x, Records):
            found = digest_arrays([self.digests(), self.y, self.ids])
        elif hasattr(self.x, "indptr"):
            found = digest_arrays([self.x.data, self.x.indices, self.x.indptr, self.y, self.ids])
        else:
            found = digest_arrays([self.y, self.ids], features=plain_parts(self.x))
        return found if self.unit is None else digest_arrays([np.array([found]), self.unit.names[self.unit.rows]])

    @property
    def features(self) -> Any:
        """[N, ...] what is known about the records as rows: ``x``, or numbers about records that are not rows."""
        return self.x.features() if isinstance(self.x, Records) else self.x

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
        return row_digests(plain_parts(self.x), self.y)

    @classmethod
    def from_parts(cls, train: Population, holdout: Population) -> Parts:
        """One population from the records that trained a model and those that did not, and which are which.

        Ids stay what they are; where both parts are only numbered, they become ``train-0``, ``holdout-0`` and so on.
        A record with the same features and label in both parts is found by the audit, which warns about it.

        Args:
            train: the records that trained the model; its members.
            holdout: records that did not.

        Example:
            >>> train, holdout = Population([[0.0], [1.0]], [0, 1]), Population([[2.0], [3.0]], [1, 0])
            >>> population, members = Population.from_parts(train, holdout)
            >>> population.ids.tolist(), members.tolist()
            (['train-0', 'train-1', 'holdout-0', 'holdout-1'], [True, True, False, False])
        """
        for place, part in (("train", train), ("holdout", holdout)):
            if not isinstance(part, Population):
                raise InputError(
                    f"from_parts: {place}: {type(part).__name__} is not a Population; give two of them: "
                    f"Population.from_parts(Population(train, …), Population(holdout, …))."
                )
        if train.regression != holdout.regression:
            raise InputError("from_parts: one of train and holdout is a regression; say regression=True for both.")
        if train.own_loss != holdout.own_loss:
            raise InputError("from_parts: one of train and holdout is for a loss of its own; make both by for_loss.")
        labels = [part.labels for part in (train, holdout)]
        same: dict[str, Any] = {"ids": joined_ids(train.ids, holdout.ids)}
        same["unit"] = _joined_units(train.unit, holdout.unit)
        inside = np.arange(len(train) + len(holdout)) < len(train)
        if train.own_loss:
            if labels[0].shape[1:] != labels[1].shape[1:]:
                raise InputError("from_parts: outcomes of train and holdout have different shapes.")
            return Parts(cls.for_loss(joined(train.x, holdout.x), np.concatenate(labels), **same), inside)
        classes = None
        if not train.regression:
            kinds = [_kind(part.classes) for part in (train, holdout)]
            if kinds[0] != kinds[1]:
                raise InputError(
                    f"from_parts: the labels of train are {kinds[0]} ({labels[0][0]!r}) and those of holdout "
                    f"{kinds[1]} ({labels[1][0]!r}); write them in the same way."
                )
            if not np.isin(labels[0], labels[1]).any():
                raise InputError(
                    f"from_parts: train and holdout have no label in common ({labels[0][0]!s} and {labels[1][0]!s}); "
                    f"write them in the same way."
                )
            classes = np.union1d(train.classes, holdout.classes)
        whole = cls(
            joined(train.x, holdout.x),
            np.concatenate(labels),
            classes=classes,
            regression=train.regression,
            **same,
        )
        return Parts(whole, inside)


class Parts(NamedTuple):
    """A population and the members of its target, as ``audit(population, members=members, …)`` takes them."""

    population: Population  # all records, those of the training first
    members: BoolArray  # [N] which records trained the target


def _joined_units(train: Units | None, holdout: Units | None) -> Units | None:
    """The units of both parts: equal names are one unit."""
    if train is None or holdout is None:
        if train is not holdout:
            raise InputError("from_parts: only one of train and holdout has units; give unit= for both.")
        return None
    names = np.concatenate([one.names[one.rows] for one in (train, holdout)])
    return Units(names, word=train.word, partly=train.partly)


def _kind(classes: NDArray[Any]) -> str:
    return {"U": "text", "O": "objects", "b": "truth values"}.get(classes.dtype.kind, "numbers")


def check_population(population: Any) -> None:
    """Refuse what is not a population of records."""
    if not isinstance(population, Population):
        if (records := recognised(population)) is not None:
            raise InputError(f"population: {records.advice}.")
        raise InputError(
            f"population: {type(population).__name__} is not a Population; {_advice_for(population)} For a graph call "
            f"glasshouse.graph.audit(data, model=…, members=…, trainer=…)."
        )


def _advice_for(given: Any) -> str:
    """The line that makes a population of what was given in its place."""
    if recognised(given) is not None:
        return "make one: Population(graphs), and pass a trainer for these records."
    if isinstance(given, Parts):
        return "it holds two things: audit(parts.population, members=parts.members, …)."
    if isinstance(given, str | Path):
        return f"read the file first: Population(pandas.read_csv({str(given)!r}), 'label')."
    if comes_from(given, "datasets") and isinstance(given, Mapping):
        first = next(iter(given), "train")
        return f"it holds several splits; make one of each, such as Population(data[{first!r}], 'label')."
    if is_frame(given) or comes_from(given, "datasets"):
        names = list(given.columns if is_frame(given) else getattr(given, "column_names", []))
        label = names[-1] if names else "label"
        return f"make one: Population(data, {label!r}), with the name of the column that holds the labels."
    if is_made_by(given, "torch.utils.data", "Dataset"):
        return "make one: Population(dataset)."
    if isinstance(given, Mapping):
        return "make one: Population(arrays, y)."
    return "make one: Population(x, y)."


@runtime_checkable
class AnyPopulation(Protocol):
    """What a shadow pool needs from the data that models are trained on: a `Population`, or the nodes of a graph."""

    def __len__(self) -> int:
        """N, the number of records."""

    @property
    def ids(self) -> TextArray:
        """[N] stable names of the records."""

    @property
    def training_data(self) -> Any:
        """What a trainer is called with."""

    @property
    def independent(self) -> bool:
        """Whether a model's answer about a record depends on that record alone; answers can then replace a model."""

    def fingerprint(self) -> str:
        """A short hash of the data, by which a pool and a report identify it."""

    def digests(self) -> NDArray[np.bytes_]:
        """[N] a short hash of each record: equal records have equal hashes."""


@functools.singledispatch
def as_population(data: Any) -> AnyPopulation:
    """The data that a user trains models on, as a population; a package registers its own type of data here."""
    if isinstance(data, AnyPopulation):
        return data
    raise InputError(
        f"population: {type(data).__name__} is not a population; {_advice_for(data)} For a graph, import "
        f"glasshouse.graph first."
    )
