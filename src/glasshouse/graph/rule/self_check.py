"""Compare the fast engine with the rule as written, on the user's own models and graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.arrays import IntArray
from glasshouse.errors import InputError
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggle import toggle_losses
from glasshouse.randomness import generator

__all__ = ["EngineCheck", "check_engine"]

_TRIPLES = 8
_TOLERANCE = 1e-3  # of S, or of 1 if S is smaller: float32 stays a hundred times below, a wrong reach is far above


@dataclass(frozen=True)
class EngineCheck:
    """How far the engine was from the rule as written.

    Args:
        triples: how many signals were compared, each of a random model, mask and node.
        largest: their largest difference.

    Example:
        >>> EngineCheck(triples=8, largest=2.5e-6).sentence()
        '8 random signals against the rule as written: largest difference 2.5e-06'
    """

    triples: int
    largest: float

    def sentence(self) -> str:
        """For the report."""
        return f"{self.triples} random signals against the rule as written: largest difference {self.largest:.1e}"


def check_engine(models: Sequence[Model], data: Data, *, nodes: IntArray, share: float, seed: int) -> EngineCheck:
    """Compare a few signals of an audit with eq. (6) as it is written; raise if they differ.

    Args:
        models: the audit's target and shadow models.
        data: its graph.
        nodes: the audited nodes.
        share: share of the nodes that are members in a drawn mask.
        seed: of the choice of models, masks and nodes.
    """
    source = generator(seed, "engine check")
    masks = source.random((2, int(data.num_nodes))) < share
    nodes = source.choice(nodes, size=min(len(nodes), _TRIPLES // 2), replace=False)
    chosen = source.choice(len(models), size=min(2, len(models)), replace=False)
    some = [models[k] for k in chosen]
    fast = toggle_losses(some, data, torch.from_numpy(masks), torch.from_numpy(nodes)).cpu().numpy()
    pairs = [(i, j) for j in range(len(nodes)) for i in range(len(masks))][:_TRIPLES]
    differences = []
    for turn, (i, j) in enumerate(pairs):
        k = turn % len(some)
        right = reference_losses([some[k]], data, torch.from_numpy(masks[[i]]), torch.from_numpy(nodes[[j]]))
        wanted = float(right[0, 0, 0])
        differences.append(abs(float(fast[k, i, j]) - wanted) / max(1.0, abs(wanted)))
    largest = float(np.max(differences))
    if not largest <= _TOLERANCE:
        raise InputError(
            f"model: the fast engine differs from the rule as written by {largest:.2g} on random nodes of this audit, "
            f'so its scores would be wrong. Use {{"name": "g-base", "engine": "reference"}}, which is slow, and report '
            f"this fault."
        )
    return EngineCheck(len(pairs), largest)
