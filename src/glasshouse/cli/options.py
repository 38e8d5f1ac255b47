"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from glasshouse.store import sharing

__all__ = ["Json", "Overwrite", "Quiet", "Shared"]


def _share(context: typer.Context, shared: bool) -> bool:
    """Let the option hold until the command ends."""
    context.with_resource(sharing(shared))
    return shared


Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, for machines.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the same folder.")]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared",
        envvar="GLASSHOUSE_SHARED",
        callback=_share,
        help="Let others read what is written, as the umask says; without it, only you can.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
