"""What CONTRIBUTING promises: a plug-in is a few lines and one registration, and no file of ours is touched for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphConv, TAGConv

from glasshouse.config.graph import NetworkSection
from glasshouse.graph import (
    GNN,
    GNNTrainer,
    LayerType,
    audit,
    citation_graph,
    layer_widths,
    register_layer_type,
    register_network,
    toggle_losses,
)
from glasshouse.graph.models.layer_types import LAYER_TYPES
from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.rule.toggle.layers.summed import Summed
from glasshouse.graph.rule.toggle.layers.weights import batched_maps, batched_vectors
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Layer, Weights, biased
from glasshouse.graph.training.batched.training import batching_obstacle
from glasshouse.graph.training.sparse import SparseMatrix
from glasshouse.pool.description import describe

DATA = citation_graph(nodes=160, classes=3, words=60, topic_words=20)


@pytest.fixture(autouse=True)
def _registries_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = dict(LAYER_TYPES)
    monkeypatch.setattr(NETWORKS, "_things", dict(NETWORKS._things))
    yield
    LAYER_TYPES.clear()
    LAYER_TYPES.update(known)


def tag(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """A network: all that a plug-in has to say."""
    return [TAGConv(a, b, K=2) for a, b in layer_widths(features, hidden, classes, layers)]


def test_a_network_is_one_function() -> None:
    register_network("tag")(tag)
    trainer = GNNTrainer(architecture="tag", hidden=8, epochs=20, device="cpu")
    found = audit(DATA, trainer=trainer, attacks=["base", "g-base"], shadows=4, nodes=np.arange(40), fprs=[0.1])
    assert np.isfinite(found.table()["auc"]).tolist() == [True, True]
    model = trainer.untrained(DATA)
    assert isinstance(model, GNN)
    assert model.hops == 4  # two layers of two steps


def test_a_network_is_known_to_audit_files() -> None:
    with pytest.raises(ValueError, match='"tag" is not a network'):
        NetworkSection(architecture="tag")
    register_network("tag")(tag)
    assert NetworkSection(architecture="tag", hidden=8).build().network is tag


def test_a_pool_notices_that_a_networks_code_has_changed() -> None:
    register_network("tag")(tag)
    before = describe(GNNTrainer(architecture="tag"))
    register_network("tag")(lambda features, hidden, classes, layers: [TAGConv(features, classes, K=layers)])
    assert describe(GNNTrainer(architecture="tag")) != before


def toggled(layers: Sequence[GraphConv]) -> list[Summed]:
    """A layer type, in two forms: the sum that a toggle changes, and the same sum in training."""
    weight, root = (batched_maps([getattr(layer, name) for layer in layers]) for name in ("lin_rel", "lin_root"))
    bias = batched_vectors([layer.lin_rel.bias for layer in layers])
    return [Summed.of(weight=weight, bias=bias, root=root, normalisation="none")]


def batched(layer: GraphConv, graph: BatchedGraph) -> Layer:
    sums = SparseMatrix.of_edges(graph.edge_index, torch.ones(graph.edge_index.shape[1]), nodes=graph.nodes)

    def step(x: SparseMatrix | Tensor, weights: Weights) -> Tensor:
        received = graph.spread(sums, graph.linear(x, weights["lin_rel.weight"]))
        return biased(received, weights["lin_rel.bias"]) + graph.linear(x, weights["lin_root.weight"])

    return step


def test_a_layer_type_is_one_registration_and_makes_a_network_fast() -> None:
    register_network("graph-conv")(lambda *sizes: [GraphConv(a, b) for a, b in layer_widths(*sizes)])
    trainer = GNNTrainer(architecture="graph-conv", hidden=8, epochs=5, dropout=0, device="cpu")
    assert "no stacked form" in str(batching_obstacle(trainer, DATA))
    plain = {"can_toggle": lambda layer: layer.aggr == "add", "can_batch": lambda layer: layer.aggr == "add"}
    register_layer_type(LayerType(convolution=GraphConv, toggled=toggled, batched=batched, **plain))  # type: ignore[arg-type]
    assert batching_obstacle(trainer, DATA) is None
    members = np.random.default_rng(0).random((2, 160)) < 0.5
    models = trainer.train_many(DATA, members, [0, 1])
    for model, who, seed in zip(models, members, (0, 1), strict=True):
        alone = trainer(DATA, who, seed)
        for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    masks, nodes = torch.from_numpy(members), torch.arange(0, 160, 20)
    fast, as_written = (toggle_losses(models, DATA, masks, nodes, engine=engine) for engine in ("layered", "reference"))
    torch.testing.assert_close(fast, as_written, atol=1e-4, rtol=1e-4)
