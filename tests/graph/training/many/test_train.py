from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GeneralConv

from glasshouse.core.errors import InputError
from glasshouse.data import complementary_halves
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.models.networks import GNN, NETWORKS
from glasshouse.graph.training.many.graph import drop
from glasshouse.graph.training.trainer import GNNTrainer, adam, sgd
from glasshouse.training.batches import say_once
from tests.graph.training.many.plans import train_by_plan

SPARSE = citation_graph(nodes=129, classes=3, words=400, topic_words=20)  # halves of 64 and 65: two padded sizes
DENSE = citation_graph(nodes=129, classes=3, words=10, topic_words=5)
MEMBERS = complementary_halves(129, models=4, seed=0)
SEEDS = (3, 1, 4, 15)


def states(models: Iterable[nn.Module]) -> list[Tensor]:
    return [tensor for model in models for tensor in model.state_dict().values()]


def one_at_a_time(trainer: GNNTrainer, data: Data) -> list[nn.Module]:
    return [trainer(data, who, seed) for who, seed in zip(MEMBERS, SEEDS, strict=True)]


def assert_same_as_one_at_a_time(trainer: GNNTrainer, data: Data) -> None:
    (batched, _), alone = train_by_plan(trainer, data, MEMBERS, SEEDS), one_at_a_time(trainer, data)
    for ours, theirs in zip(states(batched), states(alone), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    for one, other in zip(batched, alone, strict=True):
        assert not one.training
        torch.testing.assert_close(one(data.x, data.edge_index), other(data.x, data.edge_index), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["sparse", "dense"])
@pytest.mark.parametrize("architecture", NETWORKS.names())
def test_batched_gnns_are_those_trained_one_at_a_time(architecture: str, data: Data) -> None:
    trainer = GNNTrainer(architecture=architecture, hidden=8, dropout=0, epochs=10, device="cpu")
    assert_same_as_one_at_a_time(trainer, data)


@pytest.mark.parametrize("architecture", NETWORKS.names())
def test_three_layers_and_another_optimizer_can_be_batched_too(architecture: str) -> None:
    trainer = GNNTrainer(
        architecture=architecture, hidden=8, layers=3, dropout=0, epochs=5, optimizer=sgd(lr=0.05), device="cpu"
    )
    assert_same_as_one_at_a_time(trainer, SPARSE)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), architecture=st.sampled_from(sorted(NETWORKS.names())))
def test_loops_repeated_edges_lone_nodes_and_missing_labels_change_nothing(seed: int, architecture: str) -> None:
    random = np.random.default_rng(seed)
    edges = random.integers(129, size=(2, 200))  # directed, some of them loops
    data = Data(
        x=torch.from_numpy(random.normal(size=(129, 30)) * (random.random((129, 30)) < 0.05)).float(),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[:, :20]], axis=1)),
        y=torch.from_numpy(random.integers(-1, 3, size=129)),
    )
    trainer = GNNTrainer(architecture=architecture, hidden=8, dropout=0, epochs=3, optimizer=sgd(0.05), device="cpu")
    assert_same_as_one_at_a_time(trainer, data)


def test_same_seeds_same_bytes_and_the_users_stream_and_threads_stay() -> None:
    trainer = GNNTrainer(hidden=8, epochs=10, optimizer=adam(0.01), device="cpu")
    torch.manual_seed(7)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(7)
    first, again = (trainer.train_many(SPARSE, MEMBERS, SEEDS) for _ in range(2))
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads
    assert all(torch.equal(a, b) for a, b in zip(states(first), states(again), strict=True))


def test_companions_change_a_model_by_rounding_alone() -> None:
    """With dropout too: each model draws from a stream of its own."""
    trainer = GNNTrainer(hidden=8, epochs=10, optimizer=adam(0.01), device="cpu")
    many = trainer.train_many(SPARSE, MEMBERS, SEEDS)
    few = trainer.train_many(SPARSE, MEMBERS[[3, 1]], [SEEDS[3], SEEDS[1]])
    for ours, theirs in zip(states(few), states([many[3], many[1]]), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


def test_training_sees_the_members_and_the_edges_between_them_only() -> None:
    trainer = GNNTrainer(hidden=8, epochs=3, device="cpu")
    scrambled = SPARSE.clone()
    outside = torch.from_numpy(~MEMBERS[0])
    scrambled.x[outside] = torch.nan
    scrambled.y[outside] = (scrambled.y[outside] + 1) % 3
    first, second = (states(trainer.train_many(data, MEMBERS[:1], [1])) for data in (SPARSE, scrambled))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_models_with_dropout_learn_as_well_as_alone() -> None:
    trainer = GNNTrainer(hidden=16, epochs=60, dropout=0.5, optimizer=adam(0.01), device="cpu")

    def accuracy(models: list[nn.Module]) -> float:
        return float(np.mean([(m(SPARSE.x, SPARSE.edge_index).argmax(1) == SPARSE.y).float().mean() for m in models]))

    batched, alone = accuracy(trainer.train_many(SPARSE, MEMBERS, SEEDS)), accuracy(one_at_a_time(trainer, SPARSE))
    assert abs(batched - alone) < 0.1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(share: float) -> None:
    random = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    dropped = drop(torch.ones(2, 333, 301), share, random)
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.03)
    assert not torch.equal(dropped[0], dropped[1])


class _Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(400, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)  # type: ignore[no-any-return]


class _Mean(_Own):
    """It looks at the mean over all nodes, which nodes that fill a graph up would change."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.layer(x, edge_index)
        return x - x.mean(dim=0)


class _Noisy(_Own):
    """It draws random numbers in its own way, which no seed of a model decides."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.alpha_dropout(self.layer(x, edge_index), 0.5, training=self.training)


class _Counting(_Own):
    """It does something else if there are many nodes."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index) if x.sum() > 0 else self.layer(-x, edge_index)  # type: ignore[no-any-return]


class _Changing(_Own):
    """Each one has its own slope."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = float(torch.rand(()))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.leaky_relu(self.layer(x, edge_index), self.slope)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"model": lambda: GNN([GeneralConv(400, 3)])}, "of GNN, the layer GeneralConv cannot be trained in one batch"),
        ({"model": lambda: GNN([GATConv(400, 3, aggr="max")])}, "the layer GATConv is used with options"),
        ({"model": _Mean}, "of _Mean, the value mean has not one row per node"),
        ({"model": _Noisy}, "of _Noisy, in a batch, its answers are others"),
        ({"model": _Counting}, "of _Counting, its forward pass cannot be traced"),
        ({"model": _Changing}, "the models are not all of one shape"),
        ({"optimizer": torch.optim.Adafactor}, "the optimizer Adafactor mixes entries"),
    ],
)
def test_what_cannot_be_batched_is_trained_one_at_a_time_and_logged(
    options: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = GNNTrainer(hidden=8, epochs=2, device="cpu", **options)
    say_once.cache_clear()
    with caplog.at_level(logging.INFO, logger="glasshouse"):
        batched = trainer.train_many(SPARSE, MEMBERS, SEEDS)
    assert [reason in record.message for record in caplog.records] == [True]
    alone = one_at_a_time(trainer, SPARSE)
    assert all(torch.equal(a, b) for a, b in zip(states(batched), states(alone), strict=True))


def test_an_own_gnn_of_known_layers_is_batched() -> None:
    module = lambda: GNN([GCNConv(400, 8, bias=False, improved=True), GATConv(8, 3, heads=2, concat=False)])  # noqa: E731
    assert_same_as_one_at_a_time(GNNTrainer(model=module, epochs=5, device="cpu"), SPARSE)


def test_models_that_cannot_be_trained_are_refused() -> None:
    unlabelled = SPARSE.clone()
    unlabelled.y[torch.from_numpy(MEMBERS[1])] = -1
    with pytest.raises(InputError, match="no member has a label"):
        GNNTrainer(hidden=8, epochs=1, device="cpu").train_many(unlabelled, MEMBERS, SEEDS)
    with pytest.raises(InputError, match=r"members: shape \(4, 129\)"):
        GNNTrainer(hidden=8, epochs=1, device="cpu").train_many(SPARSE, MEMBERS, [1, 2])
