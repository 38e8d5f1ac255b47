"""The application: its commands by name, how they print lines, and how a command that is stopped ends.

A command's module is imported when the command is called or its own help is asked for: libraries for audits take
seconds to import, and ``glasshouse --help`` needs none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import glasshouse
from glasshouse.core.escape import visible
from glasshouse.core.progress import work_so_far

# by name: the module that registers the command with `app`, and the first paragraph of its help
COMMANDS = {
    "new": (
        "glasshouse.cli.new",
        "Write a commented script or audit file that runs as it is, as a start for your own model and data.",
    ),
    "audit": ("glasshouse.cli.audit", "Train shadow models, attack the target, and write a report."),
    "score": ("glasshouse.cli.audit", "Attack saved evidence: no model, no training."),
    "report": ("glasshouse.cli.saved_runs", "Render the report of an earlier run again."),
    "compare": (
        "glasshouse.cli.saved_runs",
        "Compare runs: what a defence gains and costs, and whether the difference is more than chance.",
    ),
    "verify": (
        "glasshouse.cli.saved_runs",
        "Check every file of a run or pool against its checksum: exit code 0 if all match, 3 if not.",
    ),
    "lookup": (
        "glasshouse.cli.saved_runs",
        "Print the hash of each id in a redacted run; with --ids, also the id of each hash.",
    ),
    "appendix": (
        "glasshouse.cli.saved_runs",
        "Write the evidence file: what was measured, declared and assumed, next to what regulators and standards ask.",
    ),
    "check": (
        "glasshouse.cli.saved_runs",
        "Judge a run by a policy: exit code 0 if no limit is exceeded, 3 if one is, 4 if the run is inconclusive.",
    ),
    "reproduce": (
        "glasshouse.cli.reproduce",
        "Run an experiment of the paper and print our figures next to those of the paper.",
    ),
    "doctor": (
        "glasshouse.cli.doctor",
        "Show versions, extras, GPU, cores, memory, browser and folders, and how to install what is missing.",
    ),
    "attacks": (
        "glasshouse.cli.doctor",
        "List the names of the attacks for files and options; those that need a graph come last.",
    ),
    "datasets": ("glasshouse.cli.doctor", "List the names of the data sets for files."),
}


class _Commands(TyperGroup):
    """All commands, each imported when it is called; stopping any of them is one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # what is not imported yet is there for help and completion, by its name and its line
        known = {name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()}
        self.commands = {**known, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            importlib.import_module(COMMANDS[args[0]][0])
            everything: Any = typer.main.get_command(app)
            self.add_command(everything.commands[args[0]])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with interruptible():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    help="Tells the owner of a trained model how visible its training records are from outside.",
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
    """The exit code that shells expect of a program that a signal ended.

    Example:
        >>> stopped_code(KeyboardInterrupt()), stopped_code(Terminated())
        (130, 143)
    """
    return 143 if isinstance(error, Terminated) else 130
