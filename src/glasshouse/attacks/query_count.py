"""How often an attack asks a model: what an attacker pays, and what an owner could notice."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["QueryCount"]


class QueryCount(NamedTuple):
    """One query is one model asked about one record, or about one node of one graph.

    Args:
        per_record: for each record that is judged, the mean over records; the target and shadow models together.
        shared: once for all records, such as RMIA's population Z or what a classifier learns from.

    Example:
        >>> QueryCount(per_record=9.0, shared=100).total(50)
        550
    """

    per_record: float
    shared: int = 0

    def total(self, records: int) -> int:
        """QueryCount to judge so many records."""
        return round(self.per_record * records) + self.shared
