"""The files that a run's own list, ``run.json``, describes: what may be replaced or removed, and what is the user's."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

__all__ = ["MADE_AGAIN", "digest", "not_ours", "remove_run", "strange_file"]

# files that a run's list leaves out: each can be written again from the others
MADE_AGAIN = ("report.html", "run.json", "appendix.html", "appendix.md")


def digest(path: Path) -> str:
    """SHA-256 of a file's content, as ``run.json`` keeps it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def not_ours(folder: Path) -> str:
    """The first thing in a folder that its ``run.json`` does not describe; empty if it describes all."""
    listed = _listed(folder / "run.json")
    if listed is None:
        return f"{folder}: is not a run of Glasshouse (it has no run.json that lists its files)"
    if strange := strange_file(folder):
        return strange
    for path in sorted(folder.iterdir()):
        if path.name in listed and digest(path) != listed[path.name]:
            return f"{path}: was changed since the run wrote it"
    return ""


def strange_file(folder: Path) -> str:
    """The first file in a run's folder that its list does not name; empty if it names all. No file is read."""
    listed = _listed(folder / "run.json") or {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            return f"{path}: is not a file that a run writes"
        if path.name not in listed and path.name not in MADE_AGAIN:
            return f"{path}: is not a file of the run"
    return ""


def remove_run(folder: Path) -> bool:
    """Remove a run file by file, its list last; anything else in the folder stays, and the folder with it.

    Returns:
        False, with nothing removed, if the folder has no list of a run's files.
    """
    listed = _listed(folder / "run.json")
    if listed is None:
        return False
    for name in [*listed, *MADE_AGAIN]:
        (folder / Path(name).name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty: something else is in it; or another process was faster
        folder.rmdir()
    return True


def _listed(manifest: Path) -> dict[str, str] | None:
    """Digest by name of the files that a ``run.json`` lists, in any format that lists them; None if it does not."""
    if manifest.is_symlink() or not manifest.is_file():
        return None
    try:
        found = json.loads(manifest.read_bytes())
        if not isinstance(found["format"], int) or "metrics.json" not in found["files"]:
            return None
        return {str(name): str(known["sha256"]) for name, known in found["files"].items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
