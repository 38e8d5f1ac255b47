"""The files of one experiment: a table per data set and part, and beside it how that table was made."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from glasshouse import InputError
from glasshouse.auditing.steps import library_versions
from glasshouse.core.table import Table
from glasshouse.io.files import write_file
from glasshouse_experiments.settings import Preset
from glasshouse_experiments.source_commit import source_commit

__all__ = ["Kept", "provenance", "stacked_tables"]

_ALWAYS = {"table", "dataset", "mode", "K", "setting", "attack", "metric", "mean", "std"}  # columns of every table
_NUMBERS = {"mean", "std", "paper_mean", "paper_std", "difference_sd", "rival_mean", "rival_std"}


class Kept(NamedTuple):
    """Where one data set of an experiment is kept, and one part of it if the experiment has parts.

    Args:
        folder: of the experiment.
        dataset: its name.
        part: name of the part; empty for an experiment without parts, and for its first part.

    Example:
        >>> Kept(Path("results/table-1"), "cora", "many").path.name
        'cora-many.csv'
    """

    folder: Path
    dataset: str
    part: str = ""

    @property
    def path(self) -> Path:
        """Its table; written last, so it shows that the other files are complete."""
        return self.folder / f"{self.dataset}{'-' if self.part else ''}{self.part}.csv"

    @property
    def exists(self) -> bool:
        """Whether it was run."""
        return self.path.exists()

    @property
    def note(self) -> str:
        """What differs from the paper, as the run wrote it."""
        path = self.path.with_suffix(".json")
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["note"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}: is missing or damaged. Delete it and {self.path.name} beside it to run it again."
            ) from error

    def rows(self) -> list[dict[str, Any]]:
        """Its table, row by row."""
        try:
            found = list(csv.DictReader(self.path.read_text(encoding="utf-8").splitlines()))
            rows = [row | {key: float(row[key]) for key in _NUMBERS & row.keys()} for row in found]
        except (OSError, ValueError, TypeError, csv.Error) as error:
            raise InputError(f"{self.path}: is missing or damaged: {error}. Delete it to run it again.") from error
        if not rows or not rows[0].keys() >= _ALWAYS:
            raise InputError(f"{self.path}: does not hold what this experiment writes. Delete it to run it again.")
        return rows

    def write(self, table: Table, *, made: dict[str, object], picture: str | None = None) -> None:
        """Keep a table, how it was made, and its picture."""
        if picture is not None:
            write_file(self.path.with_suffix(".svg"), picture)
        write_file(self.path.with_suffix(".json"), json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        write_file(self.path, table.to_csv())


def stacked_tables(kept: Sequence[Kept]) -> Table:
    """The kept tables, one below the other."""
    rows: list[dict[str, Any]] = []
    for one in kept:
        found = one.rows()
        if rows and found[0].keys() != rows[0].keys():
            raise InputError(f"{one.path}: does not hold what this experiment writes. Delete it to run it again.")
        rows += found
    return Table({key: [row[key] for row in rows] for key in rows[0]})


def provenance(note: str, preset: str, size: Preset, seed: int, seconds: float) -> dict[str, object]:
    """How a table was made: what was asked for, by which code, on which machine and in which time."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{torch.get_num_threads()} CPU threads"
    return {
        "preset": preset,
        "targets": size.targets,
        "most_shadows": size.most_shadows,
        "seed": seed,
        "commit": source_commit(),
        "seconds": round(seconds, 1),
        "machine": f"{platform.machine()}, {device}",
        "versions": library_versions("torch-geometric", "numba"),
        "note": note,
    }
