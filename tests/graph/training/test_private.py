"""Training with a node-level guarantee: each part of its proof, on small graphs."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.graph import GBASE, PrivateGNNTrainer, Scene, citation_graph
from glasshouse.graph.training.private import (
    NeighborhoodNetwork,
    bounded_edges,
    clipped_sum,
    private_noise,
)

DATA = citation_graph(nodes=150, classes=3)
EVERYONE = np.ones(150, dtype=bool)


def test_degrees_are_bounded_and_every_edge_kept_is_one_of_the_graph() -> None:
    for degree in (1, 3):
        kept = bounded_edges(DATA.edge_index, 150, degree=degree, seed=1)
        assert torch.bincount(kept[0], minlength=150).max() == degree
        assert set(map(tuple, kept.t().tolist())) <= set(map(tuple, DATA.edge_index.t().tolist()))
        assert torch.equal(kept.flip(0).sort(dim=1).values, kept.sort(dim=1).values)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_without_one_node_the_clipped_sum_moves_by_no_more_than_the_proof_says(hops: int) -> None:
    """The sensitivity, tried for every node of a graph of bounded degree, with weights that make clipping matter."""
    trainer = PrivateGNNTrainer(epsilon=1.0, hops=hops, degree=3, clip=0.5)
    edges = bounded_edges(DATA.edge_index, 150, degree=3, seed=0)
    torch.manual_seed(0)
    model = NeighborhoodNetwork(DATA.x.shape[1], 3, hops=hops)
    for parameter in model.parameters():
        parameter.data = 20 * torch.randn_like(parameter)

    def total(nodes: torch.Tensor) -> torch.Tensor:
        part = Data(x=DATA.x, edge_index=edges, num_nodes=150).subgraph(nodes)
        found = clipped_sum(model.layers, model.columns(part.x, part.edge_index), DATA.y[nodes], clip=0.5)
        return torch.cat([one.flatten() for one in found.values()])

    everyone = torch.arange(150)
    whole, bound = total(everyone), 0.5 * (1 + 2 * trainer.touched)
    moves = [float((whole - total(everyone[everyone != node])).norm()) for node in range(0, 150, 3)]
    assert max(moves) <= bound + 1e-5
    assert max(moves) > 0.45  # a node's own gradient is as long as it may be
    assert trainer.touched == {0: 0, 1: 3, 2: 9}[hops]


def test_each_gradient_is_clipped_as_a_loop_over_nodes_does_it() -> None:
    torch.manual_seed(0)
    layers, columns, labels = (
        nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)),
        torch.randn(7, 4),
        torch.arange(7) % 3,
    )
    wanted = {name: torch.zeros_like(value) for name, value in layers.named_parameters()}
    for row, label in zip(columns, labels, strict=True):
        layers.zero_grad()
        nn.functional.cross_entropy(layers(row[None]), label[None]).backward()
        gradients = {name: value.grad for name, value in layers.named_parameters() if value.grad is not None}
        length = torch.cat([one.flatten() for one in gradients.values()]).norm()
        for name, one in gradients.items():
            wanted[name] += one * min(1.0, 0.7 / float(length))
    torch.testing.assert_close(clipped_sum(layers, columns, labels, clip=0.7), wanted)


@pytest.mark.parametrize(("epsilon", "steps"), [(2.0, 30), (8.0, 30), (1.0, 1)])
def test_opacus_accounts_for_the_noise_with_no_less_than_the_claim_and_not_much_more(
    epsilon: float, steps: int
) -> None:
    """Its accountant of Rényi divergences is an upper bound; ours is exact, so that it lies below."""
    accountants = pytest.importorskip("opacus.accountants", reason="Opacus is not installed")
    accountant = accountants.create_accountant("rdp")
    accountant.history = [(private_noise(epsilon, 1e-5, steps), 1.0, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stated = accountant.get_epsilon(delta=1e-5)
    assert epsilon * 0.999 <= stated <= 1.25 * epsilon + 0.1


def test_the_noise_is_that_of_the_claim_and_there_is_none_without_one() -> None:
    trainer = PrivateGNNTrainer(epsilon=4.0, hops=1, degree=2, clip=0.1, epochs=20)
    assert trainer.noise == pytest.approx(private_noise(4.0, 1e-5, 20) * 0.1 * 5)
    assert trainer.claim is not None
    assert (trainer.claim.epsilon, trainer.claim.delta) == (4.0, 1e-5)
    free = PrivateGNNTrainer(epsilon=math.inf)
    assert (free.noise, free.claim) == (0.0, None)


def test_it_learns_is_seeded_and_attacks_look_at_it_as_at_any_model() -> None:
    trainer = PrivateGNNTrainer(epsilon=math.inf, epochs=40)
    members = np.arange(150) % 2 == 0
    models = [trainer(DATA, members, seed) for seed in (0, 0, 1)]
    one, same, other = (model(DATA.x, DATA.edge_index) for model in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert trainer.metrics(DATA, members, models[0])["train_accuracy"] > 0.8
    noisy = PrivateGNNTrainer(epsilon=0.5, epochs=40)(DATA, members, 0)
    assert not torch.allclose(noisy(DATA.x, DATA.edge_index), one, atol=0.1)
    again = trainer.restore(DATA, dict(models[0].state_dict()))
    assert torch.equal(again(DATA.x, DATA.edge_index), one)
    scene = Scene(DATA, models[0], models[1:], [members, ~members])
    fast, slow = (GBASE(samples=1, engine=name).score(scene) for name in ("layered", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-4)


def test_what_has_no_guarantee_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon: -1"):
        PrivateGNNTrainer(epsilon=-1)
    with pytest.raises(InputError) as refused:
        PrivateGNNTrainer(epsilon=1.0, hops=-1, degree=0, clip=0.0)
    assert len(refused.value.faults) == 3
    trainer = PrivateGNNTrainer(epsilon=1.0, epochs=1)
    with pytest.raises(InputError, match="values"):
        trainer(Data(**{**DATA.to_dict(), "edge_weight": torch.ones(DATA.edge_index.shape[1])}), EVERYONE, 0)
    with pytest.raises(InputError, match="a label for every member"):
        trainer(Data(**{**DATA.to_dict(), "y": torch.where(DATA.y == 0, -1, DATA.y)}), EVERYONE, 0)
    with pytest.raises(InputError, match="more noise"):
        private_noise(1e-7, 1e-9, 10_000)
