"""The rule of Theorem 1, fast and exact: toggle one node and recompute only the rows that change."""

from glasshouse.graph.rule.toggle import compiled_engine, layered, packed, whole  # noqa: F401 (each registers an engine)
from glasshouse.graph.rule.toggle.losses import engine_names, toggle_answers, toggle_losses, toggle_seconds
from glasshouse.graph.rule.toggle.settling import settled_engine

__all__ = ["engine_names", "settled_engine", "toggle_answers", "toggle_losses", "toggle_seconds"]
