"""The command line: commands by their aim, each registered with ``app``."""

from glasshouse.cli.app import app as app
from glasshouse.cli.app import main as main
