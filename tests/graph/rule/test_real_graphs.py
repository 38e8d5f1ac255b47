from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid
from torch_geometric.nn import GCNConv

from glasshouse.core.errors import InputError
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.rule.incremental import any_layer
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.rule.toggling import check_engine, toggle_losses
from tests.graph.rule.test_self_check import counted_from_row_0
from tests.graph.zoo import Mine, Untyped

SOURCE = Path(os.environ.get("GLASSHOUSE_DATA", "/work/shared/datasets")) / "planetoid"


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Data]:
    """A function from a name to the graph, which is read once."""
    scratch = tmp_path_factory.mktemp("planetoid")

    @functools.cache
    def loaded(name: str) -> Data:
        if not (SOURCE / name).exists():
            pytest.skip(f"{SOURCE / name} is not there; set GLASSHOUSE_DATA")
        shutil.copytree(SOURCE / name / "raw", scratch / name / "raw")
        return Planetoid(str(scratch), name)[0]

    return loaded


@pytest.mark.parametrize(
    ("name", "architecture", "hidden"),
    [("Cora", "gcn", 64), ("CiteSeer", "gat", 64), ("PubMed", "sage", 128), ("PubMed", "gcn", 64)],
)
def test_nodes_of_citation_graphs_get_the_rules_numbers(
    name: str, architecture: str, hidden: int, load: Callable[[str], Data]
) -> None:
    """The busiest node and another one, inside and outside the mask, on the whole graph in float32."""
    torch.manual_seed(0)
    data = load(name)
    model = build_gnn(architecture, features=data.x.shape[1], hidden=hidden, classes=int(data.y.max()) + 1)
    degree = torch.bincount(data.edge_index[0], minlength=len(data.x))
    nodes = torch.cat([degree.argmax().reshape(1), torch.randperm(len(data.x))[:1]])
    masks = torch.stack([torch.rand(len(data.x)) < 0.5 for _ in range(2)])
    masks[0, nodes[0]], masks[1, nodes[0]] = True, False
    models = profile_models([model], data)
    slow = reference_losses(models, data, masks, nodes)
    for engine in ("auto", "layered"):
        fast = toggle_losses(models, data, masks, nodes, engine=engine)
        assert float((fast - slow).abs().max()) <= 1e-4, engine


def test_on_cora_a_layer_and_its_empty_subclass_get_the_same_numbers(
    load: Callable[[str], Data], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many nodes in one call, and with little memory; the check before an audit refuses the nets that once differed."""
    torch.manual_seed(0)
    data = load("Cora")
    known, mine = (Untyped(layer(1433, 8), layer(8, 7)).eval() for layer in (GCNConv, Mine))
    mine.load_state_dict(known.state_dict())
    masks = torch.rand(1, 2708) < 0.5
    for nodes, memory in ((torch.arange(0, 2708, 16), None), (torch.arange(0, 2708, 64), 2**21)):
        right, found = (
            toggle_losses([model], data, masks, nodes, engine="layered", memory=memory) for model in (known, mine)
        )
        torch.testing.assert_close(found, right, atol=1e-4, rtol=0)
    some = np.arange(0, 2708, 16)
    assert check_engine(profile_models([mine], data), data, nodes=some, share=0.5, seed=0).largest < 1e-4
    monkeypatch.setattr(any_layer, "draw_ego_nets", counted_from_row_0)
    with pytest.raises(InputError, match="differs from the rule as written"):
        check_engine(profile_models([mine], data), data, nodes=some, share=0.5, seed=0)
