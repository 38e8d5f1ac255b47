"""Files and folders that are whole or not there: written beside their place, synced, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from glasshouse.errors import InputError

_UNFINISHED = ".unfinished-"

__all__ = ["check_free", "clean_leftovers", "new_folder", "write_file"]


def write_file(path: Path | str, content: bytes | str) -> Path:
    """Write a file so that a reader finds the old content or the new, never a part.

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
        path: where it will be. A folder with something in it is refused unless ``overwrite``.
        overwrite: replace what is there, in the same last step.

    Example:
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with new_folder(Path(home) / "run") as folder:
        ...         _ = (folder / "a.txt").write_text("a")
        ...     sorted(p.name for p in (Path(home) / "run").iterdir())
        ['a.txt']
    """
    path = Path(path)
    check_free(path, overwrite=overwrite)
    with _said_clearly(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        try:
            yield building
            building.chmod(0o777 & ~_umask())
            if path.exists():
                old = building.with_name(building.name + ".old")
                path.rename(old)
                building.rename(path)
                shutil.rmtree(old)
            else:
                building.rename(path)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise


def clean_leftovers(folder: Path) -> None:
    """Remove the temporary files that a killed `write_file` left in a folder; nobody may be writing there."""
    for path in folder.glob(f".*{_UNFINISHED}*"):
        path.unlink(missing_ok=True)


def check_free(path: Path | str, *, overwrite: bool = False) -> None:
    """Refuse a place that `new_folder` would refuse: ask before the long work, not after it."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file; give a folder to write the run into.")
    if path.exists() and any(path.iterdir()):
        if not overwrite:
            raise InputError(f"{path}: already holds something. Choose another folder, or overwrite it (--overwrite).")
        if not (path / "metrics.json").exists():
            raise InputError(f"{path}: is not a run of Glasshouse (no metrics.json), so it is not overwritten.")


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
