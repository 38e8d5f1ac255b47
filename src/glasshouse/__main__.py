"""``python -m glasshouse``."""

from glasshouse.cli import main

main()
