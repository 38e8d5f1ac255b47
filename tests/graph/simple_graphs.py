"""Symmetric graphs without duplicates, as the kernels want them, and the rule in float64 to hold them against."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from glasshouse.graph.models.networks import GNN
from glasshouse.graph.models.profile import ModelProfile, Profiled
from glasshouse.graph.rule.toggling import toggle_losses
from tests.graph.random_graphs import CLASSES, FEATURES, Case

KERNELS = ("gat", "gcn", "sage")


def simple_graph(*, size: int, edges: int, seed: int, hub: bool = False, words: bool = False) -> Data:
    """A random graph whose last node is isolated; features are Gaussian, or few and positive like words."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, max(size - 1, 1), (2, edges), generator=generator)
    if hub:
        spokes = torch.arange(1, max(size - 1, 1))
        pairs = torch.cat([pairs, torch.stack([torch.zeros_like(spokes), spokes])], dim=1)
    pairs = to_undirected(pairs[:, pairs[0] != pairs[1]], num_nodes=size)
    x = torch.randn(size, FEATURES, generator=generator)
    if words:
        x = x.clamp(min=0).mul(2).round()  # zeros and ties
    return Data(x=x, edge_index=pairs, y=torch.randint(0, CLASSES, (size,), generator=generator))


@st.composite
def simple_cases(draw: st.DrawFn) -> Case:
    """Up to 14 nodes, masks from nobody to everybody, every node a target."""
    size, seed = draw(st.integers(2, 14)), draw(st.integers(0, 2**31))
    data = simple_graph(
        size=size, edges=draw(st.integers(0, 2 * size)), seed=seed, hub=draw(st.booleans()), words=draw(st.booleans())
    )
    share = draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
    masks = torch.rand(2, size, generator=torch.Generator().manual_seed(seed + 1)) < share
    return Case(data=data, masks=masks, nodes=torch.arange(size))


def in_float64(models: Sequence[GNN], data: Data) -> tuple[list[GNN], Data]:
    """Copies that compute in float64, and the graph for them."""
    return [copy.deepcopy(m).double() for m in models], Data(x=data.x.double(), edge_index=data.edge_index, y=data.y)


def exact(models: Sequence[GNN], data: Data, masks: Tensor, nodes: Tensor) -> Tensor:
    """The rule as written, in float64."""
    return toggle_losses(*in_float64(models, data), masks, nodes, engine="reference")


def unmeasured(models: Sequence[Any]) -> list[Profiled]:
    """Models for the kernels, which know our own networks without a profile."""
    return [Profiled(model, ModelProfile()) for model in models]
