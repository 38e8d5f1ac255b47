"""``python -m glasshouse.cli``."""

from glasshouse.cli import main

main()
