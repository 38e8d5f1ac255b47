"""Unfinished files and folders: under names of their own, locked while their process lives, removed once it is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glasshouse.store.listing import remove_run

__all__ = ["aside", "clean_leftovers", "locked", "remove_folder", "set_aside", "unfinished_file", "unfinished_folder"]

_UNFINISHED, _ASIDE = "glasshouse-unfinished", "glasshouse-replaced"
_OURS = re.compile(rf"\.(.+)\.({_UNFINISHED}|{_ASIDE})-[a-z0-9_]{{8}}", re.DOTALL)
_OLDER = re.compile(r"\..+\.unfinished-[a-z0-9_]{8}", re.DOTALL)  # files only: earlier versions named them so
_TRIES = 5


@contextlib.contextmanager
def unfinished_file(path: Path) -> Iterator[tuple[int, Path]]:
    """An open file beside its final place; whatever happens in the block, nothing stays under the unfinished name."""
    for _ in range(_TRIES):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
        try:
            if _lock(handle) and not _is_at(handle, name):
                continue  # another process took the new file for a leftover before it was locked
            yield handle, Path(name)
            return
        finally:
            os.close(handle)
            with contextlib.suppress(OSError):
                Path(name).unlink(missing_ok=True)
    raise _taken_away(path)


@contextlib.contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """A new folder beside its final place, locked while the block runs; the block removes or renames it."""
    for _ in range(_TRIES):
        building = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path)))
        with locked(building) as handle:
            if handle is not None and not _is_at(handle, building):
                continue
            yield building
            return
    raise _taken_away(path)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int | None]:
    """Hold a folder's lock while the block runs, as far as the system has such locks: a killed process holds none."""
    try:
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:  # Windows opens no folders
        yield None
        return
    try:
        _lock(handle)
        yield handle
    finally:
        os.close(handle)


def set_aside(path: Path) -> Path:
    """Rename a folder out of the way, under a name by which `aside` finds it again."""
    free = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.{_ASIDE}-"))
    free.rmdir()
    path.rename(free)
    return free


def aside(path: Path) -> Path | None:
    """The folder that `set_aside` took from this place, if nothing is in its place now."""
    if os.path.lexists(path):
        return None
    found = [one for one, (name, kind) in _ours(path.parent) if kind == _ASIDE and name == path.name]
    return found[0] if found else None


def clean_leftovers(folder: Path) -> None:
    """Remove what killed processes left unfinished in a folder, and put back a run that one had set aside.

    Only what has one of our names, belongs to this user, and is not locked: a process that still writes holds a lock.
    """
    for path, (name, kind) in _ours(folder):
        with contextlib.suppress(OSError), _abandoned(path) as ours:
            if ours and kind == _ASIDE and not os.path.lexists(folder / name):
                path.rename(folder / name)
            elif ours and path.is_dir():
                remove_folder(path)
            elif ours:
                path.unlink()


def remove_folder(folder: Path) -> None:
    """Remove an unfinished folder, or a run file by file: a file that the run does not list stays, and the folder."""
    if not remove_run(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _taken_away(path: Path) -> OSError:
    return OSError(errno.EAGAIN, "other programs remove new files there", str(path.parent))


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}.{_UNFINISHED}-"  # cut, so that a long name with this one's ending is still a name


def _ours(folder: Path) -> list[tuple[Path, tuple[str, str]]]:
    """Paths that have a name of ours, with the place that they were meant for and what they are."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 (names alone, without an object for each)
    except OSError:
        return []
    found = []
    for name in names:
        if match := _OURS.fullmatch(name):
            found.append((folder / name, (match[1], match[2])))
        elif _OLDER.fullmatch(name) and not (folder / name).is_dir():
            found.append((folder / name, (name, _UNFINISHED)))
    return found


@contextlib.contextmanager
def _abandoned(path: Path) -> Iterator[bool]:
    """Whether a file or folder is this user's and no living process holds it; ours while the block runs."""
    access = os.O_RDONLY if path.is_dir() else os.O_RDWR  # network disks lock only what is open for writing
    handle = os.open(path, access | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        known = os.fstat(handle)
        plain = stat.S_ISDIR(known.st_mode) or stat.S_ISREG(known.st_mode)
        yield plain and _lock(handle) is True and known.st_uid == os.geteuid()
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the lock is ours now; None where the system or the disk has no such locks."""
    fcntl = _fcntl()
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network disks
        return None
    return True


def _is_at(handle: int, path: Path | str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _fcntl() -> Any:
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    return fcntl
