"""``glasshouse lookup``: from an id to its hash, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.printing import say
from glasshouse.errors import InputError
from glasshouse.report.redaction import read_or_make_key

__all__ = ["lookup"]


@app.command()
def lookup(
    key: Annotated[Path, typer.Argument(help="The key of the redacted run, such as runs/audit.key.")],
    names: Annotated[list[str] | None, typer.Argument(help="Ids, or hashes if --ids is given.")] = None,
    ids: Annotated[Path | None, typer.Option(help="A text file with every id that may be meant, one per line.")] = None,
) -> None:
    """Print the hash that stands for each id in a redacted run; with --ids, also the id behind each hash.

    A hash cannot be turned back by itself: all ids of the file are hashed and compared.
    """
    if not key.is_file():
        raise InputError(f"{key}: there is no such key.")
    redactor, wanted = read_or_make_key(key), names or []
    try:
        known = [] if ids is None else ids.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{ids}: cannot be read: {error}.") from error
    behind = {redactor.hash(name): name for name in known}
    if not wanted and not known:
        raise InputError("lookup: give ids, or --ids with a file of them.")
    for name in wanted or known:
        if name in behind:
            say(f"{name}  {behind[name]}")
        elif ids is None or name in known:
            say(f"{redactor.hash(name)}  {name}")
        else:
            say(f"{name}  is not an id of {ids}, nor the hash of one with this key")
