"""Caches of compiled code: they lie in a private folder of the user, and no file of the working folder has a say.

numba, Triton and torch's compilers run what they find in their caches. By themselves they look for it where others can
write: torch's compilers in ``/tmp``, numba wherever a file in the working folder says, which may be somebody else's.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
_SETTINGS = "numba.core.config"  # numba's module of settings
_SETTINGS_FILE = ".numba_config.yaml"  # which it reads in the working folder


def private_folder(*names: str) -> Path | None:
    """``~/.cache/glasshouse/NAMES`` (or under ``XDG_CACHE_HOME``), made if it is missing; None if it is not the user's.

    It and every folder above it, up to ``glasshouse``, belongs to the user, is no link, and has mode 0700.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = base if base.is_absolute() else Path.home() / ".cache"  # a relative one would mean the working folder
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("glasshouse", *names):
            base = base / name
            if not _is_private(base):
                return None
    except (OSError, RuntimeError):  # no home, or no rights
        return None
    return base


def keep_code_private() -> None:
    """Let torch's compilers and Triton keep code in the user's private folder; call it before they are used.

    An absolute folder that the user named stays. Without a private folder, code is kept until the process ends.
    """
    for variable, name in _CACHES.items():
        if not Path(os.environ.get(variable, "")).is_absolute():
            os.environ[variable] = str(private_folder(name) or _passing_folder())


def import_numba() -> ModuleType:
    """numba, without the settings of a file in the working folder; those of the environment count as ever.

    It reads that file when it is imported and before it compiles. What was imported before keeps its settings.
    """
    sys.meta_path.insert(0, _WithoutFile)
    try:
        return importlib.import_module("numba")
    finally:
        sys.meta_path.remove(_WithoutFile)


@functools.cache
def _is_private(folder: Path) -> bool:
    """Whether a folder, made if it is missing, is a real one in which only this user can write or read."""
    if not folder.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != getattr(os, "getuid", lambda: found.st_uid)():
        return False
    folder.chmod(0o700)
    os.utime(folder)  # it is in use
    return os.access(folder, os.W_OK)


@functools.cache
def _passing_folder() -> Path:
    """A folder that only this user can read, and that goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="glasshouse-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class _WithoutFile(SourceFileLoader):
    """Finds and loads numba's module of settings alone, with no name, which no file has, in place of a file's name."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == _SETTINGS else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = cls(fullname, spec.loader.path)
        return spec

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is None:
            return None
        return code.replace(co_consts=tuple("" if value == _SETTINGS_FILE else value for value in code.co_consts))
