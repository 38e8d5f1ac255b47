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
from glasshouse.graph.rule.toggle import settled_engine, toggle_losses
from glasshouse.randomness import generator

__all__ = ["EngineCheck", "check_engine"]

_TRIPLES = 8
_MASKS = 8  # as G-BASE draws by default; the choice of an engine depends on their number
_TOLERANCE = 1e-3  # of S, or of 1 if S is smaller: float32 stays a hundred times below, a wrong reach is far above


@dataclass(frozen=True)
class EngineCheck:
    """How far the engines were from the rule as written.

    Args:
        triples: how many signals were compared, each of a random model, mask and node.
        largest: their largest difference.
        engines: names of the engines that the audit uses.

    Example:
        >>> EngineCheck(triples=8, largest=2.5e-6, engines=("layered",)).sentence()
        'layered; 8 random signals against the rule as written: largest difference 2.5e-06'
    """

    triples: int
    largest: float
    engines: tuple[str, ...]

    def sentence(self) -> str:
        """For the report."""
        return (
            f"{', '.join(self.engines)}; {self.triples} random signals against the rule as written: largest "
            f"difference {self.largest:.1e}"
        )


def check_engine(models: Sequence[Model], data: Data, *, nodes: IntArray, share: float, seed: int) -> EngineCheck:
    """Compare a few signals of an audit with eq. (6) as it is written; raise if they differ.

    The engine is the one that the audit will use for all its nodes, which need not be the fastest for a few.

    Args:
        models: the audit's target and shadow models.
        data: its graph.
        nodes: the audited nodes.
        share: share of the nodes that are members in a drawn mask.
        seed: of the choice of models, masks and nodes.
    """
    source = generator(seed, "engine check")
    masks = torch.from_numpy(source.random((_MASKS, int(data.num_nodes))) < share)
    some = torch.from_numpy(source.choice(nodes, size=min(len(nodes), _TRIPLES // 2), replace=False))
    chosen = [models[k] for k in source.choice(len(models), size=min(2, len(models)), replace=False)]
    work = _MASKS * len(models) ** 2  # as `Scene.engine_for` has it
    names = [settled_engine([model], data, masks.numpy(), nodes, work=work, least=_MASKS) for model in chosen]
    fast = [
        toggle_losses([model], data, masks[:2], some, engine=name) for model, name in zip(chosen, names, strict=True)
    ]
    pairs = [(i, j) for j in range(len(some)) for i in range(2)][:_TRIPLES]
    differences = []
    for turn, (i, j) in enumerate(pairs):
        k = turn % len(chosen)
        wanted = float(reference_losses([chosen[k]], data, masks[[i]], some[[j]])[0, 0, 0])
        differences.append(abs(float(fast[k][0, i, j]) - wanted) / max(1.0, abs(wanted)))
    largest = float(np.max(differences))
    if not largest <= _TOLERANCE:
        raise InputError(
            f"model: the fast engine differs from the rule as written by {largest:.2g} on random nodes of this audit, "
            f'so its scores would be wrong. Use {{"name": "g-base", "engine": "reference"}}, which is slow, and report '
            f"this fault."
        )
    return EngineCheck(len(pairs), largest, tuple(dict.fromkeys(names)))
