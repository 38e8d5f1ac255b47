"""The perceptron within a layer, as GINConv has one: any row-wise module, for several models at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor, nn

from glasshouse.graph.programs.program import NoProgram, Program, RowStep
from glasshouse.graph.programs.tracing import Asked, traced
from glasshouse.graph.training.batched.alike import settings_of
from glasshouse.graph.training.batched.graphs import BatchedGraph
from glasshouse.graph.training.batched.layers import Weights
from glasshouse.graph.training.batched.rows import Deferred, batched_rows
from glasshouse.graph.training.sparse import SparseMatrix

__all__ = ["batched_perceptron", "has_rows"]

_KEPT = 64  # programs
# By settings. Tracing changes torch's modules for a moment, so it must not happen while other threads train: the first
# step that is tried traces a perceptron, and the groups that are then trained at the same time find it here.
_TRACED: dict[Hashable, Program | None] = {}


class _Rows(nn.Module):
    """A module of rows as a module on a graph, under the name that it has in its layer."""

    def __init__(self, module: nn.Module, name: str) -> None:
        super().__init__()
        self.name = name
        self.add_module(name, module)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        """What it makes of the rows."""
        return self.get_submodule(self.name)(x)


def has_rows(module: Any) -> bool:
    """Whether a module can be traced into operations on rows.

    Example:
        >>> has_rows(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU()))
        True
    """
    return isinstance(module, nn.Module) and _program(module, "nn") is not None


def batched_perceptron(
    module: nn.Module, graph: BatchedGraph, *, name: str
) -> Callable[[SparseMatrix | Tensor | Deferred, Weights], Tensor]:
    """The module for all models of a batch, from rows [K, m, in] and its layer's weights [K, ...] to rows [K, m, out].

    Args:
        module: of the first model, in the same mode as when it was tried.
        graph: the models' graphs.
        name: its name in its layer.

    Example:
        >>> import torch
        >>> from glasshouse.graph.data.induced import InducedGraph
        >>> one = InducedGraph(torch.eye(2), torch.empty(2, 0).long(), torch.tensor([0, 1]))
        >>> graph = BatchedGraph.of([one, one])
        >>> weights = {"nn.weight": torch.ones(2, 3, 2), "nn.bias": torch.zeros(2, 3)}
        >>> batched_perceptron(nn.Linear(2, 3), graph, name="nn")(graph.x, weights).shape
        torch.Size([2, 64, 3])
    """
    program = _program(module, name)
    if program is None:
        raise TypeError("this module has no row-wise operations; ask has_rows first")
    root = Asked(_Rows(module, name))
    steps = [step for step in program.steps if isinstance(step, RowStep)]
    bound: list[Any] = [None, []]  # the weights of the last call, and the steps with them: in training always the same

    def run(x: SparseMatrix | Tensor | Deferred, weights: Weights) -> Tensor:
        if bound[0] is not weights:
            bound[:] = [weights, [batched_rows(step, root, graph, weights) for step in steps]]
        values: dict[str, Any] = {"x": x}
        for step, call in zip(steps, bound[1], strict=True):
            values[step.name] = call([values[given] for given in step.inputs])
        found = values[program.output]
        return found.rows() if isinstance(found, Deferred) else graph.dense(found)

    return run


def _program(module: nn.Module, name: str) -> Program | None:
    key = (name, settings_of(module))
    if key not in _TRACED:
        try:
            program: Program | None = traced(_Rows(module, name))
        except NoProgram:
            program = None
        if len(_TRACED) >= _KEPT:
            _TRACED.pop(next(iter(_TRACED)))
        _TRACED[key] = program if program is not None and not program.messages else None
    return _TRACED[key]
