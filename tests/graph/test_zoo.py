"""Users' own modules: signals equal to the rule as written, or a refusal in one line; never silently different.

What 5f6366e did not have is imported where it is used, so that the comparisons can be run, and fail, there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph

from glasshouse.core.errors import InputError
from glasshouse.core.outputs import tensor_losses
from glasshouse.graph import build_gnn, toggle_losses
from glasshouse.graph.models.profile import profile_models, raw_models
from tests.graph.zoo import CLASSES, EVERYWHERE, FEATURES, PYG, ZOO


def graph(seed: int, *, directed: bool = False, dtype: torch.dtype = torch.float32) -> Data:
    torch.manual_seed(seed)
    nodes = 24
    edges = erdos_renyi_graph(nodes, 0.11, directed=directed)
    return Data(x=torch.randn(nodes, FEATURES, dtype=dtype), edge_index=edges, y=torch.randint(CLASSES, (nodes,)))


def made(make: Callable[[], Any], seed: int, dtype: torch.dtype) -> Any:
    """A model whose every parameter and statistic is random, so that no path is closed by its starting values."""
    torch.manual_seed(seed)
    model = make()
    if isinstance(model, nn.Module):
        for name, value in model.state_dict().items():
            if value.is_floating_point():
                value.copy_(
                    torch.rand_like(value) + 0.5 if name.endswith("running_var") else torch.randn_like(value) * 0.5
                )
        model = model.to(dtype).eval()
    return model


def answered(model: Any, x: Tensor, edges: Tensor) -> Tensor:
    """Logits of any animal of the zoo, by hand."""
    try:
        answer = model(x, edges)
    except TypeError:
        answer = model(Data(x=x, edge_index=edges))["logits"]
    answer = torch.as_tensor(answer[0] if isinstance(answer, tuple) else answer).detach()
    is_probability = bool((answer >= 0).all()) and torch.allclose(answer.sum(1), torch.ones_like(answer[:, 0]))
    return answer.log() if is_probability else answer


def rule_as_written(model: Any, data: Data, mask: Tensor, node: int, hops: int | None) -> float:
    """Eq. (6), with nothing of Glasshouse's engines: induced graphs, numbered anew, and a search along the edges."""

    def losses_of(present: Tensor) -> Tensor:
        position = present.long().cumsum(0) - 1
        edges = data.edge_index[:, present[data.edge_index].all(0)]
        found = torch.zeros(len(present), dtype=torch.float64)
        found[present] = tensor_losses(answered(model, data.x[present], position[edges]), data.y[present])
        return found

    inside, outside = mask.clone(), mask.clone()
    inside[node], outside[node] = True, False
    with_node = losses_of(inside)
    change = with_node - losses_of(outside)
    near = {node}
    links = [edge for edge in data.edge_index.T.tolist() if inside[edge[0]] and inside[edge[1]]]
    for _ in range(len(mask) if hops is None else hops):
        near |= {b for a, b in links if a in near}
    summed = [u for u in range(len(mask)) if u != node and outside[u] and (hops is None or u in near)]
    return float(with_node[node] + change[summed].sum())


def engines_in_company(
    models: list[Any], data: Data, rule: Callable[[Any, Tensor, int], float] | None = None
) -> list[str]:
    """The engines that can toggle these models, after a look at what they answer about many nodes in one call.

    With much memory, and with so little that many nets form, it must be what the rule says about each third node (that
    of a model, a mask and a node; by default the reference engine), what the engines say of each other about all nodes,
    and what the engine itself says about a node alone.
    """
    from glasshouse.graph.rule.engines import Stack, engines
    from glasshouse.graph.rule.question import ask

    count = int(data.num_nodes)
    mask, nodes = torch.rand(count, generator=torch.Generator().manual_seed(5)) < 0.6, torch.arange(count)
    masks, third, one = mask[None], nodes[::3], nodes[9:10]
    known = profile_models(models, data)
    able = [name for name, engine in engines().items() if engine.supports(Stack(known), ask(data, masks, nodes))]
    if rule is None:
        wanted = toggle_losses(known, data, masks, third, engine="reference")
    else:
        wanted = torch.tensor(
            [[[rule(model, mask, node) for node in third.tolist()]] for model in raw_models(known)]
        ).double()
    first = None
    for engine in able:
        alone = toggle_losses(known, data, masks, one, engine=engine)
        for memory in (None, 2**15):
            together = toggle_losses(known, data, masks, nodes, engine=engine, memory=memory)
            first = together if first is None else first
            torch.testing.assert_close(together[:, :, third], wanted, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(together, first, atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(together[:, :, one], alone, atol=1e-5, rtol=1e-5)
    return able


@pytest.mark.parametrize("name", [*ZOO, *PYG, *EVERYWHERE])
def test_nodes_toggled_together_get_what_the_rule_says_and_what_each_gets_alone(name: str) -> None:
    """On a graph with self-loops, repeated edges and edges of one direction; for some of PyG's own, of both."""
    make, hops = (EVERYWHERE[name], None) if name in EVERYWHERE else (ZOO | PYG)[name]
    data = graph(len(name), dtype=torch.float64)
    some = torch.randint(24, (2, 12), generator=torch.Generator().manual_seed(1))
    edges = torch.cat([data.edge_index, data.edge_index[:, :7], some, some[:1].expand(2, -1)], dim=1)
    data.edge_index = torch.cat([edges, edges.flip(0)], dim=1) if name in PYG and len(name) % 2 else edges
    known = profile_models([made(make, seed, torch.float64) for seed in (1, 2)], data)
    able = ["layered", "packed"] if hops else ["whole"]
    found = engines_in_company(known, data, lambda model, mask, node: rule_as_written(model, data, mask, node, hops))
    assert found == (able if isinstance(known[0].model, nn.Module) else able[-1:])
    for one in known:
        assert one.profile.everywhere if hops is None else one.profile.hops == hops
        assert (one.profile.program is None) == (hops is None or not isinstance(one.model, nn.Module))
        assert hops is not None or "whole graph" in one.profile.notes[0]


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_nodes_toggled_together_by_kernels_get_the_answers_that_each_gets_alone(name: str) -> None:
    data = graph(len(name))
    models = [build_gnn(name, features=FEATURES, hidden=8, classes=CLASSES) for _ in range(2)]
    assert engines_in_company(models, data) == ["compiled", "layered", "packed"]


@pytest.mark.parametrize("name", ZOO)
def test_a_users_module_is_toggled_as_the_rule_says(name: str) -> None:
    """In float32 with edges of both ways, as kernels want it, by the engine that is chosen."""
    make, hops = ZOO[name]
    data = graph(len(name))
    models = [made(make, seed, torch.float32) for seed in (1, 2)]
    torch.manual_seed(5)
    masks, nodes = torch.rand(2, 24) < 0.6, torch.randperm(24)[:7]
    found = toggle_losses(models, data, masks, nodes)
    for k, model in enumerate(models):
        for i, mask in enumerate(masks):
            for j, node in enumerate(nodes.tolist()):
                wanted = rule_as_written(model, data, mask, node, hops)
                assert float(found[k, i, j]) == pytest.approx(wanted, abs=1e-4)


def test_the_rule_as_written_of_ours_agrees_with_the_one_written_here() -> None:
    data = graph(1, dtype=torch.float64)
    masks, nodes = torch.rand(2, 24) < 0.6, torch.tensor([0, 5])
    for make, hops in [ZOO["three GCNConv"], (EVERYWHERE["GraphNorm"], None)]:
        model = made(make, 1, torch.float64)
        found = toggle_losses([model], data, masks, nodes, engine="reference")
        wanted = [[rule_as_written(model, data, mask, node, hops) for node in nodes.tolist()] for mask in masks]
        torch.testing.assert_close(found[0], torch.tensor(wanted, dtype=torch.float64), atol=1e-9, rtol=0)


def test_a_stated_reach_that_is_too_short_is_replaced_by_the_measured_one_and_said() -> None:
    model = made(lambda: ZOO["three GCNConv"][0](), 1, torch.float32)
    model.hops = 2
    data = graph(1)
    profile = profile_models([model], data)[0].profile
    assert profile.hops == 3
    assert profile.notes == ("The model says hops = 2, but its answers change up to 3 steps away; 3 is used.",)


def test_models_of_one_shape_have_one_reach_although_one_of_them_is_dead() -> None:
    """Target and shadow models must be asked the same; a model without weights tells nothing of its reach."""
    alive, dead = (made(ZOO["three GCNConv"][0], seed, torch.float32) for seed in (1, 2))
    for value in dead.state_dict().values():
        value.zero_()
    data = graph(1)
    assert [one.profile.hops for one in profile_models([dead, alive], data)] == [3, 3]


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = ZOO["two GCNConv"][0]()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return nn.functional.dropout(
            self.net(x, edge_index), 0.5
        )  # as in the tutorials: training=self.training is missing


class Numbered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.own = ZOO["two GCNConv"][0](), nn.Parameter(torch.randn(24, CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        answers: Tensor = self.net(x, edge_index)
        return answers + self.own[torch.arange(len(x)) % 24]


def _cached() -> nn.Module:
    model: nn.Module = ZOO["two GCNConv"][0]()
    model.convs[0].cached = True  # type: ignore[index, union-attr]
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Noisy(), "answers the same query in two ways. Its dropout is on"),
        (Numbered(), "depend on the order of the nodes or edges"),
        (_cached(), "convs.0 is a GCNConv with cached=True"),
        (lambda x, edge_index, edge_type: x, "it needs the argument edge_type, but the graph has no edge_type"),
        (lambda x, edge_index: x[:3], "answered 24 nodes with shape [3, 5]"),
    ],
)
def test_what_cannot_be_toggled_is_refused_in_one_line(model: Any, said: str) -> None:
    if isinstance(model, nn.Module):
        model.eval()
    data = graph(2)
    with pytest.raises(InputError) as refusal:
        toggle_losses([model], data, torch.ones(1, 24, dtype=torch.bool), torch.tensor([0]))
    assert said in str(refusal.value)
    assert len(refusal.value.faults) == 1


@pytest.mark.parametrize("engine", ["auto", "layered"])
@pytest.mark.parametrize("how", ["hook", "method"])
def test_a_known_layer_that_was_altered_is_asked_itself(how: str, engine: str) -> None:
    """A hook, or a method put in place of another, makes it another layer; its class alone does not tell."""
    model = made(ZOO["two GCNConv"][0], 1, torch.float64)
    if how == "hook":
        model.convs[0].register_forward_hook(lambda layer, given, answer: 2 * answer)
    else:
        model.convs[1].message = lambda x_j, edge_weight: 3 * x_j
    data = graph(1, dtype=torch.float64)
    masks, nodes = torch.rand(2, 24) < 0.6, torch.tensor([0, 5, 7])
    found = toggle_losses([model], data, masks, nodes, engine=engine)
    wanted = [[rule_as_written(model, data, mask, node, 2) for node in nodes.tolist()] for mask in masks]
    torch.testing.assert_close(found[0], torch.tensor(wanted, dtype=torch.float64), atol=1e-9, rtol=0)
    with pytest.raises(InputError, match="cannot toggle"):
        toggle_losses([model.float()], graph(1), masks, nodes, engine="compiled")
