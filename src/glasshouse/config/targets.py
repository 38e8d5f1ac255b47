"""The ``target`` section: which model is audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from glasshouse.arrays import BoolArray
from glasshouse.config.imports import imported
from glasshouse.config.strict import Share, Strict
from glasshouse.errors import InputError
from glasshouse.population import Population, random_subsets

__all__ = ["PythonTarget", "Target", "TrainedTarget"]


class TrainedTarget(Strict):
    """A target trained here, on the members that the data names or on a random share."""

    kind: Literal["train"] = "train"
    fraction: Share = 0.5

    def load(self, population: Population, members: BoolArray | None, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """No model yet, and the members that will train it."""
        if members is None:
            members = random_subsets(len(population), models=1, fraction=self.fraction, seed=seed)[0]
        return None, members


class PythonTarget(Strict):
    """The user's own model: ``module:function``, where the function gives ``(model, members)``."""

    kind: Literal["python"]
    factory: str

    def load(self, population: Population, members: BoolArray | None, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """Whatever the function gives."""
        made = imported(self.factory, folder, "target.factory")()
        if not isinstance(made, tuple) or len(made) != 2:
            raise InputError(f"target.factory: {self.factory} must give a pair (model, members).")
        return made


Target = Annotated[TrainedTarget | PythonTarget, Field(discriminator="kind")]
