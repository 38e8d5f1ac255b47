"""``glasshouse lookup``: from an id to its hash, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.cli.app import app
from glasshouse.cli.printing import say
from glasshouse.errors import InputError, shortened
from glasshouse.reading import file_size, guarded, read_content
from glasshouse.report.redaction import read_or_make_key

__all__ = ["lookup"]

_TIMES = 10  # a short id takes about as many bytes in Python as ten letters of its file
_LONGEST = 1000  # letters; an audit refuses ids of more than 256


@app.command()
def lookup(
    key: Annotated[Path, typer.Argument(help="The key of the redacted run, such as runs/audit.key.")],
    names: Annotated[list[str] | None, typer.Argument(help="Ids, or hashes if --ids is given.")] = None,
    ids: Annotated[Path | None, typer.Option(help="A text file with every id that may be meant, one per line.")] = None,
) -> None:
    """Print the hash that stands for each id in a redacted run; with --ids, also the id behind each hash.

    A hash cannot be turned back by itself: all ids of the file are hashed and compared.
    """
    file_size(key, missing="there is no such key.")
    redactor, wanted = read_or_make_key(key), names or []
    known = {} if ids is None else _ids_of(ids)
    with guarded("lookup", what="a list of ids"):
        "".join(wanted).encode()  # a name on the command line may be any bytes
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


def _ids_of(path: Path) -> dict[str, None]:
    """The lines of a text file, in order."""
    content = read_content(path, times=_TIMES)
    with guarded(path, what="a text file of ids"):
        found = dict.fromkeys(content.decode("utf-8-sig").splitlines())
    longest = max(found, key=len, default="")
    if len(longest) > _LONGEST:
        raise InputError(f"{path}: {shortened(longest)} is too long for an id; write one id per line.")
    return found
