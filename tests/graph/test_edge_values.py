"""Weights and features of edges: every model gets those of exactly the edges that it is asked about."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from glasshouse.core.errors import InputError
from glasshouse.core.outputs import tensor_losses
from glasshouse.graph import Scene, build_gnn, toggle_losses
from glasshouse.graph.attacks.stacking.pool_signals import sampled_answers
from glasshouse.graph.models.profile import ModelProfile, profile_models
from glasshouse.graph.sampling.chain_state import forward_losses
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks
from tests.graph.sampling.plain_chains import plain_gibbs, plain_metropolis
from tests.graph.test_zoo import engines_in_company, made
from tests.graph.weighted_zoo import CLASSES, FEATURES, KINDS, WEIGHTED_ZOO, Animal

NODES = 20


def graph(values: tuple[str, ...], seed: int, *, directed: bool) -> Data:
    """Random edges with two self-loops and repeated edges; no two edges have the same values."""
    source = torch.Generator().manual_seed(seed)
    edges = torch.randint(NODES, (2, 24), generator=source)
    edges = torch.cat([edges, torch.tensor([[3, 8], [3, 8]]), edges[:, :5]], dim=1)
    if not directed:
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    count = edges.shape[1]
    data = Data(
        x=torch.randn(NODES, FEATURES, generator=source, dtype=torch.float64),
        edge_index=edges,
        y=torch.randint(CLASSES, (NODES,), generator=source),
    )
    if "edge_weight" in values:
        data.edge_weight = 0.2 + 2 * torch.rand(count, generator=source, dtype=torch.float64)
    if "edge_attr" in values:
        data.edge_attr = torch.randn(count, 4, generator=source, dtype=torch.float64)
    if "kinds" in values:
        data.edge_attr = torch.randint(KINDS, (count,), generator=source)
    return data


def by_hand(animal: Animal, model: Any, data: Data, present: Tensor) -> Tensor:
    """Losses [n] on the induced graph by PyTorch Geometric's own `subgraph`; 0 for absent nodes."""
    edges, _, kept = subgraph(present, data.edge_index, relabel_nodes=True, num_nodes=NODES, return_edge_mask=True)
    values = {name: data[name][kept] for name in ("edge_weight", "edge_attr") if name in data}
    answer = animal.call(model, Data(x=data.x[present], edge_index=edges, **values)).detach()
    found = torch.zeros(NODES, dtype=torch.float64)
    found[present] = tensor_losses(answer, data.y[present])
    return found


def profile_on(data: Data, model: Any) -> ModelProfile:
    return profile_models([model], data)[0].profile


def rule_as_written(animal: Animal, model: Any, data: Data, mask: Tensor, node: int) -> float:
    """Eq. (6), with nothing of Glasshouse's engines."""
    inside, outside = mask.clone(), mask.clone()
    inside[node], outside[node] = True, False
    loss_in, loss_out = (by_hand(animal, model, data, present) for present in (inside, outside))
    near, links = {node}, data.edge_index[:, inside[data.edge_index].all(0)].T.tolist()
    for _ in range(NODES if animal.hops is None else animal.hops):
        near |= {b for a, b in links if a in near}
    summed = [u for u in range(NODES) if u != node and outside[u] and (animal.hops is None or u in near)]
    return float(loss_in[node] + (loss_in - loss_out)[summed].sum())


@pytest.mark.parametrize("directed", [False, True], ids=["both ways", "one way"])
@pytest.mark.parametrize("name", WEIGHTED_ZOO)
def test_signals_use_the_values_of_exactly_the_present_edges(name: str, directed: bool) -> None:
    animal = WEIGHTED_ZOO[name]
    data = graph(animal.values, len(name), directed=directed)
    model = made(animal.make, 1, torch.float64)
    masks, nodes = (
        torch.rand(2, NODES, generator=torch.Generator().manual_seed(5)) < 0.6,
        torch.tensor([0, 3, 7, 8, 15]),
    )
    wanted = [[rule_as_written(animal, model, data, mask, node) for node in nodes.tolist()] for mask in masks]
    known = profile_models([model], data)
    for engine in ("auto", "reference", *(["packed"] if animal.hops else [])):
        found = toggle_losses(known, data, masks, nodes, engine=engine)[0]
        torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64), atol=1e-9, rtol=0)
    profile = known[0].profile
    assert profile.everywhere if animal.hops is None else profile.hops == animal.hops


@pytest.mark.parametrize("name", WEIGHTED_ZOO)
def test_nodes_toggled_together_get_the_answers_that_each_gets_alone(name: str) -> None:
    animal = WEIGHTED_ZOO[name]
    models = [made(animal.make, seed, torch.float64) for seed in (1, 2)]
    able = ["whole"] if animal.hops is None else ["layered", "packed"]
    found = engines_in_company(models, graph(animal.values, len(name), directed=len(name) % 2 == 0))
    assert found == (able if isinstance(models[0], nn.Module) else able[-1:])


def test_values_matter_to_the_models_that_take_them() -> None:
    """Otherwise the comparison above could not fail."""
    mask, nodes = torch.ones(1, NODES, dtype=torch.bool), torch.arange(NODES)
    for name, animal in WEIGHTED_ZOO.items():
        data = graph(animal.values, 1, directed=False)
        model = made(animal.make, 1, torch.float64)
        other = data.clone()
        for key in ("edge_weight", "edge_attr"):
            if key in data:
                other[key] = data[key].flip(0)
        known = profile_models([model], data)
        apart = (toggle_losses(known, data, mask, nodes) - toggle_losses(known, other, mask, nodes)).abs().max()
        assert (float(apart) > 0.01) != ("takes no values" in name), name


def test_a_model_may_be_asked_on_graphs_with_and_without_values_in_turn() -> None:
    animal = WEIGHTED_ZOO["two GCNConv with weights"]
    data = graph(("edge_weight",), 1, directed=False)
    plain = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    ones = data.clone()
    ones.edge_weight = torch.ones(data.num_edges)
    model = made(animal.make, 1, torch.float64)
    mask, nodes = torch.ones(1, NODES, dtype=torch.bool), torch.arange(4)
    first, weighted, again, equal = (toggle_losses([model], one, mask, nodes) for one in (plain, data, plain, ones))
    torch.testing.assert_close(first, again, atol=0, rtol=0)
    torch.testing.assert_close(first, equal, atol=1e-9, rtol=0)  # a GCN takes a missing weight as 1
    assert not torch.allclose(first, weighted)
    assert profile_on(ones, model).notes == ("The model is given the graph's edge_weight as its argument edge_weight.",)


def test_our_own_network_does_not_use_values_and_the_notes_say_so() -> None:
    data = graph(("edge_weight", "edge_attr"), 2, directed=False)
    data.x = data.x.float()
    model = build_gnn("gcn", features=FEATURES, hidden=4, classes=CLASSES)
    mask, nodes = torch.ones(1, NODES, dtype=torch.bool), torch.arange(4)
    with_values = toggle_losses([model], data, mask, nodes)
    assert profile_on(data, model).notes == (
        "The graph has edge_weight, which the model does not use.",
        "The graph has edge_attr, which the model does not use.",
    )
    plain = Data(x=data.x, edge_index=data.edge_index, y=data.y)
    without = toggle_losses([model], plain, mask, nodes)
    torch.testing.assert_close(with_values, without, atol=0, rtol=0)
    assert profile_on(plain, model).notes == ()


def test_several_nets_in_one_query_keep_their_values_apart() -> None:
    """Little memory makes one query per net; the numbers stay the same."""
    animal = WEIGHTED_ZOO["two GCNConv with weights"]
    data = graph(("edge_weight",), 4, directed=True)
    model: nn.Module = made(animal.make, 1, torch.float64)
    masks, nodes = torch.rand(2, NODES, generator=torch.Generator().manual_seed(1)) < 0.7, torch.arange(NODES)
    roomy, tight = (toggle_losses([model], data, masks, nodes, memory=memory) for memory in (None, 1))
    torch.testing.assert_close(roomy, tight, atol=1e-9, rtol=0)


def pool(name: str, count: int = 3) -> list[Any]:
    return [made(WEIGHTED_ZOO[name].make, seed, torch.float64) for seed in range(count)]


@pytest.mark.parametrize("name", ["two GCNConv with weights", "one Data"])
def test_chains_take_the_steps_of_the_rule_as_written(name: str) -> None:
    animal, models = WEIGHTED_ZOO[name], pool(name)
    data = graph(animal.values, 3, directed=name == "one Data")

    def signal(mask: npt.NDArray[np.bool_], v: int) -> npt.NDArray[np.float64]:
        return np.array([rule_as_written(animal, model, data, torch.from_numpy(mask.copy()), v) for model in models])

    found, _ = gibbs_masks(models, data, chains=1, prior=0.6, seed=1)
    slow, _ = plain_gibbs(signal, NODES, chains=1, prior=0.6, seed=1)
    assert np.array_equal(found, slow)
    losses = forward_losses(profile_models(models, data), data)
    mask = np.random.default_rng(0).random(NODES) < 0.6
    wanted = torch.stack([by_hand(animal, model, data, torch.from_numpy(mask)) for model in models])
    np.testing.assert_allclose(losses(mask)[:, mask], wanted.numpy()[:, mask], atol=1e-9)
    found, taken = metropolis_masks(models, data, samples=2, burn_in=20, thinning=5, prior=0.6, seed=1)
    slow, rate = plain_metropolis(models, data, samples=2, burn_in=20, thinning=5, prior=0.6, seed=1)
    assert np.array_equal(found, slow)
    assert taken.acceptance_rate == rate


def test_a_pool_of_weighted_and_plain_networks_is_judged_with_and_without_values() -> None:
    """Shadow models of ours beside a target that uses weights: each is asked in its own way."""
    animal = WEIGHTED_ZOO["two GCNConv with weights"]
    data = graph(animal.values, 3, directed=False)
    target, ours = made(animal.make, 1, torch.float64), build_gnn("gin", features=FEATURES, hidden=4, classes=CLASSES)
    scene = Scene(data, target, [ours.double()], [[True] * NODES])
    whole = scene.whole_graph
    everyone = torch.ones(NODES, dtype=torch.bool)
    np.testing.assert_allclose(whole.target_loss, by_hand(animal, target, data, everyone).numpy(), atol=1e-9)
    alone = Data(x=data.x, edge_index=data.edge_index[:, :0], edge_weight=data.edge_weight[:0])
    expected = tensor_losses(animal.call(target, alone).detach(), data.y)
    np.testing.assert_allclose(scene.zero_hop.target_loss, expected.numpy(), atol=1e-9)
    assert set(scene.notes) == {
        "The model is given the graph's edge_weight as its argument edge_weight.",
        "The graph has edge_weight, which the model does not use.",
    }
    found = sampled_answers([target], data, np.ones((1, NODES), dtype=np.bool_))
    np.testing.assert_allclose(found.own[0, 0], whole.target_loss, atol=1e-9)


def test_a_model_on_data_that_does_not_look_at_a_value_is_found_out() -> None:
    class Half(nn.Module):
        def forward(self, data: Data) -> Tensor:
            return data.x[:, :CLASSES] * data.edge_weight.sum()  # type: ignore[no-any-return]

    model = Half()
    (known,) = profile_models([model], graph(("edge_weight", "edge_attr"), 1, directed=False), parts=False)
    assert known.profile.notes == ("The graph has edge_attr, which the model does not use.",)


def test_values_that_the_model_cannot_use_are_refused_and_not_left_out() -> None:
    data = graph(("edge_weight", "edge_attr"), 1, directed=False)
    data.edge_attr = data.edge_attr[:, :2]
    model = made(WEIGHTED_ZOO["PyG's GAT"].make, 1, torch.float64)  # trained with four features of edges
    with pytest.raises(InputError, match="cannot be called as model.x, edge_index, edge_attr=data.edge_attr.: Runtime"):
        toggle_losses([model], data, torch.ones(1, NODES, dtype=torch.bool), torch.tensor([0]))
