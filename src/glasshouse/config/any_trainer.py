"""What every ``trainer`` section has."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from glasshouse.config.strict import Strict
from glasshouse.population import Population

__all__ = ["AnyTrainer", "EstimatorSection"]


class AnyTrainer(Strict):
    """Base of the sections that build a trainer."""

    def advice(self, population: Population) -> tuple[str, ...]:
        """What does not suit this trainer about the records, a sentence each; by default nothing."""
        return ()


class EstimatorSection(AnyTrainer):
    """Base of the sections that pass parameters on to an estimator."""

    parameters: dict[str, Any] = Field(default={})

    @model_validator(mode="before")
    @classmethod
    def _parameters_apart(cls, given: Any) -> Any:
        strange = [name for name in given if name not in cls.model_fields] if isinstance(given, dict) else []
        if strange:
            raise ValueError(
                f"{strange[0]!r} is not a key here; if the estimator takes it, write "
                f"parameters: {{{strange[0]}: {given[strange[0]]}}}."
            )
        return given
