"""What every ``trainer`` section has."""

from __future__ import annotations

from glasshouse.config.strict import Strict
from glasshouse.population import Population

__all__ = ["AnyTrainer"]


class AnyTrainer(Strict):
    """Base of the sections that build a trainer."""

    def advice(self, population: Population) -> tuple[str, ...]:
        """What does not suit this trainer about the records, a sentence each; by default nothing."""
        return ()
