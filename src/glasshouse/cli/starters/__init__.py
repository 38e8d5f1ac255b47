"""What ``glasshouse new`` writes: files that run as they stand, one entry per kind of model."""

from glasshouse.cli.starters.starter import STARTERS, Starter, write_starter

__all__ = ["STARTERS", "Starter", "write_starter"]
