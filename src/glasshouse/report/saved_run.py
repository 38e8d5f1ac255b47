"""A run with its records: as an audit gives it, or read back from its folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from glasshouse.errors import InputError
from glasshouse.population import as_ids
from glasshouse.reading import check_memory, guarded, read_content
from glasshouse.report.folder import read_run
from glasshouse.report.summarise import Summary
from glasshouse.store import found_run
from glasshouse.table import Table
from glasshouse.visible import plain_cell

__all__ = ["Run", "SavedRun", "read_run_with_records"]

_OF_CELL = 80  # bytes that Python needs for a cell besides its letters
_TRUTH = {"True": True, "False": False}


class Run(Protocol):
    """What a comparison needs of a run; `glasshouse.AuditResult` and `SavedRun` have it."""

    def summary(self) -> Summary:
        """The figures."""
        ...

    def records(self) -> Table:
        """One row per record: ``id``, ``member`` if it is known, and a column ``…_score`` for each attack."""
        ...


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run that was read back.

    Args:
        figures: its summary.
        scores: one row per record: ``id``, ``member`` if it is known, and a column ``…_score`` for each attack.
    """

    figures: Summary
    scores: Table

    def summary(self) -> Summary:
        """The figures."""
        return self.figures

    def records(self) -> Table:
        """One row per record."""
        return self.scores


def read_run_with_records(folder: Path | str) -> SavedRun:
    """A run that `AuditResult.save` wrote, with the score of every record; an incomplete run is refused.

    Example:
        >>> read_run_with_records("no/such/run")
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such/run: there is no such run folder.
    """
    summary = read_run(folder)  # every file that the run lists is there, and unchanged
    path = found_run(folder) / "records.csv"
    again = "Copy the complete folder, or run the audit again."
    content = read_content(path, times=3, missing=f"is missing or cannot be read. {again}")
    with guarded(path, what="the records of a run", advice=again), _placed(path):
        text = content.decode("utf-8")
        check_memory(2 * len(text) + _OF_CELL * text.count(","), place=str(path), what="its cells may take")
        rows = csv.reader(io.StringIO(text, newline=""))
        names = [plain_cell(name) for name in next(rows, [])]
        if len(set(names)) < len(names):
            raise ValueError("a column is there twice")
        kept = [at for at, name in enumerate(names) if name in ("id", "member") or name.endswith("_score")]
        cells = [[row[at] for at in kept] for row in rows]
        if len(cells) != summary.records or "id" not in names:
            raise ValueError(f"{len(cells)} records and no column id, or not the {summary.records} of metrics.json")
        columns = zip(*cells, strict=True)
        return SavedRun(summary, Table({names[at]: _column(names[at], c) for at, c in zip(kept, columns, strict=True)}))


@contextmanager
def _placed(path: Path) -> Iterator[None]:
    """A fault of the ids under the name of the file."""
    try:
        yield
    except InputError as error:
        named = [fault if fault.startswith(str(path)) else f"{path}: {fault}" for fault in error.faults]
        raise InputError(*named) from error


def _column(name: str, cells: tuple[str, ...]) -> np.ndarray:
    if name == "id":
        return as_ids([plain_cell(cell) for cell in cells], len(cells), place="id")
    if name == "member":
        return np.array([_TRUTH[cell] for cell in cells], dtype=np.bool_)
    scores = np.array([float(cell) for cell in cells], dtype=np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"{name} holds NaN")
    return scores
