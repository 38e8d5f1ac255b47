"""Folders that are complete or absent, and whether one can be written: judged before the long work."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glasshouse.core.errors import InputError
from glasshouse.io import files
from glasshouse.io.files import exchange

PAGE_MARK = " · Glasshouse</title>"  # near the start of every page that Glasshouse writes
RECORD_MARK = "glasshouse_record"  # the first key of an evidence file for programs
_MARKS = (PAGE_MARK, RECORD_MARK, 'classname="glasshouse.policy"')  # the last: of the findings for a build server
_UNTOUCHED = "Nothing was changed."
_LOG = logging.getLogger("glasshouse")
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_TRIES = 5


def check_free(path: Path | str, *, overwrite: bool = False) -> None:
    """Refuse a place that `new_folder` would refuse: call it before the long work, not after.

    A link to a folder is followed, and stays. With ``overwrite``, a folder is replaced only if its ``run.json`` lists
    every file in it, unchanged: any other is the user's. What killed runs left beside the place is removed.
    """
    path = real_place(path)
    with files.said_clearly(path, kept=_UNTOUCHED):
        files.clean_leftovers(path.parent)
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; give a folder to write the run into.")
        if path.exists():
            _check_replaceable(path)
        if not is_free(path):
            if not overwrite:
                raise InputError(
                    f"{path}: already holds something. Choose another folder, or overwrite it (--overwrite)."
                )
            if fault := files.strange_file(path, read=True):
                raise InputError(f"{fault}, so the folder is not overwritten. Choose another, or delete it yourself.")
        _probe(path)


def check_page(path: Path | str) -> None:
    """Refuse to write a page where it cannot be written, or over a file that Glasshouse did not write."""
    path = Path(path)
    with files.said_clearly(path, kept=_UNTOUCHED):
        if path.is_symlink():
            raise InputError(f"{path}: is a link, which is not followed. Give the file itself.")
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give a file for the page, such as {path / 'report.html'}.")
        if path.exists() and not path.is_file():  # a device such as /dev/null would be replaced by a file
            raise InputError(f"{path}: is not a plain file. Give a file for the page.")
        if path.exists() and path.stat().st_size and not _marked(path):
            raise InputError(f"{path}: is not a page of Glasshouse, so it is not overwritten. Choose another file.")
        files.clean_leftovers(path.parent)
        _probe(path)


def found_run(path: Path | str) -> Path:
    """Where a run is: in its place, or beside it if a process was killed between the two steps of replacing it."""
    path = Path(path)
    return files.aside(path) or path


def is_free(path: Path) -> bool:
    """Whether there is nothing at a place, or an empty folder."""
    return not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir()))


def real_place(path: Path | str) -> Path:
    """The folder itself if the path is a link to it, so that the link stays; a link that leads nowhere is refused."""
    path = Path(path)
    files.check_name(path)
    if path.is_symlink():
        if not path.exists():
            raise InputError(f"{path}: is a link to {path.readlink()}, which does not exist. Remove the link.")
        path = path.resolve()
    if path.name in ("", ".."):
        raise InputError(f"{path}: names no folder of its own. Give the folder a name, such as {path / 'run'}.")
    return path


def _check_replaceable(path: Path) -> None:
    """Refuse a folder that cannot be renamed, or that someone stands in."""
    with contextlib.suppress(FileNotFoundError):  # of the working folder, which may be gone
        if path.resolve() in (here := Path.cwd().resolve(), *here.parents):
            raise InputError(f"{path}: is the folder that you are in, or one above. Give one in it: {path / 'run'}.")
    if path.is_mount():
        raise InputError(f"{path}: is where a disk is mounted, and cannot be replaced. Give one in it: {path / 'run'}.")
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"{path}: you may not write there. Choose another folder, or change its permissions.")
    above, known = path.parent.stat(), path.stat()
    if above.st_mode & stat.S_ISVTX and os.geteuid() not in (0, above.st_uid, known.st_uid):
        raise InputError(f"{path}: belongs to another user, so it cannot be replaced. Choose another folder.")


def _marked(path: Path) -> bool:
    with path.open("rb") as file:
        opening = file.read(4096)
    return any(mark.encode() in opening for mark in _MARKS)


def _probe(path: Path) -> None:
    """Try to make a folder where one will be made; permissions alone do not show a full or read-only disk."""
    while not path.parent.exists():
        path = path.parent
    with files.unfinished_folder(path) as building, contextlib.suppress(FileNotFoundError):
        building.rmdir()


@contextmanager
def new_folder(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to fill, which takes its name only when the block ends without an error.

    A process that is killed, at any moment, leaves the earlier run or the new one, complete and under its name. With
    ``overwrite`` an earlier run is replaced, in one step; a folder with anything else in it stays.
    """
    check_free(path, overwrite=overwrite)
    path = real_place(path)
    earlier = not is_free(path)
    kept = "The earlier run there is unchanged." if earlier else files.NOTHING_LEFT
    with files.said_clearly(path, kept=kept):
        files.make_folders(path.parent)
        with files.unfinished_folder(path) as building:
            try:
                yield building
                building.chmod(files.folder_mode())
                files.sync_folder(building)
                replaced = _put(building, path, overwrite=overwrite)
                files.sync_folder(path.parent)  # before the earlier run goes: a crash must not leave neither
            except BaseException as error:
                files.remove_folder(building)
                if not isinstance(error, InputError):
                    raise
                # of a file in the folder: say it under the name that the file would have
                faults = [fault.replace(str(building), str(path)) for fault in error.faults]
                raise InputError(*(fault.replace(files.NOTHING_LEFT, kept) for fault in faults)) from error
            try:
                if replaced is not None:
                    files.remove_folder(replaced)
            except OSError as error:  # the new run is in place
                told = "%s: the earlier run cannot be removed: %s. The new run is complete."
                _LOG.warning(told, replaced, error.strerror)


def _put(building: Path, path: Path, *, overwrite: bool) -> Path | None:
    """Give a filled folder its name; returns where the run that had the name is now."""
    for _ in range(_TRIES):
        if is_free(path):
            try:
                building.rename(path)  # an empty folder there is replaced in the same step
                return None
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise
        check_free(path, overwrite=overwrite)  # another program may have put a file there in the meantime
        if not is_free(path):
            return _exchanged(building, path)
    raise InputError(f"{path}: other programs make and remove it all the time. Choose another folder.")


def _exchanged(building: Path, path: Path) -> Path:
    """Exchange the new run with the earlier one; back again if a file came to it in the last moment."""
    with files.locked(path):
        exchanged = exchange(building, path)
        old = building if exchanged else files.set_aside(path)
        if not exchanged:  # in two steps: between them, readers and the next run find the earlier run aside
            try:
                building.rename(path)
            except BaseException:
                if not os.path.lexists(path):
                    old.rename(path)
                raise
        if strange := files.strange_file(old):
            if exchanged:
                exchange(building, path)
            else:
                path.rename(building)
                old.rename(path)
            raise InputError(f"{strange}, so the folder is not overwritten. Choose another, or delete it yourself.")
    return old
