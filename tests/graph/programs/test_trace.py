"""What users write, traced: the program does what the module does, or there is a reason in one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv
from torch_geometric.utils import dropout_edge, erdos_renyi_graph

from glasshouse.core.outputs import unwrapped
from glasshouse.graph.programs.program import MessageStep, NoProgram, Program, RowStep
from glasshouse.graph.programs.trace import Asked, traced
from tests.graph.programs.modules import InPlaceTwice, Looped, Sized, Two, Weighted
from tests.graph.zoo import PYG, ZOO, Differences, Spread

torch.manual_seed(0)
EDGES = erdos_renyi_graph(20, 0.2)
GIVEN: dict[str, Any] = {"x": torch.randn(20, 5), "edge_index": EDGES, "edge_weight": None, "edge_attr": None}
MODULES = {name: make for name, (make, _) in (ZOO | PYG).items() if name != "callable without attributes"}


def calls(program: Program) -> list[str]:
    """Layers by their path, row-wise steps by the names of their operations."""
    found = []
    for step in program.steps:
        if isinstance(step, MessageStep):
            found.append(step.module)
        else:
            names = [node for node in step.graph.nodes if node.op not in ("placeholder", "output")]
            found.append(" ".join(str(getattr(node.target, "__name__", node.target)) for node in names))
    return found


@pytest.mark.parametrize("name", MODULES)
def test_a_program_run_call_by_call_gives_what_the_module_gives(name: str) -> None:
    model = MODULES[name]().eval()
    takes_data = name.startswith("TAGConv on Data")
    root, program = Asked(model, takes_data=takes_data), traced(model, takes_data=takes_data)
    with torch.no_grad():
        torch.testing.assert_close(program.run(root, GIVEN)[program.output], unwrapped(root(**GIVEN)))


def test_dropout_is_gone_in_evaluation_and_stays_in_training() -> None:
    model = Two()
    assert calls(traced(model.eval())) == ["model.a", "model.norm model.act", "model.b", "log_softmax"]
    assert calls(traced(model.train())) == ["model.a", "model.norm model.act dropout", "model.b", "log_softmax"]


def test_sizes_and_constants_are_repeated_where_they_are_needed() -> None:
    assert calls(traced(Sized().eval())) == ["model.conv", "relu getitem", "size new_ones cat model.head"]


@pytest.mark.parametrize(("layer", "by"), [(Differences, "MessagePassing"), (Spread, "operations on edge_index")])
def test_a_users_own_layer_is_one_call(layer: Any, by: str) -> None:
    program = traced(Looped(layer).eval())
    assert [step.module for step in program.messages] == ["model.layers.0", "model.layers.1"], by


def test_calls_after_a_change_in_place_read_the_changed_value() -> None:
    program = traced(InPlaceTwice().eval())
    assert program.messages[1].inputs == ("relu_",)
    assert [step.changes_inputs for step in program.steps if isinstance(step, RowStep)] == [True]


def test_values_of_edges_reach_the_layers_that_are_given_them() -> None:
    with_weight = traced(Weighted().eval(), keywords={"edge_weight": "edge_weight"})
    assert [step.edges for step in with_weight.messages] == [("edge_weight",), ()]
    assert with_weight.edge_values == ("edge_weight",)
    assert traced(Weighted().eval()).edge_values == ()


def test_programs_are_equal_exactly_if_they_do_the_same() -> None:
    assert traced(Two().eval()).signature == traced(Two().eval()).signature
    assert traced(Two().eval()).signature != traced(Two(slope=0.2).eval()).signature
    assert traced(GCN(5, 8, 2).eval()).signature != traced(GCN(5, 8, 2, act="elu").eval()).signature


class Rescaled(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.conv, self.how = GCNConv(5, 3), how

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        if self.how == "looks at the answer":
            hidden = self.conv(x, edge_index)
            return hidden if hidden.sum() > 0 else -hidden
        if self.how == "own edges":
            return self.conv(x, edge_index[:, ::2])
        if self.how == "counts edges":
            return self.conv(x, edge_index) / edge_index.shape[1]
        return {"a": self.conv(x, edge_index), "b": x}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("looks at the answer", "cannot be traced"),
        ("own edges", "uses edge_index outside a layer"),
        ("counts edges", "uses edge_index outside a layer"),
        ("two answers", "its answer is not made of one tensor"),
    ],
)
def test_what_cannot_be_taken_apart_has_a_reason_in_one_line(how: str, reason: str) -> None:
    with pytest.raises(NoProgram, match=reason) as error:
        traced(Rescaled(how).eval())
    assert "\n" not in str(error.value)


def test_the_data_that_a_module_takes_may_hold_values_of_edges() -> None:
    class OnData(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(5, 3)

        def forward(self, data: Data) -> Tensor:
            return self.conv(data.x, data.edge_index, data.edge_weight)  # type: ignore[no-any-return]

    assert traced(OnData().eval(), takes_data=True).edge_values == ("edge_weight",)


class Thinned(nn.Module):
    """Drops edges in training, as tutorials do."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edges, _ = dropout_edge(edge_index, p=0.3, training=self.training)
        return self.conv(x, edges)  # type: ignore[no-any-return]


def test_edges_that_are_dropped_in_training_alone_leave_no_trace_in_evaluation() -> None:
    assert calls(traced(Thinned().eval())) == ["model.conv"]


def test_what_torch_compile_wraps_is_traced_inside() -> None:
    model = Two().eval()
    wrapped: Any = torch.compile(model, backend="eager")
    assert traced(wrapped).signature == traced(model).signature
