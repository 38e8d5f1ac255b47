"""The application: its commands by name, and how each of them begins, prints and ends.

A command's module is imported when the command is called or its own help is asked for: libraries for audits take
seconds to import, and ``glasshouse --help`` needs none of them.

A finished command cannot fail for its output: what a terminal cannot show is replaced, and a reader that has gone or a
full disk changes no exit code. Faults of input, too little memory and a request to end become one line each.
"""

from __future__ import annotations

import ast
import functools
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import glasshouse
from glasshouse.compute import safe_path
from glasshouse.core.errors import InputError, LeftOutError
from glasshouse.core.escape import visible
from glasshouse.core.progress import work_so_far
from glasshouse.io.limits import lacks_memory, one_heap

# by what a user wants to do and by name: the module of this room that registers the command with `app`
_BY_AIM = {
    "Start": {"new": "new", "doctor": "doctor", "attacks": "doctor", "datasets": "doctor"},
    "Audit": {"plan": "audit", "audit": "audit", "score": "audit", "advise": "audit"},
    "Decide": dict.fromkeys(("check", "compare", "index", "appendix"), "saved_runs"),
    "Share and keep": dict.fromkeys(("report", "verify", "lookup"), "saved_runs"),
    "Research": {"bench": "research", "reproduce": "research"},
}
COMMANDS = {name: module for commands in _BY_AIM.values() for name, module in commands.items()}


def described(command: str) -> str:
    """The first paragraph of a command's help, from the source of its module: importing that takes seconds."""
    return _docstrings(COMMANDS[command])[command].partition("\n\n")[0]


@functools.cache
def _docstrings(module: str) -> dict[str, str]:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    return {one.name: ast.get_docstring(one) or "" for one in tree.body if isinstance(one, ast.FunctionDef)}


class _Commands(TyperGroup):
    """All commands, each imported when it is called; stopping any of them is one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # what is not imported yet is there for help and completion, by its name and its line
        known = {
            name: TyperCommand(name, help=described(name), rich_help_panel=aim)
            for aim, commands in _BY_AIM.items()
            for name in commands
        }
        self.commands = {**known, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] == "score":  # its arrays are as long as the evidence, and its threads do nothing but arithmetic
            one_heap()
        if args[0] in COMMANDS:
            importlib.import_module(f"glasshouse.cli.{COMMANDS[args[0]]}")
            everything: Any = typer.main.get_command(app)
            self.add_command(everything.commands[args[0]])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with interruptible():
            return super().invoke(ctx)


# the one place that says what they mean: help shows it, and a test holds the commands and the manual to it
EXIT_CODES = {
    "done": (0,),
    "wrong input, with one line for each fault": (2,),
    "a limit is exceeded (check) or a file is damaged (verify)": (3,),
    "inconclusive (check)": (4,),
    "stopped": (130, 143),
}
EXITS = "; ".join(f"{' or '.join(map(str, codes))} {meaning}" for meaning, codes in EXIT_CODES.items())
EXITS = f"Exit codes: {EXITS}."

app = typer.Typer(
    cls=_Commands,
    help="Tells the owner of a trained model how visible its training records are from outside.",
    epilog=EXITS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"glasshouse {glasshouse.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What may stand before a command; the help of the application is above."""


def say(*lines: str, err: bool = False) -> None:
    """Print lines, with control characters of ids, names and paths shown as escapes."""
    for line in lines:
        typer.echo(visible(line), err=err)


class Terminated(KeyboardInterrupt):
    """Another program asked this one to end (SIGTERM), as batch systems and containers do."""


@contextmanager
def interruptible(out: Path | None = None) -> Iterator[None]:
    """End with one line, and the exit code of a command that was stopped, when a user or a program stops it."""
    try:
        yield
    except KeyboardInterrupt as error:
        written = "" if out is None else f" Nothing was written to {out}."
        say(" ".join([f"Stopped.{written}", *work_so_far()]), err=True)
        raise typer.Exit(stopped_code(error)) from None


def stopped_code(error: KeyboardInterrupt) -> int:
    """What shells expect of a program that a signal ended (`EXIT_CODES`)."""
    return 143 if isinstance(error, Terminated) else 130


def main() -> NoReturn:
    """Entry point: each fault of the input is one line on standard error."""
    _open_outputs()
    # read when torch is imported: its threads then leave their core to others while they wait. Beside other programs
    # an audit with two threads otherwise takes 1.6 times the processor time, and to train a GCN on PubMed five times
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        with safe_path():  # a library may start processes too, such as scikit-learn with n_jobs
            app(standalone_mode=True)
    except InputError as error:
        say(*error.faults, err=True)
        count, ended = len(error.faults), ", nothing was run."
        if isinstance(error, LeftOutError) and work_so_far():
            ended = "; everything else is finished and kept."
        elif work_so_far():
            ended = "; the run was stopped. " + " ".join(work_so_far())
        say(f"{count} problem{'s' if count > 1 else ''}{ended}", err=True)
        raise SystemExit(2) from None
    except Exception as error:
        if not lacks_memory(error):
            raise
        told = "There is not enough memory. If the input is right, raise the limit, such as --memory 8GiB."
        say(" ".join([told, *work_so_far()]), err=True)
        raise SystemExit(2) from None
    finally:
        signal.signal(signal.SIGTERM, before)  # of a program that called this, such as a test
    raise SystemExit(0)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


class _Unfailing(io.FileIO):
    """Bytes for a reader who may go away, or for a disk that may be full: what cannot be written is dropped."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _open_outputs() -> None:
    """Let nothing that is printed raise: characters that an output cannot hold are replaced, lost bytes are dropped."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # an output that was closed: a file that is opened later must not get its number, and what is printed
    os.close(handle)
    for name, number in (("stdout", 1), ("stderr", 2)):
        given = getattr(sys, name)
        if given is not getattr(sys, f"__{name}__"):
            continue  # whoever called this has put something else in its place
        encoding = getattr(given, "encoding", None) or "utf-8"
        raw = io.BufferedWriter(_Unfailing(number, "w", closefd=False))
        setattr(sys, name, io.TextIOWrapper(raw, encoding=encoding, errors="replace", write_through=True))
