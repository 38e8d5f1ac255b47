"""A folder that is complete or absent: filled under a name of its own, and put in its place in one step."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.store.exchange import exchange
from glasshouse.store.leftovers import locked, remove_folder, set_aside, unfinished_folder
from glasshouse.store.listing import strange_file
from glasshouse.store.modes import folder_mode, make_folders, sync_folder
from glasshouse.store.places import check_free, is_free, real_place
from glasshouse.store.writing import NOTHING_LEFT, said_clearly

__all__ = ["new_folder"]

_LOG = logging.getLogger("glasshouse")
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_TRIES = 5


@contextlib.contextmanager
def new_folder(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends without an error.

    A process that is killed, at any moment, leaves the earlier run or the new one, complete and under its name. What it
    left unfinished is removed by the next call for a folder in the same place.

    Args:
        path: where it will be. A folder that is not empty is refused unless ``overwrite``.
        overwrite: replace an earlier run, in one step; a folder with anything else is refused.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     with new_folder(Path(home) / "run") as folder:
        ...         _ = (folder / "a.txt").write_text("a")
        ...     sorted(p.name for p in (Path(home) / "run").iterdir())
        ['a.txt']
    """
    check_free(path, overwrite=overwrite)
    path = real_place(path)
    earlier = not is_free(path)
    kept = "The earlier run there is unchanged." if earlier else NOTHING_LEFT
    with said_clearly(path, kept=kept):
        make_folders(path.parent)
        with unfinished_folder(path) as building:
            try:
                yield building
                building.chmod(folder_mode())
                sync_folder(building)
                replaced = _put(building, path, overwrite=overwrite)
                sync_folder(path.parent)  # before the earlier run goes: a crash must not leave neither
            except InputError as error:  # of a file in the folder: say it under the name that the file would have
                remove_folder(building)
                faults = [fault.replace(str(building), str(path)) for fault in error.faults]
                raise InputError(*(fault.replace(NOTHING_LEFT, kept) for fault in faults)) from error
            except BaseException:
                remove_folder(building)
                raise
            if replaced is not None:
                _discard(replaced)


def _put(building: Path, path: Path, *, overwrite: bool) -> Path | None:
    """Give a filled folder its name; returns where the run that had the name is now."""
    for _ in range(_TRIES):
        if is_free(path):
            try:
                building.rename(path)  # an empty folder there is replaced in the same step
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
            else:
                return None
        check_free(path, overwrite=overwrite)  # another program may have put a file there in the meantime
        if not is_free(path):
            return _exchanged(building, path)
    raise InputError(f"{path}: other programs make and remove it all the time. Choose another folder.")


def _exchanged(building: Path, path: Path) -> Path:
    """Exchange the new run with the earlier one; back again if a file came to it in the last moment."""
    with locked(path):
        old = building if exchange(building, path) else _in_two_steps(building, path)
        if strange := strange_file(old):
            if old == building:
                exchange(building, path)
            else:
                path.rename(building)
                old.rename(path)
            raise InputError(f"{strange}, so the folder is not overwritten. Choose another, or delete it yourself.")
    return old


def _in_two_steps(building: Path, path: Path) -> Path:
    """Where names cannot be exchanged: between the two steps, readers and the next run find the earlier run aside."""
    old = set_aside(path)
    try:
        building.rename(path)
    except BaseException:
        if not os.path.lexists(path):
            old.rename(path)
        raise
    return old


def _discard(old: Path) -> None:
    """Remove the earlier run; the new one is in place, so what cannot be removed is only reported."""
    try:
        remove_folder(old)
    except OSError as error:
        _LOG.warning("%s: the earlier run cannot be removed: %s. The new run is complete.", old, error.strerror)
