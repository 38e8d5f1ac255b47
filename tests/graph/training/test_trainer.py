from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from glasshouse.core.errors import InputError
from glasshouse.core.randomness import seed_for
from glasshouse.graph.data.population import induced
from glasshouse.graph.data.synthetic import citation_graph
from glasshouse.graph.models.networks import GNN, NETWORKS
from glasshouse.graph.training.setting import Setting
from glasshouse.graph.training.trainer import GNNTrainer, OptimizerFactory, adam, batching_obstacle, sgd

DATA = citation_graph(nodes=120, classes=3, words=50, topic_words=20)
MEMBERS = np.random.default_rng(0).permutation(120) < 60
QUICK = GNNTrainer(hidden=8, epochs=5, optimizer=adam(lr=0.01), device="cpu")


def weights(model: nn.Module) -> list[Tensor]:
    return [parameter.detach() for parameter in model.parameters()]


def same(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(first), weights(second), strict=True))


@pytest.mark.parametrize("architecture", NETWORKS.names())
def test_every_architecture_gives_a_gnn_in_evaluation_mode_with_a_logit_for_each_class(architecture: str) -> None:
    model = GNNTrainer(architecture=architecture, hidden=8, layers=3, epochs=2, device="cpu")(DATA, MEMBERS, 0)
    assert isinstance(model, GNN)
    assert not model.training
    assert model.hops == 3
    assert model(DATA.x, DATA.edge_index).shape == (120, 3)


def test_same_seed_same_weights_and_another_seed_another_model() -> None:
    first, again, other = (QUICK(DATA, MEMBERS, seed) for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)


def test_training_leaves_the_users_random_stream_and_threads_alone() -> None:
    torch.manual_seed(7)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(7)
    QUICK(DATA, MEMBERS, 0)
    assert torch.rand(1) == expected
    assert torch.get_num_threads() == threads


def test_training_sees_the_members_and_the_edges_between_them_only() -> None:
    """Features, labels and edges of non-members are replaced by nonsense; the weights do not change."""
    outside = torch.from_numpy(~MEMBERS)
    scrambled = DATA.clone()
    scrambled.x[outside] = torch.nan
    scrambled.y[outside] = (scrambled.y[outside] + 1) % 3
    touched = outside[DATA.edge_index].any(0)
    some = outside.nonzero().squeeze(1)
    everywhere = torch.stack([some, torch.from_numpy(np.flatnonzero(MEMBERS))])  # each non-member joined to a member
    scrambled.edge_index = torch.cat([everywhere, DATA.edge_index[:, ~touched], everywhere.flip(0)], dim=1)
    assert same(QUICK(DATA, MEMBERS, 0), QUICK(scrambled, MEMBERS, 0))


def test_an_edge_between_members_matters() -> None:
    without = DATA.clone()
    inside = torch.from_numpy(MEMBERS)[DATA.edge_index].all(0)
    without.edge_index = DATA.edge_index[:, ~inside]
    assert not same(QUICK(DATA, MEMBERS, 0), QUICK(without, MEMBERS, 0))


@pytest.mark.parametrize("optimizer", [adam(lr=0.01), sgd(lr=0.3)])
def test_it_learns_its_members(optimizer: object) -> None:
    trainer = GNNTrainer(hidden=32, epochs=100, optimizer=optimizer, device="cpu")  # type: ignore[arg-type]
    graph = induced(DATA, MEMBERS)
    right = trainer(DATA, MEMBERS, 0)(graph.x, graph.edge_index).argmax(1) == graph.y
    assert right.double().mean() > 0.95


def test_a_module_of_ones_own_is_trained_too() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(50, 3)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.linear(x)  # type: ignore[no-any-return]

    trainer = GNNTrainer(model=Own, epochs=3, device="cpu")
    assert isinstance(trainer(DATA, MEMBERS, 0), Own)
    assert same(trainer(DATA, MEMBERS, 0), trainer(DATA, MEMBERS, 0))


def test_members_without_a_label_pass_on_their_features_but_have_no_loss() -> None:
    unlabelled = DATA.clone()
    unlabelled.y[np.flatnonzero(MEMBERS)[:10]] = -1
    model = QUICK(unlabelled, MEMBERS, 0)
    assert all(bool(torch.isfinite(weight).all()) for weight in weights(model))
    assert not same(model, QUICK(DATA, MEMBERS, 0))


def test_watching_does_not_change_what_is_trained() -> None:
    seen = []
    watched = QUICK(DATA, MEMBERS, 0, after_epoch=lambda epoch, model: seen.append((epoch, model.training)))
    assert seen == [(epoch, False) for epoch in range(1, 6)]
    assert same(watched, QUICK(DATA, MEMBERS, 0))


def test_layers_keep_nothing_of_the_graph_that_they_were_trained_on() -> None:
    model = GNNTrainer(architecture="gcn", hidden=4, epochs=2, device="cpu")(DATA, MEMBERS, 0)
    layers = [layer for layer in model.modules() if isinstance(layer, GCNConv)]
    assert [(layer.cached, layer._cached_edge_index) for layer in layers] == [(False, None)] * 2


def test_the_induced_graph_equals_that_of_pytorch_geometric() -> None:
    graph, theirs = induced(DATA, MEMBERS), DATA.subgraph(torch.from_numpy(MEMBERS))
    assert torch.equal(graph.x, theirs.x)
    assert torch.equal(graph.edge_index, theirs.edge_index)
    assert torch.equal(graph.y, theirs.y)


def test_bad_settings_are_all_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        GNNTrainer(hidden=0, epochs=0, dropout=1.0)
    assert [fault.split(":")[0] for fault in caught.value.faults] == ["hidden", "epochs", "dropout"]


def changed(**fields: Tensor | None) -> Data:
    data = DATA.clone()
    for name, value in fields.items():
        data[name] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(y=None), "x, edge_index and y are all needed"),
        (changed(y=torch.zeros(120, 2)), r"data.y: has shape \(120, 2\)"),
        (changed(y=torch.full((120,), -1)), "no member has a label"),
        (changed(edge_index=torch.tensor([[0], [120]])), "outside 0 to 119"),
        (changed(x=torch.full((120, 50), torch.inf)), r"data.x: node \d+ has a NaN or infinite"),
    ],
)
def test_a_graph_that_cannot_be_trained_on_is_refused_with_a_reason(data: Data, message: str) -> None:
    with pytest.raises(InputError, match=message):
        QUICK(data, MEMBERS, 0)


def test_a_mask_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"members: shape \(119,\)"):
        QUICK(DATA, MEMBERS[1:], 0)


def test_a_misspelt_architecture_is_answered_with_a_suggestion() -> None:
    with pytest.raises(InputError, match='Did you mean "gcn"'):
        GNNTrainer(architecture="gcnn")


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = GCNConv(50, 8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        x = self.first(x, edge_index, edge_weight).relu()
        return self.last(x, edge_index, edge_weight)  # type: ignore[no-any-return]


class OnData(Weighted):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.edge_weight)


@pytest.mark.parametrize("network", [Weighted, OnData])
@pytest.mark.parametrize("setting", ["inductive", "transductive"])
def test_weights_of_edges_are_those_of_a_training_written_by_hand(network: type[Weighted], setting: Setting) -> None:
    weighted, everyone = changed(edge_weight=torch.rand(DATA.num_edges, dtype=torch.float64)), np.ones(120, np.bool_)
    trainer = GNNTrainer(model=network, epochs=6, optimizer=sgd(lr=0.3), device="cpu", setting=setting)
    found, *_ = trainer.train_many(weighted, np.stack([MEMBERS, ~MEMBERS]), [3, 4])
    with torch.random.fork_rng():
        torch.manual_seed(seed_for(3, "weights"))
        by_hand = Weighted()
    part = weighted.subgraph(torch.from_numpy(MEMBERS if setting == "inductive" else everyone))
    counted = torch.from_numpy(everyone[: part.num_nodes] if setting == "inductive" else MEMBERS)
    optimizer = torch.optim.SGD(by_hand.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-5)
    for _ in range(6):
        optimizer.zero_grad()
        logits = by_hand(part.x, part.edge_index, part.edge_weight.float())
        nn.functional.cross_entropy(logits[counted], part.y[counted]).backward()
        optimizer.step()
    for trained in (found, trainer(weighted, MEMBERS, 3)):  # together with another model, and by itself
        for one, other in zip(weights(trained), weights(by_hand), strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    assert not same(found, trainer(DATA if network is Weighted else changed(edge_weight=None), MEMBERS, 3))
    assert trainer.metrics(weighted, MEMBERS, found).keys() == {"train_accuracy", "test_accuracy"}


@pytest.mark.parametrize("factory", [adam, sgd])
def test_weights_decay_where_nothing_is_learned(factory: Callable[..., OptimizerFactory]) -> None:
    for decay, shrinks in ((0.1, True), (0.0, False)):
        weight = nn.Parameter(torch.ones(3))
        weight.grad = torch.zeros(3)
        factory(lr=0.1, weight_decay=decay)([weight]).step()
        assert bool((weight < 1).all()) is shrinks


def test_a_network_given_as_an_architecture_is_refused_with_the_place_for_it() -> None:
    with pytest.raises(InputError, match=r"architecture: .* is not the name of a network.* as model="):
        GNNTrainer(architecture=lambda: nn.Linear(2, 2))  # type: ignore[arg-type]


def test_each_step_leaves_out_other_edges_and_answers_use_all_of_them() -> None:
    """The counts of edges that the network sees: about three quarters of them in training, all of them afterwards."""
    seen: list[tuple[bool, int]] = []

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(50, 3)

        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
            assert edge_weight.shape == edge_index.shape[1:]
            seen.append((self.training, edge_index.shape[1]))
            out: Tensor = self.conv(x, edge_index, edge_weight)
            return out

    data = DATA.clone()
    data.edge_weight = torch.ones(data.edge_index.shape[1])
    trainer = GNNTrainer(model=Counting, epochs=30, edge_dropout=0.25, device="cpu")
    trainer(data, MEMBERS, 0)
    everything = induced(data, MEMBERS).edge_index.shape[1]
    counts = [count for training, count in seen if training]
    assert len(set(counts)) > 5, "other edges in each step"
    assert 0.65 < np.mean(counts) / everything < 0.85
    assert {count for training, count in seen if not training} <= {everything}
    assert batching_obstacle(trainer, data, np.stack([MEMBERS, ~MEMBERS])) == "each step leaves out other edges"
    assert same(*(GNNTrainer(hidden=8, epochs=3, edge_dropout=0.5, device="cpu")(DATA, MEMBERS, 1) for _ in range(2)))
    with pytest.raises(InputError, match="edge_dropout: 1.0 is not a share below 1"):
        GNNTrainer(edge_dropout=1.0)
