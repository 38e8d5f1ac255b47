"""The command line: commands by their aim, each registered with ``app``."""

from glasshouse.cli.app import app, main

__all__ = ["app", "main"]
