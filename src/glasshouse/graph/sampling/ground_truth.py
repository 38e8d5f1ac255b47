"""The target's own training set as the only sample: a limit for comparison that no attacker reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.errors import InputError
from glasshouse.graph.sampling.sampler import Samples, SamplingRequest, register_sampler
from glasshouse.graph.scene import Scene
from glasshouse.population import as_members

__all__ = ["GroundTruth"]


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Returns the given members of the target; G-BASE with it is never the strongest attack.

    Args:
        members: [n] who trained the target. A scene does not hold it.

    Example:
        >>> GroundTruth([True, False]).name
        'truth'
    """

    name: ClassVar[str] = "truth"

    members: ArrayLike = field(repr=False)

    def __call__(self, scene: Scene, request: SamplingRequest) -> Samples:
        """The same mask M times."""
        known = as_members(self.members, (int(scene.data.num_nodes),), place="members")
        return Samples(np.tile(known, (request.samples, 1)))


@register_sampler("truth")
def _untold(scene: Scene, request: SamplingRequest) -> NoReturn:
    """The name that audits replace by `GroundTruth`, because they know the members."""
    raise InputError(
        "sampler: truth needs the target's members, which an attack does not know. Pass sampler=GroundTruth(members)."
    )
