"""Small graphs with every ugliness that the rule must survive, and models with weights that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import FloatArray
from glasshouse.core.outputs import losses_from_logits
from glasshouse.graph.models.networks import GNN, NETWORKS, build_gnn
from glasshouse.graph.models.profile import AnyModel, node_logits

FEATURES, CLASSES = 5, 3


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph with masks and targets; the last node is always isolated."""

    data: Data
    masks: Tensor
    nodes: Tensor


@st.composite
def random_cases(draw: st.DrawFn, *, masks: int = 2) -> Case:
    """Sparse graphs of up to 14 nodes: directed or not, with hubs, self-loops, duplicates and isolated nodes."""
    size = draw(st.integers(2, 14))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    edges = torch.randint(0, max(size - 1, 1), (2, draw(st.integers(0, 2 * size))), generator=generator)
    if not draw(st.booleans()):  # mostly, loops come only where they are asked for
        edges = edges[:, edges[0] != edges[1]]
    if draw(st.booleans()):  # a hub
        spokes = torch.arange(1, max(size - 1, 1))
        edges = torch.cat([edges, torch.stack([torch.zeros_like(spokes), spokes])], dim=1)
    if draw(st.booleans()):  # duplicates
        edges = torch.cat([edges, edges[:, ::3]], dim=1)
    if draw(st.sampled_from([True, True, False])):
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    data = Data(
        x=torch.randn(size, FEATURES, generator=generator, dtype=torch.float64),
        edge_index=edges,
        y=torch.randint(0, CLASSES, (size,), generator=generator),
    )
    share = draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
    return Case(
        data=data,
        masks=torch.rand(masks, size, generator=generator) < share,
        nodes=torch.arange(size),
    )


def random_models(
    architecture: str, *, layers: int, count: int = 2, seed: int = 0, dtype: torch.dtype = torch.float64
) -> list[GNN]:
    """Models with biases and weights well away from zero, so that every term of the rule shows.

    In float64 by default: a wrong term then stands out from rounding, which in float32 reaches 1e-4 where losses
    are in the hundreds.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        models = [
            build_gnn(architecture, features=FEATURES, hidden=8, classes=CLASSES, layers=layers) for _ in range(count)
        ]
        for model in models:
            for parameter in model.parameters():
                parameter.data += 0.3 * torch.randn_like(parameter)
    return [model.to(dtype) for model in models]


architectures = st.sampled_from(sorted(NETWORKS.names()))
depths = st.integers(1, 3)
seeds = st.integers(0, 1000)


def node_losses(models: Sequence[AnyModel], data: Data, edges: Tensor | None = None) -> FloatArray:
    """Losses of all models on all nodes, float64 [K, n], for all or some of the edges."""
    labels = data.y.numpy().astype(np.int64)
    return np.stack([losses_from_logits(logits, labels) for logits in node_logits(models, data, edges)])
