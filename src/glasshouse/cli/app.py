"""The application that every command registers with."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from glasshouse.cli.steps import interruptible


class _Commands(TyperGroup):
    """All commands: stopping any of them is one line."""

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
        try:
            typer.echo(f"glasshouse {importlib.metadata.version('glasshouse')}")
        except importlib.metadata.PackageNotFoundError:
            typer.echo("glasshouse, from a source tree that is not installed")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What may stand before a command; the help of the application is above."""
