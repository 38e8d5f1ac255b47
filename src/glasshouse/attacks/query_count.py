"""How often an attack asks a model: this costs the attacker, and the owner of the model could notice it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["QueryCount"]


class QueryCount(NamedTuple):
    """One query is one model asked about one record, or about one node of one graph.

    Args:
        per_record: queries for each judged record, mean over records; of the target and the shadow models together.
        shared: queries made once for all records, such as RMIA's population Z or what a classifier learns from.

    Example:
        >>> QueryCount(per_record=9.0, shared=100).total(50)
        550
    """

    per_record: float
    shared: int = 0

    def total(self, records: int) -> int:
        """Queries needed to judge this many records."""
        return round(self.per_record * records) + self.shared
