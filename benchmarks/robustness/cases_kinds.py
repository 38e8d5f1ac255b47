"""What a hostile case is, and one of them tried in a process of its own, with limits on memory and time."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Case", "Outcome", "Ran", "WrongError", "command", "tried"]

MOST_SECONDS = 20
MOST_BYTES = 2**30
LONGEST = 2100  # letters of a line that a user can still read
_MISSING = ("no such option", "no such command", "got an unexpected extra argument", "unexpected keyword argument")


class WrongError(Exception):
    """A command did what it must not do, or did not do what it must."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A hostile input, or a place or a moment that harms.

    Args:
        part: of the work that it belongs to, such as "readers".
        name: of the row.
        test: that shows it today, as pytest names it.
        make: writes the input into the working folder, which is empty.
        act: gives it to the code. It raises `InputError` if that refuses it, `WrongError` if something else is wrong,
            and otherwise says what came out.
        works: whether it must work, instead of being refused.
        memory: bytes that it may take; None for any number.
        seconds: of the processor that it may take; ten times as many on the clock, since the machine may be busy.
    """

    part: str
    name: str
    test: str
    make: Callable[[], object]
    act: Callable[[], str | None]
    works: bool = False
    memory: int | None = MOST_BYTES
    seconds: int = MOST_SECONDS


class Outcome(NamedTuple):
    """How a case ended: in a word, in a sentence, and whether that is what it must be."""

    word: str
    told: str
    held: bool


class Ran(NamedTuple):
    """What a command of the command line did."""

    code: int
    out: str
    err: str


def command(*arguments: str | Path) -> Ran:
    """Run a command in this process."""
    from glasshouse.cli import main

    sys.argv = ["glasshouse", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    ran = Ran(code, out.getvalue(), err.getvalue())
    if any(one in ran.err.lower() for one in _MISSING):
        raise AttributeError(next(one for one in _MISSING if one in ran.err.lower()))
    return ran


def _ended(case: Case) -> Outcome:
    """Try a case in this process."""
    from glasshouse import InputError

    try:
        case.make()
    except (ImportError, AttributeError, KeyError) as error:
        return Outcome("not tried", f"{type(error).__name__}: {error}", held=False)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    if case.memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + case.memory, limit[1]))
    try:
        told = case.act()
    except InputError as error:
        longest = max(map(len, error.faults))
        if "needs more memory than there is" in str(error):
            return Outcome("bomb", "more than 1 GiB", held=False)
        if longest > LONGEST:
            return Outcome("bomb", f"a line of {longest} letters", held=False)
        return Outcome("refused" if not case.works else "wrong", error.faults[0], held=not case.works)
    except WrongError as error:
        return Outcome("wrong", str(error), held=False)
    except MemoryError:
        return Outcome("bomb", "more than 1 GiB", held=False)
    except (ImportError, AttributeError, TypeError) as error:
        lacking = isinstance(error, ImportError) or any(one in str(error).lower() for one in _MISSING)
        return Outcome("not there" if lacking else "raw exception", f"{type(error).__name__}: {error}", held=False)
    except (Exception, SystemExit) as error:
        return Outcome("raw exception", f"{type(error).__name__}: {error}", held=False)
    return Outcome("held" if case.works else "accepted", told or "", held=case.works)


def tried(case: Case, folder: Path) -> Outcome:
    """Try a case in a child of this process, which stands in an empty folder and is killed if it takes too long."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about threads and forks
        child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            os.setsid()  # so that processes which it starts can be ended with it
            os.close(reading)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            os.chdir(folder)
            warnings.simplefilter("ignore")
            resource.setrlimit(resource.RLIMIT_CPU, (case.seconds, case.seconds + 1))
            ended: Any = _ended(case)
            os.write(writing, json.dumps([ended.word, " ".join(ended.told.split())[:1000], ended.held]).encode())
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], 10 * case.seconds)
    content = os.read(reading, 65536) if ready else b""
    os.close(reading)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if not ready or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Outcome("bomb", f"more than {case.seconds:g} s", held=False)
    if not content:
        return Outcome("crash", f"the process ended with signal {os.WTERMSIG(status)}", held=False)
    return Outcome(*json.loads(content))


def timed(case: Case, folder: Path) -> tuple[Outcome, float]:
    """The outcome, and the seconds that it took."""
    began = time.monotonic()
    return tried(case, folder), time.monotonic() - began
