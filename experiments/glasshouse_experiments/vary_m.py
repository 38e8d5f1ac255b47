"""How much G-BASE gains from more sampled training sets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from glasshouse.core.arrays import BoolArray
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.sampling.samplers import SAMPLERS as KNOWN
from glasshouse.graph.sampling.samplers import SamplingRequest, draw
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.experiment import experiment
from glasshouse_experiments.lineup import Lineup, modes
from glasshouse_experiments.measures import collected, ranking

__all__ = ["First", "vary_m"]

COUNTS = (4, 8, 16, 32)

# the paper's sampler for each data set, and its name in the paper
SAMPLERS: dict[str, tuple[str, str]] = {
    "flickr": ("G-BASE (MI)", "independent"),
    "amazon-photo": ("G-BASE (MIA)", "mia"),
    "pubmed": ("G-BASE (Gibbs)", "gibbs"),
}


@dataclass(frozen=True)
class First:
    """The first training sets of the largest number that is needed, which are drawn once for each target and mode.

    Chains do not know of each other, so the first four of 32 are the four that would have been drawn alone.

    Args:
        name: of the sampler.
        most: how many are drawn.

    Example:
        >>> First("gibbs", 32)
        First(name='gibbs', most=32)
    """

    name: str
    most: int
    drawn: dict[str, tuple[Scene, BoolArray]] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    def __call__(self, scene: Scene, request: SamplingRequest) -> BoolArray:
        """Masks [M, n]."""
        kept, masks = self.drawn.get(request.mode, (None, None))
        if kept is not scene or masks is None:
            masks = draw(KNOWN.find(self.name), scene, dataclasses.replace(request, samples=self.most)).masks
            self.drawn[request.mode] = scene, masks
        return masks[: request.samples]


@experiment("vary-m", datasets=("cora", "pubmed", "flickr", "amazon-photo", "synthetic"))
def vary_m(bench: Bench) -> list[Cell]:
    """M = 4, 8, 16 and 32, online and offline."""
    name, sampler = SAMPLERS.get(bench.setting.data, ("G-BASE (MIA)", "mia"))
    first = First(sampler, max(COUNTS))
    attacks: Lineup = {
        (mode, count, f"M={samples}", name): GBASE(mode=mode, sampler=first, samples=samples)
        for samples in COUNTS
        for mode, count in modes(8)
    }
    return collected(bench.judged(attacks), ranking, table="vary-M", dataset=bench.setting.paper_name)
