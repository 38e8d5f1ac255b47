"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glasshouse.reading import as_bytes, memory_limit, process_limit
from glasshouse.store import sharing

__all__ = [
    "Author",
    "Json",
    "KeyFile",
    "Memory",
    "Overwrite",
    "PolicyFile",
    "Quiet",
    "Redact",
    "Shared",
]


def _share(context: typer.Context, shared: bool) -> bool:
    """Let the option hold until the command ends."""
    context.with_resource(sharing(shared))
    return shared


def _limited(context: typer.Context, given: str | None) -> str | None:
    """The limit holds until the command ends; what an audit does after reading has one if the user gives it."""
    if given is not None:
        context.with_resource(memory_limit(as_bytes(given, place="--memory")))
    if given is not None or context.info_name != "audit":
        context.with_resource(process_limit())
    return given


Author = Annotated[str | None, typer.Option(help="Who answers for the audit; shown in the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, for machines.")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", help="With --redact: the file of the key; RUN.key beside the run by default.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        callback=_limited,
        help="Memory limit of one file, and of toggling nodes on the CPU; the command, and each of its workers, takes "
        "at most twice as much. Default: 1GiB; for audit only while files are read.",
    ),
]
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
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="Limits (a YAML file, as for check) that rate the run in the report.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, and no lines about progress.")]
Redact = Annotated[bool, typer.Option("--redact", help="Replace the records' ids by keyed hashes.")]
