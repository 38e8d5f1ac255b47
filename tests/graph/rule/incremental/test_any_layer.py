"""Layers of unknown type: targets share the senders that no toggle changes, and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from glasshouse.graph import toggle_losses
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.ego_nets import draw_ego_nets
from glasshouse.graph.rule.incremental.balls import draw_rings
from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
from glasshouse.graph.rule.question import Hops
from tests.graph.zoo import Differences, Spread


def random_data(seed: int, *, directed: bool = True) -> Data:
    """A random graph with duplicated edges and self-loops."""
    torch.manual_seed(seed)
    edges = erdos_renyi_graph(40, 0.08, directed=directed)
    edges = torch.cat([edges, edges[:, :5], torch.tensor([[0, 1, 2, 2], [0, 1, 2, 2]])], dim=1)
    return Data(x=torch.randn(40, 4, dtype=torch.float64), edge_index=edges, y=torch.randint(3, (40,)))


class Deep(nn.Module):
    """Layers of one type, one after another."""

    def __init__(self, kind: type[nn.Module], layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(kind(4, 4) for _ in range(layers))
        self.out = nn.Linear(4, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x, edge_index))
        found: Tensor = self.out(x)
        return found


@pytest.mark.parametrize("hops", ["model", "affected"])
@pytest.mark.parametrize("kind", [Differences, Spread])
@pytest.mark.parametrize("memory", [2**17, 2**30])
def test_all_signals_are_those_of_the_rule(kind: type[nn.Module], hops: Hops, memory: int) -> None:
    """With a few rows per part, and with all rows in one part."""
    for seed in range(3):
        data = random_data(seed, directed=seed % 2 == 0)
        models = profile_models([Deep(kind, 1 + seed % 3).double().eval() for _ in range(2)], data)
        masks, nodes = torch.rand(2, 40) < 0.6, torch.arange(0, 40, 3)
        found = toggle_losses(models, data, masks, nodes, engine="layered", hops=hops, memory=memory)
        right = toggle_losses(models, data, masks, nodes, engine="reference", hops=hops)
        torch.testing.assert_close(found, right, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("degrees", [0, 1])
def test_shared_nets_hold_the_messages_of_disjoint_ones(degrees: int) -> None:
    """Each wanted row gets the same messages, from senders with equally many of their own; no row is there twice."""
    for seed in range(6):
        data = random_data(seed)
        graph = mask_graph(coalesce(data.edge_index, 40, torch.float32), torch.rand(2, 40) < 0.6)
        rings = draw_rings(graph, torch.arange(0, 80, 7), radius=2)
        wanted, own = rings.balls[2].keys, rings.balls[1].keys
        seen = []
        for keys in (None, own):
            nets = draw_ego_nets(rings, wanted, hops=1, degrees=degrees, counted=degrees == 1, own=keys)
            rows = nets.target * 80 + nets.node
            assert len(rows.unique()) == len(rows)
            count = torch.bincount(nets.edges[1], minlength=len(rows)) if degrees else torch.zeros(len(rows)).long()
            sender, receiver = nets.edges[:, torch.isin(rows[nets.edges[1]], wanted)]
            messages = torch.stack([rows[receiver], nets.node[sender], count[sender]])
            seen.append(sorted(map(tuple, messages.T.tolist())))
            fewer = len(rows)
        assert seen[0] == seen[1]
        assert fewer <= len(wanted) + len(own) + 80


class Precise(Differences):
    """It answers in another type than it is asked in."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x.double(), edge_index)


def test_a_layer_may_answer_in_another_type() -> None:
    data = random_data(0)
    data.x = data.x.float()
    masks, nodes = torch.rand(2, 40) < 0.6, torch.arange(0, 40, 3)
    models = [Precise(4, 3).double().eval() for _ in range(2)]
    found, right = (toggle_losses(models, data, masks, nodes, engine=engine) for engine in ("layered", "reference"))
    torch.testing.assert_close(found, right, atol=1e-9, rtol=1e-9)
