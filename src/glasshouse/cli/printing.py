"""How commands print lines: nothing in them can steer the terminal."""

from __future__ import annotations

import typer

from glasshouse.visible import visible

__all__ = ["say"]


def say(*lines: str, err: bool = False) -> None:
    """Print lines, with control characters of ids, names and paths shown as escapes."""
    for line in lines:
        typer.echo(visible(line), err=err)
