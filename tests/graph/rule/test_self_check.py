"""The comparison of the engine with the rule, made before every audit of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from glasshouse.core.errors import InputError
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule import toggling
from glasshouse.graph.rule.ego_nets import EgoNets, draw_ego_nets
from glasshouse.graph.rule.engines import answer_block
from glasshouse.graph.rule.incremental import any_layer
from glasshouse.graph.rule.toggling import Answered, check_engine, toggle_losses
from tests.graph.random_graphs import random_models
from tests.graph.simple_graphs import simple_graph
from tests.graph.zoo import Mine, Untyped

DATA = simple_graph(size=12, edges=20, seed=0)
MODELS = random_models("gin", layers=2, count=3, dtype=torch.float32)


def test_an_engine_that_follows_the_rule_passes_with_few_nodes_too() -> None:
    found = check_engine(profile_models(MODELS, DATA), DATA, nodes=np.arange(12), share=0.5, seed=0)
    assert found.triples == 8
    assert found.largest < 1e-4
    assert found.engines == ("layered",)
    assert check_engine(profile_models(MODELS, DATA), DATA, nodes=np.array([3]), share=0.5, seed=0).largest < 1e-4


@pytest.mark.parametrize("fault", [0.01, float("nan")])
def test_an_engine_that_errs_is_refused(fault: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toggling, "answer_block", lambda *given: answer_block(*given) * (1 + fault) + fault)
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(profile_models(MODELS, DATA), DATA, nodes=np.arange(12), share=0.5, seed=0)


def test_an_engine_that_errs_about_one_node_in_company_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4800 signals one is wrong, and only if all nodes are asked about in their order: eight random ones miss it."""
    data = simple_graph(size=300, edges=600, seed=0)
    models = random_models("gin", layers=1, count=2, dtype=torch.float32)

    def wrong(*given: Any) -> Any:
        found = answer_block(*given)
        found[0, 1, 3, 77] += 0.01 * bool((given[2].nodes == torch.arange(300)).all()) if found.shape[3] == 300 else 0
        return found

    monkeypatch.setattr(toggling, "answer_block", wrong)
    monkeypatch.setattr(toggling, "_AGAIN", 300)
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(profile_models(models, data), data, nodes=np.arange(300), share=0.5, seed=0)


def test_the_answers_that_an_attack_uses_are_the_ones_that_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple_graph(size=300, edges=600, seed=0)
    models = profile_models(random_models("gin", layers=1, count=2, dtype=torch.float32), data)
    masks = np.random.default_rng(0).random((8, 300)) < 0.5
    signals = toggle_losses(models, data, torch.from_numpy(masks), torch.arange(300)).numpy()
    monkeypatch.setattr(toggling, "_AGAIN", 300)
    common: dict[str, Any] = {"nodes": np.arange(300), "share": 0.5, "seed": 0}
    assert check_engine(models, data, **common, answered=Answered(masks, signals)).largest < 1e-4
    signals[1, 3, 77] += 0.01
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(models, data, **common, answered=Answered(masks, signals))


def test_the_engine_of_a_large_pool_is_the_one_that_is_checked() -> None:
    """With so many models it is worth compiling."""
    models = profile_models(random_models("gcn", layers=2, count=3, dtype=torch.float32), DATA)
    found = [check_engine(models * many, DATA, nodes=np.arange(12), share=0.5, seed=0).engines for many in (1, 600)]
    assert found == [("layered",), ("compiled",)]


def test_models_of_several_shapes_are_each_compared() -> None:
    known = random_models("gcn", layers=2, count=2, dtype=torch.float32)
    models: list[Any] = [*MODELS, *known, lambda x, edge_index: x[:, :3]]
    found = check_engine(profile_models(models, DATA), DATA, nodes=np.arange(12), share=0.5, seed=0)
    assert set(found.engines) == {"layered", "packed"}
    assert found.largest < 1e-4


def counted_from_row_0(*given: Any, **options: Any) -> EgoNets:
    """Nets as they were drawn once: senders that only count are row 0, which for row 0 itself is a self-loop."""
    nets = draw_ego_nets(*given, **options)
    stands_in = nets.target[nets.edges[0]] > len(given[0].targets)
    nets.edges[0, stands_in] = 0
    return nets


def untyped(features: int, classes: int) -> list[nn.Module]:
    torch.manual_seed(0)
    return [Untyped(Mine(features, 8), Mine(8, classes)).eval() for _ in range(3)]


def test_a_fault_that_only_company_shows_stops_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    data = simple_graph(size=120, edges=200, seed=3)
    models = untyped(data.x.shape[1], int(data.y.max()) + 1)
    monkeypatch.setattr(any_layer, "_NEAR", 2**19)  # as many nets as a large graph has
    assert check_engine(profile_models(models, data), data, nodes=np.arange(120), share=0.5, seed=0).largest < 1e-4
    monkeypatch.setattr(any_layer, "draw_ego_nets", counted_from_row_0)
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(profile_models(models, data), data, nodes=np.arange(120), share=0.5, seed=0)
