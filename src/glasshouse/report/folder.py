"""A run's folder: its files, whether it is complete, and its summary read back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError, shortened
from glasshouse.reading import guarded, read_json
from glasshouse.report.checking import check_summary
from glasshouse.report.plain import FORMAT, moment, summary_from
from glasshouse.report.summarise import Summary
from glasshouse.store import MADE_AGAIN, digest, found_run

__all__ = ["manifest", "read_manifest", "read_run", "written_at"]

_LONGEST_NAME = 100
_AGAIN = "Copy the complete folder, or run the audit again."


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    r"""Size and digest of every file of a run, for ``run.json``: they show whether a folder is complete or damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     _ = (Path(place) / "roc.csv").write_text("attack\n")
        ...     manifest(Path(place))["roc.csv"]["bytes"]
        7
    """
    paths = sorted(path for path in folder.iterdir() if path.name not in MADE_AGAIN)
    return {path.name: {"bytes": path.stat().st_size, "sha256": digest(path)} for path in paths}


def read_run(folder: Path | str) -> Summary:
    """The summary of a run that `AuditResult.save` wrote; an incomplete run is refused, with each faulty file.

    Example:
        >>> read_run("no/such/run")
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such/run: there is no such run folder.
    """
    folder = found_run(folder)
    with guarded(folder, what="the folder of a run"):
        if not folder.is_dir():
            what = "is a file; give the folder of a run." if folder.exists() else "there is no such run folder."
            raise InputError(f"{folder}: {what}")
    run = _read(folder / "run.json")
    _check_files(folder, run.get("files"))
    metrics = _read(folder / "metrics.json")
    with guarded(folder / "metrics.json", what="a run's figures", advice=_AGAIN):
        try:
            summary = summary_from(metrics, run)
            check_summary(summary)
        except KeyError as error:
            raise InputError(f"{folder / 'metrics.json'}: is damaged: {error} is missing. {_AGAIN}") from error
        except InputError as error:
            raise InputError(
                *[f"{folder / 'metrics.json'}: is damaged: {one} {_AGAIN}" for one in error.faults]
            ) from None
    return summary


def read_manifest(folder: Path | str) -> Mapping[str, Any]:
    """What ``run.json`` of a run says, as it is.

    Example:
        >>> read_manifest("no/such/run")
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such/run/run.json: is missing, so this is not a complete run of Glasshouse. ...
    """
    return _read(found_run(folder) / "run.json")


def written_at(folder: Path | str) -> datetime | None:
    """When a run was saved; None if it does not say so, as runs of earlier versions do not.

    Example:
        >>> written_at("no/such/run")
        Traceback (most recent call last):
        glasshouse.errors.InputError: no/such/run/run.json: is missing, so this is not a complete run of Glasshouse. ...
    """
    told = read_manifest(folder).get("written")
    with guarded(f"{found_run(folder) / 'run.json'}: written", what="a date", advice=_AGAIN):
        return moment(told)


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
    return found


def _check_files(folder: Path, files: object) -> None:
    """Check that every file that the run wrote is there and unchanged; all faults at once."""
    if not isinstance(files, dict) or "metrics.json" not in files:
        raise InputError(f"{folder / 'run.json'}: is damaged: it does not list the run's files. {_AGAIN}")
    faults = []
    for name, known in files.items():
        path = folder / name
        if Path(name).name != name or len(name) > _LONGEST_NAME:
            faults.append(
                f"{folder / 'run.json'}: is damaged: it lists {shortened(name)}, which is not a file of a run."
            )
        elif not path.is_file():
            faults.append(f"{path}: is missing, so this is not a complete run of Glasshouse. {_AGAIN}")
        elif not isinstance(known, dict) or known.get("sha256") != digest(path):
            faults.append(f"{path}: was damaged or edited after the audit wrote it. {_AGAIN}")
    if faults:
        raise InputError(*faults)
