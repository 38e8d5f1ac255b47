"""Columns of a user's table: what cells and columns hold, and which keys say so in an audit file."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, Self

import numpy as np
from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from glasshouse.config.yaml_model import Strict, one_or_more
from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError, shortened
from glasshouse.core.escape import visible
from glasshouse.core.registry import did_you_mean
from glasshouse.data import Population, Units
from glasshouse.data.labels import short_texts
from glasshouse.data.named import Dataset
from glasshouse.evidence.tables import EMPTY, read_text_table
from glasshouse.io.guarded import file_size

Decimal = Literal[".", ","]
Kind = Literal["number", "truth", "date", "text", "empty"]

# what people write for an empty cell; only among numbers, truths and dates, for elsewhere it may be a word of its own
MARKS = EMPTY | {"?", "-", "--", ".", "*", "unknown", "missing", "n.a.", "nil", "not available"}
TRUTHS = {"true": 1.0, "yes": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "no": 0.0, "0": 0.0, "0.0": 0.0}

_SPACES = " '\u00a0\u202f"  # what else separates thousands
_NUMBERS: dict[str, re.Pattern[str]] = {
    ".": re.compile(rf"[+-]?(?=[.]?\d)(\d+|\d{{1,3}}([,{_SPACES}]\d{{3}})+)?([.]\d*)?(e[+-]?\d+)?", re.IGNORECASE),
    ",": re.compile(rf"[+-]?(?=,?\d)(\d+|\d{{1,3}}([.{_SPACES}]\d{{3}})+)?(,\d*)?(e[+-]?\d+)?", re.IGNORECASE),
}
_OTHERS = {".": str.maketrans("", "", "," + _SPACES), ",": str.maketrans(",", ".", "." + _SPACES)}

_TIME = r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + _TIME)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(one_or_more),
    Field(strict=False),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}),
]
_TEXT = (".csv", ".tsv", ".tab", ".txt", ".data", ".dat")


def is_number(cell: str, decimal: Decimal) -> bool:
    """Whether a cell is a finite number, written with this decimal sign."""
    return _NUMBERS[decimal].fullmatch(cell) is not None and math.isfinite(as_number(cell, decimal))


def as_number(cell: str, decimal: Decimal) -> float:
    """The number in a cell that holds one."""
    return float(cell.translate(_OTHERS[decimal]))


def date_reader(cells: Collection[str], *, place: str) -> Callable[[str], float] | None:
    """How to read these cells as dates, in days since 1970 (UTC where a zone is given); None if they are not dates.

    Known are ``2021-03-28``, ``2021/3/28``, ``28.3.2021`` and, if the days tell which number is the month,
    ``28/3/2021`` and ``3/28/2021``; each may have a time. ``place`` is the file and the column.
    """
    if cells and all(_YEAR_FIRST.fullmatch(cell) for cell in cells):
        return lambda cell: _days(cell, _YEAR_FIRST, (1, 2, 3), place)
    found = [_YEAR_LAST.fullmatch(cell) for cell in cells]
    known = [match for match in found if match is not None]
    if not known or len(known) < len(found):
        return None
    first, second = (max(int(match[number]) for match in known) for number in (1, 3))
    dotted = all(match[2] == "." for match in known)  # with points the day comes first everywhere
    if not dotted and first <= 12 and second <= 12:
        raise InputError(
            f"{place}: {shortened(min(cells))} does not tell the day from the month. Write dates as 2021-03-28, or "
            f"leave the column out."
        )
    order = (4, 3, 1) if dotted or first > 12 else (4, 1, 3)
    return lambda cell: _days(cell, _YEAR_LAST, order, place)


def _days(cell: str, form: re.Pattern[str], order: tuple[int, int, int], place: str) -> float:
    match = form.fullmatch(cell)
    assert match is not None  # noqa: S101 (every cell was matched before)
    year, month, day = (match[number] for number in order)
    hour, minute, second, zone = match.groups(default="00")[-4:]
    zone = "+00:00" if zone == "00" else zone
    try:
        moment = datetime.datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute}:{second}{zone}")
    except ValueError as error:
        raise InputError(f"{place}: {shortened(cell)} is not a date: {error}.") from None
    return (moment - _EPOCH) / datetime.timedelta(days=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Column:
    """A column whose kind is known; ``"empty"`` if there is nothing in it."""

    name: str
    kind: Kind
    cells: list[str]  # [N] as they stand in the file
    values: FloatArray | None = None  # [N] truths as 1 and 0, dates as days since 1970, empty cells as NaN; not of text

    @property
    def groups(self) -> np.ndarray:
        """[N] the values by which a report divides the records: numbers, or text."""
        if self.kind == "number" and self.values is not None:
            return self.values
        return short_texts(
            ["missing" if cell.lower() in EMPTY else cell for cell in self.cells], place=self.name, what="group"
        )

    @property
    def remade(self) -> bool:
        """Whether its features are other than its cells: text, dates and columns with empty cells."""
        return self.kind not in ("number", "truth") or self.values is None or bool(np.isnan(self.values).any())


def file_decimal(columns: Mapping[str, list[str]], *, separator: str, place: str) -> Decimal:
    """The decimal sign that columns of numbers need; ``1,234`` alone is a thousand where a comma separates cells."""
    known: tuple[Decimal, ...] = (".", ",")
    needed: dict[Decimal, str] = {}
    unclear = ""
    for name, cells in columns.items():
        present = [cell for cell in set(cells) if cell.lower() not in MARKS]
        signs = [sign for sign in known if present and all(is_number(cell, sign) for cell in present)]
        if len(signs) == 1:
            needed.setdefault(signs[0], name)
        elif signs:
            unclear += "".join(present)
    if len(needed) == 2:
        raise InputError(
            f"{place}: the column {needed[',']!r} has a decimal comma and {needed['.']!r} a decimal point. Write both "
            f"alike, or say which one numbers have (data.decimal); the other column is then text."
        )
    if needed:
        return next(iter(needed))
    return "," if separator != "," and "," in unclear and "." not in unclear else "."


def read_column(
    name: str, cells: list[str], *, decimal: Decimal, most: int, as_text: bool = False, place: str
) -> Column:
    """A column [N] as numbers, truths or dates if all cells that are not empty are; otherwise as text.

    With ``as_text``, numbers in it are names. ``most`` is how many texts get a feature of their own: a column with more
    different numbers than that, and a few words, is refused, since as text it would lose its numbers.
    """
    different = Counter(cells)
    present = {cell: count for cell, count in different.items() if cell.lower() not in MARKS}

    def column(kind: Kind, read: Callable[[str], float] | None = None) -> Column:
        """Each different cell is read once."""
        known = {} if read is None else {cell: read(cell) for cell in present}
        values = None if read is None else np.array([known.get(cell, np.nan) for cell in cells])
        return Column(name=name, kind=kind, cells=cells, values=values)

    if all(cell.lower() in EMPTY for cell in different):
        return column("empty")
    if as_text:
        return column("text")
    numbers = {cell: count for cell, count in present.items() if is_number(cell, decimal)}
    if present and len(numbers) == len(present):
        return column("number", lambda cell: as_number(cell, decimal))
    if present and all(cell.lower() in TRUTHS for cell in present):
        return column("truth", lambda cell: TRUTHS[cell.lower()])
    if (days := date_reader(present.keys(), place=f"{place}: {name}")) is not None:
        return column("date", days)
    if len(numbers) > most and 2 * sum(numbers.values()) > sum(present.values()):
        words = present.keys() - numbers.keys()
        row, cell = next((row, cell) for row, cell in enumerate(cells, start=1) if cell in words)
        raise InputError(
            f"{place}: {name}: row {row}: {shortened(cell)} is not a number, but most cells of the column are. "
            f"Write a number, empty the cell, or list the column under data.categories or data.leave_out."
        )
    return column("text")


class TableSection(Strict):
    """Your own records: a csv or parquet table with a label column, or an npz archive with x and y."""

    model_config = ConfigDict(use_attribute_docstrings=True)  # editors show them beside the keys

    name: Literal["file"]
    path: str | None = None
    """The one file, from the folder of the audit file; or give train and holdout."""
    train: str | None = None
    """File of the members."""
    holdout: str | None = None
    """File of the non-members."""
    label: str = "label"
    """Column of the labels."""
    id: str | None = None
    """Column of the records' names; positions by default."""
    unit: str | None = None
    """Column that says whose record each one is, if a person has several; not a feature."""
    unit_word: str = "person"
    """What a unit is called, such as household or device."""
    unit_partly: Literal["refused", "member"] = "refused"
    """What a unit is with some records inside and some outside."""
    members: str | None = Field(default=None, validation_alias=AliasChoices("members", "member"))
    """Column that says whether a record trained the target, or a file with the ids of those that did."""
    groups: Names = ()
    """Columns by which the report divides the records; features too, unless they are left out."""
    leave_out: Names = ()
    """Columns that are not features."""
    categories: Names = ()
    """Columns of numbers that are names, such as codes; one-hot like text."""
    max_categories: Annotated[int, Field(ge=2)] = 50
    """Most features of a text column."""
    standardise: bool = False
    """Whether numbers and dates get mean 0 and standard deviation 1, as networks want them."""
    columns: Names | None = None
    """Names of the columns, if the first line of the file is already a record."""
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """Sign between cells; found by itself."""
    decimal: Decimal | None = None
    """Sign of the numbers; found by itself."""
    regression: bool | None = None
    """Whether a model predicts the labels; what looks like it is refused by default."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        parts = [name for name in ("train", "holdout") if getattr(self, name) is not None]
        if self.path is not None and parts:
            raise ValueError(f"path: cannot be used together with {parts[0]}. Leave one of them out.")
        if self.path is None and len(parts) < 2:
            missing = "path" if not parts else "holdout" if parts == ["train"] else "train"
            raise ValueError(f"{missing}: is missing. Give path, or both train and holdout.")
        if parts and self.members is not None:
            raise ValueError("members: cannot be used together with train and holdout, which already say who they are.")
        return self

    def units(self, names: Any) -> Units | None:
        """The units of records with these names [N]; None without a column of them."""
        return None if self.unit is None else Units(names, word=self.unit_word, partly=self.unit_partly)

    @property
    def files(self) -> tuple[str, ...]:
        """The one file, or those of the members and of the non-members."""
        return tuple(name for name in (self.path, self.train, self.holdout) if name is not None)

    def data_set(self, population: Population, **known: Any) -> Dataset:
        """The records of these files, with what is known about them."""
        files = " and ".join(visible(Path(name).name) for name in self.files)
        about = f"{len(population)} records from {files}."
        return Dataset(name="file", about=about, population=population, **known)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows of one file, or of several with the same columns."""

    columns: dict[str, list[str]]  # [N] cells by name
    counts: tuple[int, ...]  # rows of each file
    paths: tuple[Path, ...]
    separator: str  # of the first file
    notes: tuple[str, ...] = ()  # what a reader of the report should know

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def place(self) -> str:
        """The files, for errors about all rows."""
        return " and ".join(map(str, self.paths))

    def refuse(self, name: str, rows: Sequence[int], fault: str) -> NoReturn:
        """Refuse cells of a column, and say where the first one is; rows are counted without the header."""
        file, row = 0, rows[0]
        while row >= self.counts[file]:
            file, row = file + 1, row - self.counts[file]
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        raise InputError(f"{self.paths[file]}: {name}: row {row + 1}{more}: {fault}")

    def check(self, names: Iterable[str]) -> None:
        """Refuse a column that is not there."""
        if lost := [name for name in names if name not in self.columns]:
            hint = did_you_mean(lost[0], self.columns)
            advice = ""
            if len(self.columns) == 1:
                advice = " If cells are not separated as they should be, set data.separator."
            elif any(is_number(name, ".") for name in self.columns):
                advice = " If the first line is a record, name the columns: data.columns."
            columns = ", ".join(self.columns)
            raise InputError(f"{self.place}: has no column {shortened(lost[0])}.{hint} Columns: {columns}.{advice}")


def read_rows(section: TableSection, folder: Path) -> Rows:
    """The rows of the files that a section names, one file below the other."""
    paths = tuple(folder / name for name in section.files)
    for path in paths:
        file_size(path)
        if path.suffix.lower() not in (*_TEXT, ".parquet"):
            raise InputError(
                f"{path}: records are read from .npz, .parquet or text tables ({', '.join(_TEXT)}). Save it as CSV."
            )
    tables = [read_text_table(path, names=section.columns, separator=section.separator) for path in paths]
    first = tables[0].columns
    for table, path in zip(tables[1:], paths[1:], strict=True):
        if strange := sorted(first.keys() ^ table.columns.keys()):
            without = path if strange[0] in first else paths[0]
            raise InputError(f"{without}: has no column {strange[0]!r}, but the other file has it.")
    foreign = [path.name for path, table in zip(paths, tables, strict=True) if table.foreign]
    return Rows(
        columns={name: [cell for table in tables for cell in table.columns[name]] for name in first},
        counts=tuple(len(next(iter(table.columns.values()))) for table in tables),
        paths=paths,
        separator=tables[0].separator,
        notes=tuple(f"{name} is not UTF-8; it was read as Windows-1252." for name in foreign),
    )
