"""Every layer type that is trained in one pass, with its options: the weights are those of models trained alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from glasshouse.graph.data.population import induced
from glasshouse.graph.training.many.graph import BatchedGraph
from glasshouse.graph.training.many.program import BatchedProgram
from glasshouse.graph.training.trainer import GNNTrainer, sgd
from glasshouse.training.batches import ModuleBatch
from tests.graph.layers.cases import CASES, TwoLayers, messy_graph
from tests.graph.training.many.plans import train_by_plan

# no type, or options that the type does not know
APART = {"SAGEConv std", "SimpleConv root", "GENConv powermean", "RGCNConv bases"}
MEMBERS = np.random.default_rng(0).random((2, 12)) < 0.8
TRAINED = [name for name, (_, values) in CASES.items() if values in ("", "weight", "kinds") and name not in APART]
TRAINED = [name for name in TRAINED if name not in ("GATConv weight as feature", "ChebConv weights")]


@pytest.mark.parametrize("name", TRAINED)
def test_a_layer_is_trained_in_one_pass_as_alone(name: str) -> None:
    make, values = CASES[name]
    data = messy_graph(len(name), both_ways=True, dtype=torch.float32)
    if values == "kinds":
        data.edge_attr = (data.edge_attr[:, 0] > 0).long()
    trainer = GNNTrainer(
        model=lambda: TwoLayers(make, "listed kinds" if values == "kinds" else values),
        epochs=2,
        optimizer=sgd(lr=0.1),
        device="cpu",
    )
    together, plan = train_by_plan(trainer, data, MEMBERS, [1, 2])
    for model, who, seed in zip(together, MEMBERS, (1, 2), strict=True):
        for ours, theirs in zip(
            model.state_dict().values(), trainer(data, who, seed).state_dict().values(), strict=True
        ):
            torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    models, graphs = [trainer.model().train() for _ in MEMBERS], [induced(data, who) for who in MEMBERS]  # type: ignore[misc]
    run = BatchedProgram(plan.program, ModuleBatch(models), BatchedGraph.of(graphs), apart=plan.apart)
    assert (run.together, plan.apart) == (2, frozenset())
