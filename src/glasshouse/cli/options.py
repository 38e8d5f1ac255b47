"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Author", "Json", "KeyFile", "Overwrite", "PolicyFile", "Quiet", "Redact"]

Author = Annotated[str | None, typer.Option(help="Who answers for the audit; shown in the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, for machines.")]
KeyFile = Annotated[
    Path | None, typer.Option("--key", help="With --redact: the file of the key; RUN.key beside the run by default.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the same folder.")]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="Limits (a YAML file, as for check) that rate the run in the report.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
Redact = Annotated[bool, typer.Option("--redact", help="Replace the records' ids by keyed hashes.")]
