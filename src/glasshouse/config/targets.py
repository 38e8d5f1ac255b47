"""The ``target`` section: which model is audited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from glasshouse.arrays import BoolArray
from glasshouse.config.imports import called
from glasshouse.config.strict import Share, Strict
from glasshouse.datasets import Dataset
from glasshouse.errors import InputError
from glasshouse.population import as_members, random_subsets

__all__ = ["PythonTarget", "Target", "TrainedTarget"]


class TrainedTarget(Strict):
    """A target trained here, on the members that the data names or on a random share."""

    kind: Literal["train"] = "train"
    fraction: Share = 0.5

    def load(self, data: Dataset, members: BoolArray | None, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """No model yet, and the members that will train it."""
        if members is not None and "fraction" in self.model_fields_set:
            raise InputError("target.fraction: the data already says who the members are. Leave one of them out.")
        if members is None:
            members = random_subsets(len(data.population), models=1, fraction=self.fraction, seed=seed)[0]
        return None, members


class PythonTarget(Strict):
    """The user's own model: ``module:function``, where the function gives ``(model, members)``."""

    kind: Literal["python"]
    factory: str

    def load(self, data: Dataset, members: BoolArray | None, folder: Path, seed: int) -> tuple[Any, BoolArray]:
        """Whatever the function gives; features that its model cannot know, and members that differ, are refused."""
        if data.remade:
            raise InputError(
                f"target.factory: the model cannot know how Glasshouse made features of {data.remade[0]!r} and other "
                f"columns. Give the records as the model takes them: data: {{name: python, factory: …}}, or an .npz."
            )
        made = called(self.factory, folder, "target.factory")
        if not isinstance(made, tuple) or len(made) != 2:
            raise InputError(f"target.factory: {self.factory} must give a pair (model, members).")
        told = as_members(made[1], (len(data.population),), place="target.factory: members", ids=data.population.ids)
        if members is not None and not np.array_equal(members, told):
            raise InputError(
                f"target.factory: the members of {self.factory} are not those of the data. Leave the data's out."
            )
        return made


Target = Annotated[TrainedTarget | PythonTarget, Field(discriminator="kind")]
