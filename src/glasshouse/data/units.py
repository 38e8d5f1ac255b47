"""The unit of privacy: whose rows are whose. A person, a household or a device may have several records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.data.labels import is_missing, listed


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Units:
    """Which unit each record belongs to; units are in the order in which they first appear.

    Args:
        of: [N] the name of each record's unit.
        word: what one of them is called in a report, such as ``"person"`` or ``"household"``.
        partly: what a unit is that has some records inside a training set and some outside. ``"refused"``: such
            members are a mistake. ``"member"``: it counts as a member, as the owner declares.

    Example:
        >>> units = Units(["ann", "bob", "ann"])
        >>> units.names.tolist(), units.rows.tolist(), len(units)
        (['ann', 'bob'], [0, 1, 0], 2)
        >>> units.members([True, False, True], place="members")
        array([ True, False])
        >>> units.means([1.0, 5.0, 2.0])
        array([1.5, 5. ])
    """

    names: TextArray  # [U]
    rows: IntArray  # [N] the unit of each record
    word: str
    partly: str
    _starts: IntArray | None  # [U] where the records of each unit begin, if they lie one after those of another

    def __init__(self, of: ArrayLike | Any, *, word: str = "person", partly: str = "refused") -> None:
        values = listed(of)
        if values.ndim != 1:
            raise InputError(f"unit: has shape {values.shape}; give one name per record, [N].")
        if partly not in ("refused", "member"):
            raise InputError(f'unit: partly {partly!r} is not known; use "refused" or "member".')
        empty = np.array([is_missing(value) for value in values.tolist()], dtype=np.bool_)
        if empty.any():
            raise InputError(f"unit: record {int(np.argmax(empty))} has no unit; name one for every record.")
        named = np.array([str(value) for value in values.tolist()], dtype=np.str_)
        found, first, codes = np.unique(named, return_index=True, return_inverse=True)
        order = np.argsort(first)
        vars(self).update(names=found[order], rows=np.argsort(order)[codes], word=word, partly=partly, _starts=None)

    @classmethod
    def in_order(cls, names: TextArray, offsets: IntArray, *, word: str = "record") -> Units:
        """Units [U] whose records lie one after those of another, such as texts of tokens; ``offsets`` are [U + 1].

        Example:
            >>> Units.in_order(np.array(["a", "b"]), np.array([0, 2, 3])).sums([1.0, 2.0, 5.0])
            array([3., 5.])
        """
        made, rows = object.__new__(cls), np.repeat(np.arange(len(names)), np.diff(offsets))
        vars(made).update(names=names, rows=rows, word=word, partly="refused", _starts=offsets[:-1])
        return made

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Units({len(self.rows)} records of {len(self)} {self.word}s)"

    @property
    def sizes(self) -> IntArray:
        """[U] how many records each unit has."""
        return np.bincount(self.rows, minlength=len(self))

    def sums(self, values: ArrayLike) -> FloatArray:
        """[…, U] sums over the records of each unit, of values [..., N]."""
        given = np.asarray(values, dtype=np.float64)
        if self._starts is not None:
            return np.asarray(np.add.reduceat(given, self._starts, axis=-1))
        if given.ndim == 1:
            return np.asarray(np.bincount(self.rows, given, len(self)), dtype=np.float64)
        return np.stack([self.sums(one) for one in given]) if len(given) else np.empty((0, len(self)))

    def means(self, values: ArrayLike) -> FloatArray:
        """[…, U] means over the records of each unit, of values [..., N]."""
        return np.asarray(self.sums(values) / self.sizes)

    def members(self, inside: ArrayLike, *, place: str) -> BoolArray:
        """[U] which units are inside, from records [N]; a unit that is partly inside is refused, or as declared."""
        mask = np.asarray(inside, dtype=np.bool_)
        count = self.sums(mask)
        split = (count > 0) & (count < self.sizes)
        if split.any() and self.partly == "refused":
            at = int(np.argmax(split))
            raise InputError(
                f"{place}: {self.word} {str(self.names[at])!r} has {int(count[at])} of {self.sizes[at]} records "
                f"inside ({int(split.sum())} such {self.word}s). Put all records of a {self.word} on one side, or "
                f'declare it: unit=Units(…, partly="member").'
            )
        return np.asarray(count > 0)

    def column(self, values: ArrayLike) -> NDArray[Any]:
        """[U] one value per unit from a column [N]: the mean of numbers, or else the most frequent value.

        Of equally frequent values it is the first in order. A column that is the same in all of a unit stays as it is.
        """
        given = np.asarray(values)
        if self.constant(given):
            return np.asarray(given[self._first])
        if given.dtype.kind == "f" or (given.dtype.kind in "iu" and len(np.unique(given)) > 20):
            return self.means(given)
        known, codes = np.unique(given, return_inverse=True)
        counts = np.zeros((len(self), len(known)), dtype=np.int64)
        np.add.at(counts, (self.rows, codes), 1)
        return np.asarray(known[counts.argmax(axis=1)])

    def constant(self, values: ArrayLike) -> bool:
        """Whether a column [N] is the same in all records of each unit."""
        given = np.asarray(values)
        return bool((given == given[self._first][self.rows]).all())

    @property
    def _first(self) -> IntArray:
        """[U] the first record of each unit."""
        return np.asarray(np.unique(self.rows, return_index=True)[1])

    def at(self, places: IntArray) -> Units:
        """The units of some of the records, by their places; units without any of them are gone."""
        return Units(self.names[self.rows[places]], word=self.word, partly=self.partly)

    def renamed(self, names: TextArray) -> Units:
        """The same units with other names [U]."""
        made = object.__new__(Units)
        vars(made).update(vars(self), names=names)
        return made


def as_units(given: Any, count: int) -> Units | None:
    """Units of so many records, from a column or from `Units`; None stays None.

    Example:
        >>> as_units(["ann", "bob", "ann"], 3)
        Units(3 records of 2 persons)
    """
    if given is None:
        return None
    units = given if isinstance(given, Units) else Units(given)
    if len(units.rows) != count:
        raise InputError(f"unit: {len(units.rows)} names but {count} records; give one per record.")
    if len(units) < 2:
        raise InputError(f"unit: all records belong to one {units.word}; nobody could be told from anybody.")
    return units
