"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Json", "Overwrite", "Quiet"]

Json = Annotated[bool, typer.Option("--json", help="Print the figures as JSON, for machines.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the same folder.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]
