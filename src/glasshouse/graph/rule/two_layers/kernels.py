"""Compiled kernels: the one place where numba is hidden from the type checker.

Machine code is kept in a private folder of the user, ``~/.cache/glasshouse/kernels`` (or under ``XDG_CACHE_HOME``). The
name of the folder in it holds a digest of every source file that a kernel may inline, of the versions of numba,
llvmlite, Python and Glasshouse, and of numba's settings: other sources are other code. ``NUMBA_CACHE_DIR`` has no say.
numba keeps its lists as pickles, so the folder must belong to the user alone (`private_folder`); where
there is no such folder, nothing is kept, and each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import llvmlite
import numba
from numba import types
from numba.core import caching, config
from numba.extending import overload

from glasshouse.io.caches import private_folder

P = ParamSpec("P")
R = TypeVar("R")

_njit: Any = numba.njit  # its type stubs have only some of its options
_caching: Any = caching
_config: Any = config

_GRAPH = Path(__file__).parents[2]
_SOURCES = (
    _GRAPH / "rule" / "two_layers",
    _GRAPH / "sampling",
)  # all kernels of ours, and this file
_OUTDATED = 60 * 24 * 3600.0  # seconds: a folder that was not used for two months is of sources that nobody has
_NAME = re.compile(r"[0-9a-f]{64}")
_ABI = getattr(sys, "abiflags", "")  # Windows has none

# Sums may be reordered (so that they can use vector instructions), but infinities keep their meaning.
_RELAXED = {"reassoc", "contract", "nsz", "arcp"}
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": _RELAXED,
    "error_model": "numpy",
    "_nrt": False,  # counting references to arrays costs as much as a row of work, and threads compete for the counts
}
_INNER: dict[str, Any] = {"forceinline": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, **_OPTIONS}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function to machine code on its first call, keep the code on disk, and run it without the GIL.

    Kernels are serial; the caller spreads the work over threads, so that a kernel may call another. They allocate
    nothing: every array that they write to is an argument.

    The code is compiled again when a file changes that defines kernels of ours, or one beside the function's own.

    Example:
        >>> from glasshouse.graph.sampling.posterior import log_ratio  # a kernel
        >>> import numpy as np
        >>> log_ratio(np.array([1.0, 2.0]), np.array([True]))
        1.0
    """
    compiled: Callable[P, R] = _kept(_njit(no_cfunc_wrapper=True, **_OPTIONS)(function))
    return compiled


def inner_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that only other kernels call: it needs no Python interface, which takes long to compile."""
    compiled: Callable[P, R] = _kept(_njit(**_INNER)(function))
    return compiled


def by_type(choices: Mapping[type, Any]) -> Any:
    """A function that kernels may call: it is the choice for the named tuple class of its first argument.

    Args:
        choices: named tuple class -> kernel with the same argument names.
    """

    def called(*given: Any) -> None:
        raise TypeError("only kernels may call this")

    def chosen(first: types.Type, *_: types.Type) -> Any:
        kernel = choices.get(getattr(first, "instance_class", type(None)))
        return None if kernel is None else kernel.py_func  # numba compiles it again, with the same options

    options: Any = _INNER  # its type stubs have only some of them
    overload(called, jit_options=options, strict=False)(chosen)
    return called


def kernel_folder(beside: Path | None = None) -> Path | None:
    """The folder of compiled code, made if it is missing; None if the user has no private folder for it.

    Args:
        beside: a folder whose source files count too: that of a kernel that is not ours.
    """
    folders = _SOURCES if beside is None or beside in _SOURCES else (*_SOURCES, beside)
    try:
        digest = _digest(folders)
    except OSError:  # sources that are not files
        return None
    root = private_folder("kernels")
    if root is None:
        return None
    if not (root / digest).exists():
        _remove_outdated(root)
    return private_folder("kernels", digest)


def _digest(folders: tuple[Path, ...]) -> str:
    """Of the files of some folders and of this one, and of what compiles them."""
    files = (Path(__file__), *(file for folder in folders for file in sorted(folder.glob("*.py"))))
    stamped = tuple((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return _digest_files(stamped, tuple(sorted(_settings().items())))


def _settings() -> dict[str, str]:
    """Settings of numba that are not its defaults, such as ``NUMBA_OPT``, wherever they are from: they change code."""
    given = _config._env_reloader.old_environ
    return {name: str(value) for name, value in given.items() if name != "NUMBA_CACHE_DIR"}


@functools.cache
def _digest_files(files: tuple[tuple[Path, int, int], ...], settings: tuple[tuple[str, str], ...]) -> str:
    """Of files as they are at these times, which are asked about once for each kernel, and of numba's settings."""
    try:
        ours = importlib.metadata.version("glasshouse")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout
        ours = ""
    digest = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, sys.version, ours, settings)).encode())
    for file, _, size in files:
        digest.update(f"{file.name} {size} ".encode() + file.read_bytes())
    return digest.hexdigest()


def _remove_outdated(root: Path) -> None:
    """Remove folders of other sources that were not used for long; a process that still uses one makes it again."""
    for folder in root.iterdir():
        found = folder.lstat()
        old = time.time() - found.st_mtime > _OUTDATED
        if old and stat.S_ISDIR(found.st_mode) and _NAME.fullmatch(folder.name):
            shutil.rmtree(folder, ignore_errors=True)


def _kept(compiled: Any) -> Any:
    """A dispatcher of numba whose code is kept in our folder, if there is one."""
    function = compiled.py_func
    folder = kernel_folder(Path(inspect.getfile(function)).resolve().parent)
    if folder is not None:
        compiled._cache = _Kept(function, folder)
    return compiled


class _Place(_caching._CacheLocator):  # type: ignore[misc]
    """Where numba keeps the code of a function, instead of where it would look."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._folder, self._line = folder, function.__code__.co_firstlineno
        self._py_file = inspect.getfile(function)  # numba names it in its warnings

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class _Code(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    """How the code is written, as numba does it; only its choice of a place is left out."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._lineno, self._locator = function.__code__.co_firstlineno, _Place(function, folder)
        self._filename_base = self.get_filename_base(f"{function.__module__}.{function.__qualname__}", _ABI)


class _Kept(_caching.FunctionCache):  # type: ignore[misc]
    """The cache of one function in a given folder."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._impl_class = functools.partial(_Code, folder=folder)
        super().__init__(function)

    def save_overload(self, *compiled: Any) -> None:
        with contextlib.suppress(OSError):  # a full disk; the code is compiled, and only not kept
            super().save_overload(*compiled)
