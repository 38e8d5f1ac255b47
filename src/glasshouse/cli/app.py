"""The application that every command registers with."""

from __future__ import annotations

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Tells the owner of a trained model how visible its training records are from outside.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
