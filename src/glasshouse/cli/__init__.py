"""The command line: one file per command, each registered with ``app``."""

from glasshouse.cli.app import app, main

__all__ = ["app", "main"]
