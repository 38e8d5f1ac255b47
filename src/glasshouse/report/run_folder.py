"""A run's folder: its files, whether it is complete, and its summary and records read back."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from glasshouse.core.errors import InputError, raise_faults, shortened
from glasshouse.core.escape import plain_cell
from glasshouse.core.table import Table
from glasshouse.data import as_ids
from glasshouse.io.files import MADE_AGAIN, digest, found_run, strange_file, write_file
from glasshouse.io.guarded import guarded, read_content, read_json
from glasshouse.io.limits import check_memory
from glasshouse.report.advice import Advice
from glasshouse.report.json_io import FORMAT, advice_json, check_summary, moment, summary_from
from glasshouse.report.summary import Summary

_OWN = "run_sha256"  # of run.json itself, without this entry
_LONGEST_NAME = 100
MOST_SEARCHED = 50_000  # records that a page can search: about 3 MB
_AGAIN = "Copy the complete folder, or run the audit again."


def listed(run: Mapping[str, Any], folder: Path) -> str:
    """The text of ``run.json``: what it says, every file of the folder with its digest, and a checksum of all this."""
    return _with_checksum({**run, "files": manifest(folder)})


def list_page(page: Path) -> None:
    """Give a page that was made again in the folder of its run its new digest in ``run.json``."""
    path = page.parent / "run.json"
    if path.is_file():
        run = _read(path)
        write_file(path, _with_checksum({**run, "files": run["files"] | manifest(page.parent, only=page.name)}))


def keep_advice(folder: Path | str, advice: Advice) -> None:
    """Keep measured defences with the run of the model that they are for."""
    path = found_run(folder) / "run.json"
    write_file(path, _with_checksum({**_read(path), "advice": advice_json(advice)}))


def run_faults(folder: Path | str) -> list[str]:
    """What is damaged, changed, missing or foreign in a run's folder, a line each; pages count too."""
    folder = found_run(folder)
    try:
        run = _read(folder / "run.json")
        if _OWN not in run:  # a run can be read without it; but then nothing shows whether its list was changed
            raise InputError(f"{folder / 'run.json'}: has no checksum, so it was damaged or edited. {_AGAIN}")
        _check_files(folder, run.get("files"), pages=True)
        read_run(folder)
    except InputError as error:
        return list(error.faults)
    pages = [folder / name for name in MADE_AGAIN if name != "run.json" and name not in run["files"]]
    strange = strange_file(folder) or next((f"{page}: is not a file of the run" for page in pages if page.exists()), "")
    return [f"{strange}."] if strange else []


def _with_checksum(run: Mapping[str, Any]) -> str:
    return json.dumps({**run, _OWN: _checksum(run)}, indent=2) + "\n"


def _checksum(run: Mapping[str, Any]) -> str:
    told = {name: value for name, value in run.items() if name != _OWN}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def manifest(folder: Path, *, only: str = "*") -> dict[str, dict[str, Any]]:
    """Size and digest of every file of a run, for ``run.json``: they show whether a folder is complete or damaged."""
    paths = sorted(path for path in folder.glob(only) if path.name != "run.json" and path.is_file())
    return {path.name: {"bytes": path.stat().st_size, "sha256": digest(path)} for path in paths}


def read_run(folder: Path | str) -> Summary:
    """The summary of a run that `AuditResult.save` wrote; an incomplete run is refused, with each faulty file.

    Example:
        >>> read_run("no/such/run")
        Traceback (most recent call last):
        glasshouse.InputError: no/such/run: there is no such run folder.
    """
    folder = found_run(folder)
    with guarded(folder, what="the folder of a run"):
        if not folder.is_dir():
            what = "is a file; give the folder of a run." if folder.exists() else "there is no such run folder."
            raise InputError(f"{folder}: {what}")
    run = _read(folder / "run.json")
    if "written" in run:
        with guarded(f"{folder / 'run.json'}: written", what="a date", advice=_AGAIN):
            moment(run["written"])
    _check_files(folder, run.get("files"))
    metrics = _read(folder / "metrics.json")
    with guarded(folder / "metrics.json", what="a run's figures", advice=_AGAIN):
        try:
            summary = summary_from(metrics, run)
            check_summary(summary)
        except KeyError as error:
            faults = [f"{error} is missing."]
        except InputError as error:
            faults = list(error.faults)
        else:
            return summary
        raise InputError(*[f"{folder / 'metrics.json'}: is damaged: {fault} {_AGAIN}" for fault in faults])


def read_manifest(folder: Path | str) -> Mapping[str, Any]:
    """What ``run.json`` of a run says, as it is."""
    return _read(found_run(folder) / "run.json")


def _read(path: Path) -> Mapping[str, Any]:
    """A JSON file of this format."""
    found = read_json(path, advice=_AGAIN, missing=f"is missing, so this is not a complete run of Glasshouse. {_AGAIN}")
    if "format" not in found:
        raise InputError(f"{path}: is damaged: it does not name its format. {_AGAIN}")
    if found["format"] != FORMAT:
        raise InputError(
            f"{path}: has format {shortened(found['format'], most=20)}, but this version reads format {FORMAT}. Run "
            f"the audit again, or use the version of Glasshouse that wrote it."
        )
    if found.get(_OWN, _checksum(found)) != _checksum(found):
        raise InputError(f"{path}: was damaged or edited after the audit wrote it. {_AGAIN}")
    return found


def _check_files(folder: Path, files: object, *, pages: bool = False) -> None:
    """Refuse files that are missing or changed, all faults at once; pages, made from the others, only if asked for."""
    if not isinstance(files, dict) or "metrics.json" not in files:
        raise InputError(f"{folder / 'run.json'}: is damaged: it does not list the run's files. {_AGAIN}")
    faults = []
    for name, known in files.items():
        path = folder / name
        if name in MADE_AGAIN and not pages:
            continue
        if Path(name).name != name or len(name) > _LONGEST_NAME:
            told = f"is damaged: it lists {shortened(name)}, which is not a file of a run."
            faults.append(f"{folder / 'run.json'}: {told}")
            continue
        with guarded(shortened(str(path), most=200, quoted=False), what="a file of a run", advice=_AGAIN):
            if not path.is_file():
                faults.append(f"{path}: is missing, so this is not a complete run of Glasshouse. {_AGAIN}")
            elif not isinstance(known, dict) or known.get("sha256") != digest(path):
                faults.append(f"{path}: was damaged or edited after the audit wrote it. {_AGAIN}")
    raise_faults(faults)


_OF_CELL = 80  # bytes that Python needs for a cell besides its letters
_TRUTH = {"True": True, "False": False}


class Run(Protocol):
    """What a comparison needs of a run; `glasshouse.AuditResult` and `SavedRun` have it."""

    def summary(self) -> Summary:
        """The figures."""

    def records(self) -> Table:
        """One row per record: ``id``, ``member`` if it is known, and a column ``…_score`` for each attack."""


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run that was read back."""

    figures: Summary
    scores: Table  # one row per record: ``id``, ``label`` and ``member`` if known, and ``…_score`` of each attack

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
        glasshouse.InputError: no/such/run: there is no such run folder.
    """
    summary = read_run(folder)  # every file that the run lists is there, and unchanged
    path = found_run(folder) / "records.csv"
    content = read_content(path, times=3, missing=f"is missing or cannot be read. {_AGAIN}")
    with guarded(path, what="the records of a run", advice=_AGAIN):
        text = content.decode("utf-8")
        check_memory(2 * len(text) + _OF_CELL * text.count(","), place=str(path), what="its cells may take")
        rows = csv.reader(io.StringIO(text, newline=""))
        names = [plain_cell(name) for name in next(rows, [])]
        if len(set(names)) < len(names):
            raise ValueError("a column is there twice")
        kept = [at for at, name in enumerate(names) if name in ("id", "label", "member") or name.endswith("_score")]
        cells = [[row[at] for at in kept] for row in rows]
        if len(cells) != summary.records or "id" not in names:
            raise ValueError(f"{len(cells)} records and no column id, or not the {summary.records} of metrics.json")
        named = zip((names[at] for at in kept), zip(*cells, strict=True), strict=True)
        return SavedRun(summary, Table({name: _column(name, column, path) for name, column in named}))


def searched_records(folder: Path | str, summary: Summary) -> Table | None:
    """The records that the page of a run searches; None where it lists none, or there are too many for a page."""
    fits = summary.top_records.height and summary.records <= MOST_SEARCHED
    return read_run_with_records(folder).records() if fits else None


def _column(name: str, cells: tuple[str, ...], path: Path) -> np.ndarray:
    if name == "label":
        return np.array([plain_cell(cell) for cell in cells], dtype=np.str_)
    if name == "id":
        return as_ids([plain_cell(cell) for cell in cells], len(cells), place=f"{path}: id")
    if name == "member":
        return np.array([_TRUTH[cell] for cell in cells], dtype=np.bool_)
    scores = np.array([float(cell) for cell in cells], dtype=np.float64)
    if np.isnan(scores).any():
        raise ValueError(f"{name} holds NaN")
    return scores
