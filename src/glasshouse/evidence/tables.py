"""Losses, logits or probabilities in tables with a row for each model and record, and what attacks need of them."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import FloatArray, IntArray, TextArray
from glasshouse.core.errors import InputError, needs_extra, shortened
from glasshouse.core.numerics import check_finite, finite_logits, logits_from_probabilities
from glasshouse.core.outputs import losses_from_logits
from glasshouse.data import as_ids
from glasshouse.evidence.evidence import checked_labels, checked_losses
from glasshouse.io.guarded import file_size, guarded, read_content
from glasshouse.io.limits import check_memory
from glasshouse.query import vote_step

Arrays = dict[str, NDArray[Any]]
_FLAGS = {
    **dict.fromkeys(("1", "true", "yes", "1.0"), 1),
    **dict.fromkeys(("0", "false", "no", "0.0"), 0),
    **dict.fromkeys(("", "none", "nan", "null"), -1),
}
EMPTY = frozenset({"", "nan", "none", "null", "na", "n/a", "#n/a", "<na>", "nat"})  # as tables and pandas write it
_KINDS = {  # of output: the names of its columns, with the number of the class
    "loss": re.compile("loss()"),
    "logits": re.compile(r"logit_(\d{1,6})"),
    "probabilities": re.compile(r"probability_(\d{1,6})"),
}
Columns = dict[str, list[str]]  # cells by the name of the column; in an array all would be as wide as the longest
_ROWS = 10_000  # of one part
_OF_CELL = 80  # bytes that Python needs for a cell besides its letters
_POINTER = 8
_NUMERIC = ("integer", "floating", "boolean", "null", "decimal", "temporal")  # types of columns besides text
_SEPARATORS = (",", ";", "\t", "|")
_SAMPLE = 100  # rows that must agree on the separator


def outputs_to_losses(
    kind: str, target: NDArray[Any], shadow: NDArray[Any], labels: NDArray[Any] | None, ids: TextArray
) -> dict[str, Any]:
    """The loss, label and logit arguments of `Evidence` from one kind of output, and notes on how they were handled.

    ``kind`` is ``"loss"``, ``"logits"`` or ``"probabilities"``: of the target, [N] or [N, C], and of shadow models,
    [K, N] or [K, N, C]. Losses need no labels [N], the columns of the true classes. Votes, rounded probabilities and
    those of the likeliest classes alone are recognised over all records, and clipped in the same way for all models.
    """
    if kind == "loss":
        target = checked_losses(target, ids, place="target_loss")
        shadow = checked_losses(shadow, ids, place="shadow_loss")
        # a loss of exactly 0 shows that the model, or the precision, has steps
        every = (loss.astype(np.float64, copy=False) for loss in (target, *shadow))
        step, _ = _common_step(np.stack([np.exp(-loss), -np.expm1(-loss)], axis=-1) for loss in every)
        if labels is not None and labels.dtype.kind not in "iufb":  # an attack on losses cannot use names
            labels = None
        return {
            "target_loss": vote_step.clipped_losses(target, step),
            "shadow_loss": vote_step.clipped_losses(shadow, step),
            "labels": None if labels is None else checked_labels(labels, len(ids)),
            "notes": vote_step.resolution_note(step),
        }
    if labels is None:
        raise InputError(f"labels: missing; {kind} become losses only with the true classes, [N].")
    codes = checked_labels(labels, len(ids))
    step, notes = None, list[str]()
    if kind == "probabilities":
        check_finite(target, ids, place="target_probabilities")
        check_finite(shadow, ids, place="shadow_probabilities", models=True)
        if target.ndim == 1:  # one number per record: the probability of class 1
            target, shadow = (np.stack([1 - values, values], axis=-1) for values in (target, shadow))
        target, notes = _whole_rows(target, ids, place="target_probabilities")
        every_shadow = [_whole_rows(one, ids, place="shadow_probabilities") for one in shadow]
        theirs = dict.fromkeys(note for _, said in every_shadow for note in said)
        if theirs:  # otherwise they stay as they are, in their own precision
            shadow = np.stack([rows for rows, _ in every_shadow])
        notes = notes or [note.replace("The model answers", "Shadow models answer") for note in theirs]
        step, small = _common_step((target, *shadow))
        target, shadow = (logits_from_probabilities(values, underflows=small) for values in (target, shadow))
    target, shadow = _two_columns(target, ids.shape), _two_columns(shadow, (len(shadow), len(ids)))
    if target.shape != shadow.shape[1:]:
        raise InputError(f"shadow_{kind}: {shadow.shape[-1]} classes, but the target has {target.shape[-1]}.")
    outside = (codes < 0) | (codes >= target.shape[1])
    if outside.any():
        raise InputError(
            f"labels: record {str(ids[outside][0])!r} has the label {codes[outside][0]}, but the classes are 0 to "
            f"{target.shape[1] - 1}."
        )
    if kind == "logits":
        check_finite(target, ids, place="target_logits", labels=codes)
        check_finite(shadow, ids, place="shadow_logits", labels=codes, models=True)
        target, shadow = finite_logits(target), finite_logits(shadow)
    losses = np.array([losses_from_logits(one, codes) for one in (target, *shadow)])
    return {
        "target_loss": vote_step.clipped_losses(losses[0], step),
        "shadow_loss": vote_step.clipped_losses(losses[1:], step),
        "labels": codes,
        "target_logits": vote_step.clipped_log_probabilities(target, step),
        "shadow_logits": vote_step.clipped_log_probabilities(shadow, step),
        "notes": (*notes, *vote_step.resolution_note(step)),
    }


def _common_step(every: Iterable[NDArray[Any]]) -> tuple[float | None, bool]:
    """The step of the probabilities [N, C] of the target and then of the shadow models, and whether some underflow."""
    finders = []
    for probabilities in every:
        finders.append(vote_step.StepFinder())
        finders[-1].add(probabilities)
    own, *theirs = (one.resolution() for one in finders)
    return vote_step.common_resolution(own, theirs), any(one.underflows() for one in finders)


def _two_columns(logits: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """One logit z per record becomes [0, z]; anything wider is returned as it is."""
    if logits.shape not in (shape, (*shape, 1)):
        return logits
    z = logits.reshape(shape)
    return np.stack([np.zeros_like(z), z], axis=-1)


def _whole_rows(rows: NDArray[Any], ids: TextArray, *, place: str) -> tuple[NDArray[Any], list[str]]:
    """One model's probabilities [N, C] and what is said about them; rows that are no distributions are refused."""
    finder = vote_step.ShareFinder()
    finder.add(rows)
    if (shares := finder.found()) is not None:
        return vote_step.whole_shares(rows, shares), [vote_step.shares_note(shares)]
    wrong = ~((rows >= 0).all(axis=-1) & (np.abs(rows.sum(axis=-1) - 1) < 1e-3))
    if wrong.any():
        raise InputError(f"{place}: record {str(ids[wrong][0])!r} does not hold probabilities that sum to 1.")
    return rows, []


def tidy_arrays(columns: Columns) -> Arrays:
    """Arrays as an npz file holds them, from columns ``model, id, member, label`` and the outputs."""
    kind, names = _output_columns(columns)
    if missing := [name for name in ("model", "id", "member") if name not in columns]:
        raise InputError(f"the column {missing[0]!r} is missing; the table needs model, id, member and {kind}.")
    outputs = np.stack([_numbers(columns[name], name) for name in names], axis=1)
    outputs = outputs[:, 0] if kind == "loss" else outputs
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(columns["model"]):
        rows_of.setdefault(name, []).append(row)
    if "target" not in rows_of:
        raise InputError("model: no row is named 'target'; give the target's rows this name.")
    target, ids = np.array(rows_of.pop("target")), columns["id"]
    wanted = [ids[row] for row in target]
    arrays: Arrays = {f"target_{kind}": outputs[target], "ids": as_ids(wanted, len(target), place="id")}
    order = {name: _in_order(rows, wanted, ids, name) for name, rows in rows_of.items()}
    member = as_flags(columns["member"], place="member")
    for rows in order.values():
        if len(empty := rows[member[rows] < 0]):
            raise InputError(f"member: empty for record {shortened(ids[empty[0]])} of a shadow model; write 1 or 0.")
    if 0 < len(empty := target[member[target] < 0]) < len(target):
        raise InputError(
            f"member: empty for record {shortened(ids[empty[0]])} of the target, and not for all; write 1 or 0, or "
            f"empty them all."
        )
    if order:  # the rows of every model are now in the target's order
        arrays[f"shadow_{kind}"] = np.stack([outputs[rows] for rows in order.values()])
        arrays["shadow_members"] = np.stack([member[rows] == 1 for rows in order.values()])
    if not len(empty):
        arrays["members"] = member[target] == 1
    if "label" in columns:
        labels = [columns["label"][row] for row in target]
        _check_labels(labels, columns["label"], order, ids)
        if kind != "loss" or all(map(_is_number, labels)):  # an attack on losses cannot use names
            arrays["labels"] = _numbers(labels, "label")
    return arrays


def _output_columns(columns: Columns) -> tuple[str, list[str]]:
    """The kind of output in the table, and its columns in the order of the classes."""
    found = {}
    for kind, form in _KINDS.items():
        if matches := [match for name in columns if (match := form.fullmatch(name))]:
            found[kind] = sorted((int(match[1] or 0), match[0]) for match in matches)
    if not found:
        raise InputError("there is no column named loss, logit_0, … or probability_0, …; give one kind.")
    if len(found) > 1:
        raise InputError(f"has columns of {' and of '.join(found)}; give one kind, and leave the others out.")
    kind, numbered = next(iter(found.items()))
    if [number for number, _ in numbered] != list(range(len(numbered))):
        stem = numbered[0][1].partition("_")[0]
        raise InputError(f"the columns {stem}_0, {stem}_1, … have a gap; give one per class.")
    return kind, [name for _, name in numbered]


def _in_order(rows: list[int], wanted: list[str], ids: list[str], model: str) -> IntArray:
    """Rows of one model in the target's order of records."""
    place = {ids[row]: row for row in rows}
    if len(place) != len(rows):
        raise InputError(f"model {shortened(model)} has a record twice; give one row for each model and record.")
    if place.keys() != (known := set(wanted)):
        name = next((name for name in wanted if name not in place), None) or next(n for n in place if n not in known)
        raise InputError(
            f"record {shortened(name)} is not in both the target's rows and those of model {shortened(model)}."
        )
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _check_labels(labels: list[str], every: list[str], order: dict[str, IntArray], ids: list[str]) -> None:
    """Refuse a record that has one label in the target's row and another in a shadow model's."""
    for model, rows in order.items():
        for label, row in zip(labels, rows.tolist(), strict=True):
            given = every[row]
            if given != label and not (_is_number(given) and _is_number(label) and float(given) == float(label)):
                raise InputError(
                    f"label: record {shortened(ids[row])} has the label {shortened(label)} for the target and "
                    f"{shortened(given)} for model {shortened(model)}; a record has one label."
                )


def as_flags(values: Sequence[str], *, place: str) -> IntArray:
    """1 for 1, true and yes, 0 for 0, false and no, -1 for an empty cell; [rows]."""
    found = [_FLAGS.get(value.strip().lower(), 2) for value in values]
    if 2 in found:
        raise InputError(f"{place}: {shortened(values[found.index(2)])} is neither 1 nor 0.")
    return np.array(found, dtype=np.int64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000


def _numbers(cells: Sequence[str], name: str) -> FloatArray:
    if strange := [cell for cell in cells if not _is_number(cell)]:
        raise InputError(f"{name}: {shortened(strange[0])} is not a number.")
    return np.array([float(cell) for cell in cells], dtype=np.float64)


def parquet_columns(path: Path) -> Columns:
    """The cells of each column as text; equal texts are one object, so a long one takes its memory once."""
    with needs_extra("Reading parquet", package="pyarrow", extra="tables"):
        import pyarrow as arrow
        import pyarrow.parquet
    place, types, texts = str(path), arrow.types, []
    check_memory(file_size(path), place=place, what="the file takes")
    with guarded(path, what="a complete parquet file"):
        schema = pyarrow.parquet.read_schema(path)
        _refuse_twice(schema.names, path)
        for name, kind in zip(schema.names, schema.types, strict=True):
            if types.is_nested(kind):
                raise InputError(f"{path}: the column {shortened(name)} holds lists; a table has one value per cell.")
            entry = kind.value_type if types.is_dictionary(kind) else kind
            if types.is_string(entry) or types.is_large_string(entry):
                texts += [name] * (kind is entry)
            elif kind is not entry or not any(getattr(types, f"is_{one}")(kind) for one in _NUMERIC):
                raise InputError(f"{path}: the column {shortened(name)} is of type {kind}; save text or numbers.")
        # equal texts stay one entry of a dictionary, as they are in the file
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            unpacked = sum(max(0, group.total_byte_size) for group in groups)  # as it says itself
            cells = max(0, file.metadata.num_rows) * file.metadata.num_columns
            check_memory(unpacked + _POINTER * cells, place=place, what="its columns unpack to")
            columns: Columns = {name: [] for name in schema.names}
            budget = _Budget(place)
            for batch in file.iter_batches(batch_size=_ROWS, use_threads=False):
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    columns[name] += budget.cells(column)
    if not columns or not next(iter(columns.values())):
        raise InputError(f"{path}: the table has no rows.")
    return columns


class _Budget:
    """Counts what cells take while they are read: what a file says about itself may be too little."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._taken = 0
        self._texts: dict[str, str] = {}

    def cells(self, column: Any) -> list[str]:
        """The cells of one part of a column."""
        if not hasattr(column, "dictionary"):
            self._take(_OF_CELL * len(column))
            return [_text(value) for value in column.to_pylist()]
        entries = [_text(value) for value in column.dictionary.to_pylist()]
        new = sum(_OF_CELL + 4 * len(text) for text in set(entries) - self._texts.keys())
        self._take(column.dictionary.nbytes + _POINTER * len(column) + new)
        entries = [self._texts.setdefault(text, text) for text in entries]  # the same object for equal texts
        return ["" if at is None else entries[at] for at in column.indices.to_pylist()]

    def _take(self, more: int) -> None:
        self._taken += more
        check_memory(self._taken, place=self._place, what="its cells take more than")


def _text(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value).strip()


class TextTable(NamedTuple):
    """The columns of a file, each cell as text without spaces around it."""

    columns: Columns  # [N] cells by the name of the column
    separator: str = ","  # between the cells of a row; a comma for parquet
    foreign: bool = False  # whether the file is not UTF-8 and was read as Windows-1252


def read_text_table(path: Path, *, names: Sequence[str] | None = None, separator: str | None = None) -> TextTable:
    """The columns of a parquet or text file; ``names`` of them if a text file's first line is already a record."""
    if path.suffix.lower() == ".parquet":
        return TextTable(columns=parquet_columns(path))
    with guarded(path, what="a text table"):
        return _from_text(path, names, separator)


def _from_text(path: Path, names: Sequence[str] | None, separator: str | None) -> TextTable:
    text, foreign = _decoded(path)
    if excel := re.match(r"sep=(.)\r?\n", text):  # a line that tells a spreadsheet what separates cells
        separator, text = separator or excel[1], text[excel.end() :]
    separator = separator or _separator(text, names)
    cells = text.count(separator) + text.count("\n") + text.count("\r") + 1
    check_memory(2 * len(text) + cells * _OF_CELL, place=str(path), what="its cells may take")
    try:
        reader = _rows(text, separator)
        rows = [(reader.line_num, row) for row in reader if any(row)]
    except csv.Error as error:
        raise InputError(f"{path}: is not a text table: {error}.") from error
    whose, header = "there are names for", list(names or ())
    if names is None and rows:
        whose, header = "the header has", [name.strip() for name in rows.pop(0)[1]]
    if not rows:
        raise InputError(f"{path}: the table has no rows.")
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}: line {line} has {len(row)} fields, but {whose} {len(header)}.")
    header = [name or f"column {place}" for place, name in enumerate(header, start=1)]
    _refuse_twice(header, path)
    cut = ([cell.strip() for cell in column] for column in zip(*(row for _, row in rows), strict=True))
    return TextTable(columns=dict(zip(header, cut, strict=True)), separator=separator, foreign=foreign)


def _refuse_twice(header: Sequence[str], path: Path) -> None:
    if twice := [name for name, count in Counter(header).items() if count > 1]:
        raise InputError(f"{path}: the column {shortened(twice[0])} is there twice; give each column its own name.")


def _rows(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)


def _separator(text: str, names: Sequence[str] | None) -> str:
    """The separator that gives every row of a sample the same number of cells, and the most."""
    found: dict[str, tuple[bool, int]] = {}
    for one in _SEPARATORS:
        with suppress(csv.Error):
            widths = [len(row) for row in itertools.islice(_rows(text, one), _SAMPLE) if row]
            wanted = widths[0] if names is None and widths else len(names or ())
            found[one] = (wanted > 1 and set(widths) == {wanted}, widths[0] if widths else 0)
    return max(found, key=lambda one: found[one], default=",")  # the first of equals


def _decoded(path: Path) -> tuple[str, bool]:
    content = read_content(path, times=2)
    if b"\x00" in content:
        raise InputError(f"{path}: is not a text table: it holds zero bytes. Save it as CSV with UTF-8.")
    with suppress(UnicodeDecodeError):
        return content.decode("utf-8-sig"), False
    try:  # spreadsheets on Windows write this; at worst some letters are wrong, and equal cells stay equal
        return content.decode("cp1252"), True
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not a text table: {error}. Save it as CSV with UTF-8.") from error
