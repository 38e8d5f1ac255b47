"""Files and folders that are complete or absent: written beside their final place, synced, then renamed into it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from glasshouse.errors import InputError

__all__ = [
    "MADE_AGAIN",
    "PAGE_MARK",
    "check_free",
    "check_page",
    "clean_leftovers",
    "digest",
    "new_folder",
    "write_file",
]

# files that a run's list leaves out: each can be written again from the others
MADE_AGAIN = ("report.html", "run.json", "appendix.html", "appendix.md")
PAGE_MARK = " · Glasshouse</title>"  # near the start of every page that Glasshouse writes
_UNFINISHED = ".unfinished-"


def write_file(path: Path | str, content: bytes | str) -> Path:
    """Write a file so that a reader finds the old content or the new one, never a part.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_file(Path(folder) / "note.txt", "kept").read_text()
        'kept'
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    with _said_clearly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}{_UNFINISHED}")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o666 & ~_umask())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    return path


@contextlib.contextmanager
def new_folder(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends without an error.

    Args:
        path: where it will be. A folder that is not empty is refused unless ``overwrite``.
        overwrite: replace an earlier run, in the same last step; a folder with anything else is refused.

    Example:
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with new_folder(Path(home) / "run") as folder:
        ...         _ = (folder / "a.txt").write_text("a")
        ...     sorted(p.name for p in (Path(home) / "run").iterdir())
        ['a.txt']
    """
    path = _real(path)
    check_free(path, overwrite=overwrite)
    with _said_clearly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            yield building
            building.chmod(0o777 & ~_umask())
            if path.exists():
                check_free(path, overwrite=overwrite)  # another program may have put a file there in the meantime
                old = building.with_name(building.name + ".old")
                path.rename(old)
                building.rename(path)
                _remove_run(old)
            else:
                building.rename(path)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise


def clean_leftovers(folder: Path) -> None:
    """Remove the temporary files that a killed `write_file` left in a folder; no process may be writing there."""
    for path in folder.glob(f".*{_UNFINISHED}*"):
        path.unlink(missing_ok=True)


def check_free(path: Path | str, *, overwrite: bool = False) -> None:
    """Refuse a place that `new_folder` would refuse: call it before the long work, not after.

    With ``overwrite``, a folder is replaced only if its ``run.json`` lists every file in it, unchanged. A file that is
    not listed, or was changed, belongs to the user, and the folder stays.
    """
    path = _real(path)
    with _said_clearly(path):
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; give a folder to write the run into.")
        if path.exists() and any(path.iterdir()):
            if not overwrite:
                raise InputError(
                    f"{path}: already holds something. Choose another folder, or overwrite it (--overwrite)."
                )
            if fault := _not_ours(path):
                raise InputError(f"{fault}, so the folder is not overwritten. Choose another, or delete it yourself.")
        _probe(path.parent, name=path.name)


def check_page(path: Path | str) -> None:
    """Refuse to write a page over a file that is not a page of Glasshouse."""
    path = Path(path)
    with _said_clearly(path):
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give a file for the page, such as {path / 'report.html'}.")
        if path.exists() and path.stat().st_size and PAGE_MARK.encode() not in path.read_bytes()[:4096]:
            raise InputError(f"{path}: is not a page of Glasshouse, so it is not overwritten. Choose another file.")


def digest(path: Path) -> str:
    """SHA-256 of a file's content, as ``run.json`` keeps it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _not_ours(folder: Path) -> str:
    """The first thing in a folder that its ``run.json`` does not describe; empty if it describes all."""
    listed = _listed(folder / "run.json")
    if listed is None:
        return f"{folder}: is not a run of Glasshouse (it has no run.json that lists its files)"
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            return f"{path}: is not a file that a run writes"
        if path.name in MADE_AGAIN:
            continue
        if path.name not in listed:
            return f"{path}: is not a file of the run"
        if digest(path) != listed[path.name]:
            return f"{path}: was changed since the run wrote it"
    return ""


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


def _remove_run(folder: Path) -> None:
    """Remove an old run file by file: anything else in the folder stays, and the folder with it."""
    for name in [*(_listed(folder / "run.json") or ()), *MADE_AGAIN]:
        (folder / Path(name).name).unlink(missing_ok=True)
    folder.rmdir()


def _probe(folder: Path, *, name: str) -> None:
    """Try to make a folder where one will be made; permissions alone do not show a full or read-only disk."""
    while not folder.exists():
        folder, name = folder.parent, folder.name
    Path(tempfile.mkdtemp(dir=folder, prefix=f".{name}.")).rmdir()


def _real(path: Path | str) -> Path:
    """The folder itself if the path is a link to it, so that the link stays."""
    path = Path(path)
    return path.resolve() if path.is_symlink() else path


@contextlib.contextmanager
def _said_clearly(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}. Nothing was left behind.") from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
