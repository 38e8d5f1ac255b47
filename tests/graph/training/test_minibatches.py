from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import k_hop_subgraph

from glasshouse import Evaluation
from glasshouse.core.errors import InputError
from glasshouse.graph import audit
from glasshouse.graph.data.population import induced
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.training.minibatches import Neighbors, RandomNodes, training_steps
from glasshouse.graph.training.setting import Setting, node_accuracy
from glasshouse.graph.training.trainer import GNNTrainer, adam

DATA = citation_graph(nodes=120, classes=3, words=50, topic_words=20)
MEMBERS = np.random.default_rng(0).permutation(120) < 60
CPU = torch.device("cpu")
WHOLE = [RandomNodes(parts=1), Neighbors(fanout=(-1,) * 60, size=120)]


def same(first: nn.Module, second: nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def random_edges(nodes: int, edges: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, nodes, (2, edges))


@given(st.integers(2, 30), st.integers(0, 80), st.integers(1, 5), st.integers(0, 99))
def test_random_parts_hold_each_node_once_with_all_edges_inside(nodes: int, edges: int, parts: int, seed: int) -> None:
    parts = min(parts, nodes // 2)
    pairs, counted = random_edges(nodes, edges, seed), np.random.default_rng(seed).random(nodes) < 0.5
    found = list(RandomNodes(parts=parts).parts_of(pairs, counted)(np.random.default_rng(seed)))
    assert sorted(node for part in found for node in part.nodes.tolist()) == list(range(nodes))
    assert max(len(part.nodes) for part in found) - min(len(part.nodes) for part in found) <= 1
    for part in found:
        inside = set(part.nodes.tolist())
        assert part.edges.tolist() == [e for e, (a, b) in enumerate(pairs.T.tolist()) if a in inside and b in inside]
        assert (part.counted == counted[part.nodes]).all()
        assert (np.diff(part.nodes) > 0).all()


@given(st.integers(2, 25), st.integers(0, 90), st.integers(1, 4), st.integers(2, 9), st.integers(0, 99))
def test_sampled_neighbours_are_those_of_a_plain_walk(nodes: int, edges: int, most: int, size: int, seed: int) -> None:
    """Hop by hop: whoever is reached has all of its incoming edges, or as many as are allowed."""
    pairs, counted = random_edges(nodes, edges, seed), np.random.default_rng(seed).random(nodes) < 0.7
    fanout = (most, -1, most)
    found = list(Neighbors(fanout=fanout, size=size).parts_of(pairs, counted)(np.random.default_rng(seed)))
    centres = [part.nodes[part.counted].tolist() for part in found]
    assert sorted(node for some in centres for node in some) == np.flatnonzero(counted).tolist()
    assert all(len(some) <= size for some in centres)
    for part, some in zip(found, centres, strict=True):
        taken, reached, frontier = set(part.edges.tolist()), set(some), set(some)
        assert len(taken) == len(part.edges)
        explained: set[int] = set()
        for allowed in fanout:
            senders = set()
            for node in frontier:
                incoming = [e for e in range(edges) if pairs[1, e] == node]
                own = taken.intersection(incoming)
                assert len(own) == (len(incoming) if allowed == -1 else min(allowed, len(incoming)))
                explained |= own
                senders |= {int(pairs[0, e]) for e in own}
            frontier = senders - reached
            reached |= senders
        assert explained == taken
        assert part.nodes.tolist() == sorted(reached)


def test_all_neighbours_are_pygs_subgraph_of_some_hops() -> None:
    edges, counted = DATA.edge_index.numpy(), np.arange(120) < 5
    part = next(Neighbors(fanout=(-1, -1)).parts_of(edges, counted)(np.random.default_rng(0)))
    nodes, _, _, _ = k_hop_subgraph(list(range(5)), 2, DATA.edge_index)
    assert part.nodes.tolist() == nodes.tolist()


def test_few_of_many_neighbours_are_drawn_evenly() -> None:
    edges = np.stack([np.arange(1, 11), np.zeros(10, dtype=np.int64)])
    draw = Neighbors(fanout=(3,)).parts_of(edges, np.arange(11) == 0)
    counts = np.zeros(11)
    for seed in range(2000):
        counts[next(draw(np.random.default_rng(seed))).nodes] += 1
    assert counts[0] == 2000
    assert np.abs(counts[1:] / 2000 - 0.3).max() < 0.05


def test_a_step_has_the_values_of_its_edges() -> None:
    weighted = DATA.clone()
    weighted.edge_weight = torch.rand(DATA.num_edges)
    graph = induced(weighted, MEMBERS)
    steps = training_steps(RandomNodes(parts=3), graph, graph.y >= 0, seed=0, device=CPU)
    for step in steps(1):
        assert len(step.graph.edge_weight) == step.graph.num_edges
        for (a, b), weight in zip(step.graph.edge_index.T.tolist(), step.graph.edge_weight, strict=True):
            ends = [(graph.x == step.graph.x[node]).all(1).nonzero().ravel().tolist() for node in (a, b)]
            between = [e for e, (u, v) in enumerate(graph.edge_index.T.tolist()) if u in ends[0] and v in ends[1]]
            assert graph.edge_weight is not None
            assert weight in graph.edge_weight[between]


class Weighted(nn.Module):
    """A module of a user, with dropout, BatchNorm and weights of edges."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = GCNConv(50, 8), nn.BatchNorm1d(8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Any:
        hidden = self.norm(self.first(x, edge_index, edge_weight)).relu()
        return self.last(nn.functional.dropout(hidden, training=self.training), edge_index, edge_weight)


@pytest.mark.parametrize("batches", WHOLE, ids=["random", "neighbours"])
@pytest.mark.parametrize("setting", ["inductive", "transductive"])
@pytest.mark.parametrize("model", [None, Weighted])
def test_one_part_is_the_full_batch_to_the_last_bit(batches: Any, setting: Setting, model: Any) -> None:
    data = DATA.clone()
    if model is not None:
        data.edge_weight = torch.rand(DATA.num_edges, generator=torch.Generator().manual_seed(0))
    nodes = data if setting == "inductive" else _joined(data)
    options: dict[str, Any] = {"model": model, "hidden": 8, "epochs": 4, "device": "cpu", "setting": setting}
    full, parts = (GNNTrainer(**options, batches=one)(nodes, MEMBERS, 3) for one in (None, batches))
    assert same(full, parts)


def _joined(data: Data) -> Data:
    """With a ring over all nodes: each of them is then reached from some member."""
    ring = torch.stack([torch.arange(120), (torch.arange(120) + 1) % 120])
    joined = data.clone()
    joined.edge_index = torch.cat([data.edge_index, ring, ring.flip(0)], dim=1)
    if "edge_weight" in data:
        joined.edge_weight = torch.cat([data.edge_weight, torch.ones(240)])
    return joined


@pytest.mark.parametrize("batches", [RandomNodes(parts=3), Neighbors(fanout=(3, 2), size=16)])
def test_parts_are_of_the_members_graph_alone(batches: Any) -> None:
    """Features, labels and edges of non-members are replaced by nonsense; the weights do not change."""
    trainer = GNNTrainer(hidden=8, epochs=3, device="cpu", batches=batches)
    outside = torch.from_numpy(~MEMBERS)
    scrambled = DATA.clone()
    scrambled.x[outside] = torch.nan
    scrambled.y[outside] = 0
    scrambled.edge_index = DATA.edge_index[:, ~outside[DATA.edge_index].any(0)]
    first, other = trainer(DATA, MEMBERS, 0), trainer(scrambled, MEMBERS, 0)
    assert same(first, other)
    assert not same(first, trainer(DATA, MEMBERS, 1))
    assert not same(first, GNNTrainer(hidden=8, epochs=3, device="cpu")(DATA, MEMBERS, 0))


def test_members_without_a_label_are_never_a_steps_only_ones() -> None:
    data = DATA.clone()
    data.y[np.flatnonzero(MEMBERS)[1:]] = -1
    for batches in (RandomNodes(parts=10), Neighbors(fanout=(2,), size=4)):
        model = GNNTrainer(hidden=8, epochs=2, device="cpu", batches=batches)(data, MEMBERS, 0)
        assert all(bool(value.isfinite().all()) for value in model.state_dict().values())


@pytest.mark.parametrize("batches", [RandomNodes(parts=3), Neighbors(fanout=(5, 5), size=64)])
def test_training_by_parts_learns_about_as_well_as_all_at_once(batches: Any) -> None:
    data = citation_graph(nodes=600, classes=4, words=100, topic_words=30, mean_degree=8.0)
    members = np.random.default_rng(1).permutation(600) < 300
    found = []
    for one, epochs in ((None, 60), (batches, 20)):
        model = GNNTrainer(hidden=16, epochs=epochs, optimizer=adam(0.02), device="cpu", batches=one)(data, members, 0)
        found.append(node_accuracy(model, data, ~members))
    assert found[0] > 0.8
    assert abs(found[0] - found[1]) < 0.05


def test_an_audit_trains_by_parts_and_shows_it() -> None:
    trainer = GNNTrainer(hidden=8, epochs=5, device="cpu", batches=RandomNodes(parts=2))
    result = audit(DATA, trainer=trainer, attacks=["base"], shadows=2, evaluation=Evaluation(fprs=[0.1]))
    assert "RandomNodes(parts=2)" in result.context.settings["trainer"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomNodes(parts=0), "parts: 0 is too small"),
        (lambda: Neighbors(fanout=()), "fanout: "),
        (lambda: Neighbors(fanout=(5, 0), size=1), "fanout: .*\n.*size: 1 is too small"),
        (lambda: GNNTrainer(epochs=1, batches=RandomNodes(parts=50))(DATA, MEMBERS, 0), "50 parts of 60 nodes; use 30"),
    ],
)
def test_senseless_parts_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
