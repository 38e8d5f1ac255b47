"""Files and folders that are complete or absent: written under a name of their own, synced, put in place in one step.

Only their owner reads them, since they name people. Unfinished files are locked while their process lives and removed
once it is gone. What a run's own list does not name is the user's, and is left alone. Whether a place can be written is
judged before the long work.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import logging
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from glasshouse.core.errors import InputError, shortened

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # some network disks have no sync of folders
_SHARED: ContextVar[bool | None] = ContextVar("_SHARED", default=None)  # None: as the environment says
# files that a run's list leaves out: each can be written again from the others
MADE_AGAIN = ("report.html", "run.json", "appendix.html", "appendix.md", "appendix.json")
_UNFINISHED, _ASIDE = "glasshouse-unfinished", "glasshouse-replaced"
_OURS = re.compile(rf"\.(.+)\.({_UNFINISHED}|{_ASIDE})-[a-z0-9_]{{8}}", re.DOTALL)
_OLDER = re.compile(r"\..+\.unfinished-[a-z0-9_]{8}", re.DOTALL)  # files only: earlier versions named them so
_TRIES = 5
_TAKEN_AWAY = "other programs remove new files there"
NOTHING_LEFT = "Nothing was left behind."
_UNTOUCHED = "Nothing was changed."
PAGE_MARK = " · Glasshouse</title>"  # near the start of every page that Glasshouse writes
RECORD_MARK = "glasshouse_record"  # the first key of an evidence file for programs
_MARKS = (PAGE_MARK, RECORD_MARK, 'classname="glasshouse.policy"')  # the last: of the findings for a build server
_LOG = logging.getLogger("glasshouse")
_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)  # the kernel, the file system, or a sandbox


def resolved(path: Path | str) -> Path:
    """The absolute path of a place, without links; links in a circle are refused."""
    check_name(path)
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise InputError(f"{shortened(str(path))}: is not a valid path: {str(error).split(' from ')[0]}.") from error


def check_name(path: Path | str) -> None:
    """Refuse a name that the system cannot use: too long, with a zero in it, or below links in a circle."""
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            Path(path).lstat()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{shortened(str(path))}: is not a valid path: {said}.") from error


@contextmanager
def sharing(shared: bool = True) -> Iterator[None]:
    """Let others read what is written in the block, as the umask allows; ``GLASSHOUSE_SHARED=1`` does it everywhere."""
    token = _SHARED.set(shared)
    try:
        yield
    finally:
        _SHARED.reset(token)


def file_mode() -> int:
    """The mode of a new file."""
    return _mode(0o666)


def folder_mode() -> int:
    """The mode of a new folder."""
    return _mode(0o777)


def _mode(most: int) -> int:
    """What the owner has of a mode or, where files are shared, what the umask leaves of it."""
    asked = _SHARED.get()
    if asked is None:
        asked = os.environ.get("GLASSHOUSE_SHARED", "").lower() not in ("", "0", "no", "false")
    umask = os.umask(0)
    os.umask(umask)
    return most & ~umask if asked else most & 0o700


def make_folders(path: Path) -> None:
    """Make a folder and those above it, as far as they are missing, each with the mode of a new folder."""
    if not path.is_dir():
        if path.parent != path:
            make_folders(path.parent)
        path.mkdir(mode=folder_mode(), exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have the names in a folder written to the disk: a rename alone may be lost, or come before, when power fails."""
    with _opened(path) as handle:
        try:
            if handle is not None:
                os.fsync(handle)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise


@contextmanager
def locked(folder: Path) -> Iterator[int | None]:
    """Hold a folder's lock while the block runs, as far as the system has such locks: a killed process holds none."""
    with _opened(folder) as handle:
        if handle is not None:
            _lock(handle)
        yield handle


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """A handle of a folder; None on Windows, which opens no folders, and of one that may be written but not read."""
    try:
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def digest(path: Path) -> str:
    """SHA-256 of a file's content, as ``run.json`` keeps it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def strange_file(folder: Path, *, read: bool = False) -> str:
    """The first file in a run's folder that its list does not name or, if files are read, that was changed; or ""."""
    listed = _listed(folder / "run.json")
    if listed is None and read:
        return f"{folder}: is not a run of Glasshouse (it has no run.json that lists its files)"
    known = listed or {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file():
            return f"{path}: is not a file that a run writes"
        if path.name not in known and path.name not in MADE_AGAIN:
            return f"{path}: is not a file of the run"
        if read and path.name in known and digest(path) != known[path.name]:
            return f"{path}: was changed since the run wrote it"
    return ""


def remove_folder(folder: Path) -> None:
    """Remove an unfinished folder, or a run file by file, its list last; what the run does not list stays there."""
    listed = _listed(folder / "run.json")
    if listed is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in [*listed, *MADE_AGAIN]:
        (folder / Path(name).name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not empty: something else is in it; or another process was faster
        folder.rmdir()


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


@contextmanager
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
    raise OSError(errno.EAGAIN, _TAKEN_AWAY, str(path.parent))


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """A new folder beside its final place, locked while the block runs; the block removes or renames it."""
    for _ in range(_TRIES):
        building = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path)))
        with locked(building) as handle:
            if handle is None or _is_at(handle, building):
                yield building
                return
    raise OSError(errno.EAGAIN, _TAKEN_AWAY, str(path.parent))


def set_aside(path: Path) -> Path:
    """Rename a folder out of the way, under a name by which `aside` finds it again."""
    free = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.{_ASIDE}-"))
    free.rmdir()
    return path.rename(free)


def aside(path: Path) -> Path | None:
    """The folder that `set_aside` took from this place, if nothing is in its place now."""
    if os.path.lexists(path):
        return None
    return next((one for one, known in _ours(path.parent) if known == (path.name, _ASIDE)), None)


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


@contextmanager
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
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows; some network disks
        return None
    return True


def _is_at(handle: int, path: Path | str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))  # noqa: PTH116
    except FileNotFoundError:
        return False


def write_file(path: Path | str, content: bytes | str | Callable[[IO[bytes]], Any], *, once: bool = False) -> Path:
    """Write a file, and the folders above it, so that a reader finds the old content or the new one, never a part.

    Only the owner can read it, unless asked otherwise (`sharing`). A link in its place is replaced, not followed. With
    ``once``, for keys, a file that is there already is not replaced but refused, and nothing is ever shared. Large
    content is a function that writes it to an open file.
    """
    path = Path(path)
    # a name of a file that is no UTF-8 has halves of characters, which JSON and HTML show as escapes
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with said_clearly(path):
        make_folders(path.parent)
        with unfinished_file(path) as (handle, unfinished):
            with os.fdopen(handle, "wb", closefd=False) as file:
                data(file) if callable(data) else file.write(data)
            os.fsync(handle)
            if once:
                _put_new(unfinished, path)
            else:
                unfinished.chmod(file_mode())
                unfinished.replace(path)
            sync_folder(path.parent)
    return path


def _put_new(unfinished: Path, path: Path) -> None:
    """Give a file its name if the name is free, in one step; on a disk without hard links in two."""
    try:
        os.link(unfinished, path)
    except OSError:
        if os.path.lexists(path):
            raise
        unfinished.replace(path)


@contextmanager
def said_clearly(path: Path, *, kept: str = NOTHING_LEFT) -> Iterator[None]:
    """Make the system's error while a place is written one line, with what became of the place."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}. {kept}") from error


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders of one disk in one step; False, and nothing changed, where it cannot be."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, TypeError, AttributeError):  # TypeError: Windows has no library without a name
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    if (found := ctypes.get_errno()) in _CANNOT:
        return False
    raise OSError(found, os.strerror(found), str(other))


def check_free(path: Path | str, *, overwrite: bool = False) -> None:
    """Refuse a place that `new_folder` would refuse: call it before the long work, not after.

    A link to a folder is followed, and stays. With ``overwrite``, a folder is replaced only if its ``run.json`` lists
    every file in it, unchanged: any other is the user's. What killed runs left beside the place is removed.
    """
    path = real_place(path)
    with said_clearly(path, kept=_UNTOUCHED):
        clean_leftovers(path.parent)
        if path.exists() and not path.is_dir():
            raise InputError(f"{path}: is a file; give a folder to write the run into.")
        if path.exists():
            _check_replaceable(path)
        if not is_free(path):
            if not overwrite:
                raise InputError(
                    f"{path}: already holds something. Choose another folder, or overwrite it (overwrite=True, or "
                    f"--overwrite)."
                )
            if fault := strange_file(path, read=True):
                raise InputError(f"{fault}, so the folder is not overwritten. Choose another, or delete it yourself.")
        _probe(path)


def check_page(path: Path | str) -> None:
    """Refuse to write a page where it cannot be written, or over a file that Glasshouse did not write."""
    path = Path(path)
    with said_clearly(path, kept=_UNTOUCHED):
        if path.is_symlink():
            raise InputError(f"{path}: is a link, which is not followed. Give the file itself.")
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give a file for the page, such as {path / 'report.html'}.")
        if path.exists() and not path.is_file():  # a device such as /dev/null would be replaced by a file
            raise InputError(f"{path}: is not a plain file. Give a file for the page.")
        if path.exists() and path.stat().st_size:
            with path.open("rb") as file:
                opening = file.read(4096)
            if not any(mark.encode() in opening for mark in _MARKS):
                raise InputError(f"{path}: is not a page of Glasshouse, so it is not overwritten. Choose another file.")
        clean_leftovers(path.parent)
        _probe(path)


def found_run(path: Path | str) -> Path:
    """Where a run is: in its place, or beside it if a process was killed between the two steps of replacing it."""
    path = Path(path)
    return aside(path) or path


def is_free(path: Path) -> bool:
    """Whether there is nothing at a place, or an empty folder."""
    return not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir()))


def real_place(path: Path | str) -> Path:
    """The folder itself if the path is a link to it, so that the link stays; a link that leads nowhere is refused."""
    path = Path(path)
    check_name(path)
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


def _probe(path: Path) -> None:
    """Try to make a folder where one will be made; permissions alone do not show a full or read-only disk."""
    while not path.parent.exists():
        path = path.parent
    with unfinished_folder(path) as building, contextlib.suppress(FileNotFoundError):
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
            except BaseException as error:
                remove_folder(building)
                if not isinstance(error, InputError):
                    raise
                # of a file in the folder: say it under the name that the file would have
                faults = [fault.replace(str(building), str(path)) for fault in error.faults]
                raise InputError(*(fault.replace(NOTHING_LEFT, kept) for fault in faults)) from error
            try:
                if replaced is not None:
                    remove_folder(replaced)
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
    with locked(path):
        exchanged = exchange(building, path)
        old = building if exchanged else set_aside(path)
        if not exchanged:  # in two steps: between them, readers and the next run find the earlier run aside
            try:
                building.rename(path)
            except BaseException:
                if not os.path.lexists(path):
                    old.rename(path)
                raise
        if strange := strange_file(old):
            if exchanged:
                exchange(building, path)
            else:
                path.rename(building)
                old.rename(path)
            raise InputError(f"{strange}, so the folder is not overwritten. Choose another, or delete it yourself.")
    return old
