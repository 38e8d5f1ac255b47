"""Nodes without a label: they send messages, have no loss, and are never audited."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.graph import GBASE, GNN, GNNTrainer, GRegressed, Scene, audit, citation_graph, toggle_losses
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.sampling.samplers import SamplingRequest, base_samples, draw, gibbs_samples, metropolis_samples
from glasshouse.graph.training.setting import Setting
from tests.graph.random_graphs import CLASSES, FEATURES
from tests.graph.simple_graphs import simple_graph

NODES = 120
CONTEXT = np.arange(NODES) % 5 == 0
TRAINER = GNNTrainer(hidden=8, dropout=0.0, epochs=40, device="cpu")


def with_context() -> Data:
    data = citation_graph(nodes=NODES, classes=3)
    data.y[torch.from_numpy(CONTEXT)] = -1
    return data


def by_hand(model: nn.Module, data: Data, mask: Tensor, node: int) -> float:
    """Eq. (6) from two plain forward passes; the sum runs over labelled members within two steps of the node."""
    losses = []
    for inside in (True, False):
        present = mask.clone()
        present[node] = inside
        edges = data.edge_index[:, present[data.edge_index].all(0)]
        with torch.no_grad():
            logits = model(data.x, edges).double()
        losses.append(nn.functional.cross_entropy(logits, data.y.clamp(min=0), reduction="none"))
        if inside:
            near = torch.zeros(len(mask), dtype=torch.bool)
            near[node] = True
            for _ in range(2):
                near[edges[1, near[edges[0]]]] = True
    near[node] = False
    counted = near & mask & (data.y >= 0)
    return float(losses[0][node] + (losses[0] - losses[1])[counted].sum())


@pytest.mark.parametrize("engine", ["reference", "compiled", "layered", "packed", "whole"])
@pytest.mark.parametrize("network", ["gcn", "sage", "gat"])
def test_every_engine_counts_no_loss_of_context(network: str, engine: str) -> None:
    data = simple_graph(size=12, edges=24, seed=3)
    data.y[::3] = -1
    torch.manual_seed(0)
    model = build_gnn(network, features=FEATURES, hidden=4, classes=CLASSES).eval()
    asked = model
    if engine in ("packed", "whole"):

        def asked(x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[misc]
            far = 0 if engine == "packed" else 1e-30 * x.sum()  # looks at all nodes, to no effect
            answer: Tensor = model(x, edge_index)
            return answer + far

    masks = torch.rand(3, 12, generator=torch.Generator().manual_seed(1)) < 0.6
    masks[:, ::3] = True
    nodes = torch.tensor([1, 2, 4, 7, 11])
    found = toggle_losses([asked], data, masks, nodes, engine="auto" if engine == "whole" else engine)
    wanted = [[by_hand(model, data, mask, int(node)) for node in nodes] for mask in masks]
    assert np.allclose(found[0].numpy(), wanted, atol=1e-5)


@pytest.fixture(scope="module")
def scene() -> Scene:
    data, half = with_context(), np.random.default_rng(0).random((2, NODES)) < 0.5
    members = np.concatenate([half, ~half]) | CONTEXT
    *shadows, target = TRAINER.train_many(data, np.concatenate([members, members[:1]]), range(5))
    return Scene(data, target, shadows, members)


def test_sampled_training_sets_hold_the_context_and_simulated_targets_lose_their_complement(scene: Scene) -> None:
    assert scene.nodes.tolist() == np.flatnonzero(~CONTEXT).tolist()
    request = SamplingRequest(samples=2, prior=np.where(CONTEXT, 1.0, 0.5), mode="offline", passes=1, seed=0)
    for sampler in (base_samples, gibbs_samples, metropolis_samples, lambda scene, request: np.zeros((2, NODES), bool)):
        masks = draw(sampler, scene, request).masks
        assert masks[:, CONTEXT].all()
    assert [len(target.view.shadows) for target in scene.simulated()] == [2] * 4
    priors = np.full(NODES, 0.5)
    assert np.array_equal(GRegressed(prior=priors).score(scene), GRegressed().score(scene))


def test_context_that_no_model_saw_is_in_no_training_set(scene: Scene) -> None:
    members = scene.shadow_members & ~CONTEXT
    other = Scene(scene.data, scene.target, scene.shadows, members)
    judged = GBASE(sampler=lambda scene, request: np.ones((8, NODES), bool)).judge(other)
    assert np.isfinite(judged.scores).all()
    request = SamplingRequest(samples=2, prior=np.full(NODES, 0.5), mode="online", passes=1, seed=0)
    assert not draw(lambda scene, request: np.ones((2, NODES), bool), other, request).masks[:, CONTEXT].any()


@pytest.mark.parametrize("setting", ["inductive", "transductive"])
def test_an_audit_trains_shadow_models_with_the_context_and_says_so(setting: Setting) -> None:
    data, seen = with_context(), []

    def trainer(data: Data, members: np.ndarray, seed: int) -> GNN:
        seen.append(members)
        model = GNNTrainer(hidden=8, dropout=0.0, epochs=40, device="cpu", setting=setting)(data, members, seed)
        assert isinstance(model, GNN)
        return model

    attacks = ["base", "lira"] if setting == "transductive" else ["base", "g-base", "g-classifier", "g-stacked"]
    result = audit(data, trainer=trainer, attacks=attacks, shadows=4, setting=setting, progress=False)
    assert all(members[CONTEXT].all() for members in seen)
    assert len(result.records()["id"]) == int((~CONTEXT).sum())
    assert any("24 nodes have no label" in note for note in result.context.notes)
    assert result.table()["auc"].min() > 0.5


def test_context_outside_the_members_trains_nothing_and_a_sample_is_of_labelled_nodes() -> None:
    data, seen = with_context(), []
    members = (np.arange(NODES) % 2 == 0) & ~CONTEXT

    def trainer(data: Data, members: np.ndarray, seed: int) -> nn.Module:
        seen.append(members)
        return TRAINER(data, members, seed)

    result = audit(data, members=members, trainer=trainer, attacks=["base"], shadows=2, nodes=60, progress=False)
    assert not any(members[CONTEXT].any() for members in seen)
    assert len(result.records()["id"]) == 60
    assert not set(map(int, result.records()["id"])) & set(np.flatnonzero(CONTEXT).tolist())
    with pytest.raises(InputError, match="nodes: 1 of 2 have no label and cannot be audited"):
        audit(data, trainer=TRAINER, nodes=[0, 1], progress=False)
