"""The engine for two-layer GCN, GraphSAGE-max and GAT on a plain symmetric graph: compiled kernels on the CPU.

One forward pass per mask, then one toggle per node. Chains make a flip permanent: every row that it changes is updated.
A kernel finds the functions of its architecture by the type of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.compute import available_cores
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.graph.models.profile import Profiled
from glasshouse.graph.rule.engines import Stack, audit_values, register_engine
from glasshouse.graph.rule.question import Hops, Question, Toggles, check_width
from glasshouse.graph.rule.two_layers import gat, gcn, sage
from glasshouse.graph.rule.two_layers.graph import (
    CSR,
    arrange,
    even_cuts,
    flip,
    grow,
    has_self_loops,
    is_simple,
    neighbours_together,
    open_workers,
    release,
    whole_graph,
)
from glasshouse.graph.rule.two_layers.kernels import by_type, inner_kernel, kernel
from glasshouse.graph.rule.two_layers.reduce import reduced

ARCHITECTURES = (gcn, sage, gat)
SELF_LOOPS_MATTER = (sage,)  # GCN and GAT give every node exactly one self-loop, whatever the graph has
STAGES = 2  # a row is filled for every node in stage 0 before any node reaches stage 1


@inner_kernel
def _none(weights: Any) -> int:
    return 0


@inner_kernel
def _one(weights: Any) -> int:
    return 1


# Compute the kept row of member u again.
fill_row = by_type({gcn.GCNWeights: gcn.fill_row, sage.SAGEWeights: sage.fill_row, gat.GATWeights: gat.fill_row})
# S of node v into ``scratch.signal`` [K]; ``scratch.reach`` stays filled for a commit or a release.
toggle = by_type({gcn.GCNWeights: gcn.toggle, sage.SAGEWeights: sage.toggle, gat.GATWeights: gat.toggle})
# How much further a node's presence has an effect than its features: 1 if degrees scale the messages.
extra_hops = by_type({gcn.GCNWeights: _one, sage.SAGEWeights: _none, gat.GATWeights: _none})


@inner_kernel
def _fill_all(weights: Any, v: int, graph: CSR, state: Any, scratch: Any) -> None:
    """Compute every row within reach again, so that no error builds up along a chain."""
    reach = scratch.reach
    for stage in range(STAGES):
        if graph.member[v]:
            fill_row(weights, stage, v, graph, state, scratch)
        for i in range(reach.size[stage + extra_hops(weights)]):
            fill_row(weights, stage, reach.nodes[i], graph, state, scratch)


# Update every row after node v, whose neighbourhood ``scratch.reach`` holds, was added or removed.
refresh = by_type({gcn.GCNWeights: _fill_all, sage.SAGEWeights: sage.refresh, gat.GATWeights: gat.refresh})


@dataclass(frozen=True, kw_only=True)
class StackedModels:
    """Stacked models on one graph, ready for kernels."""

    graph: CSR  # all edges, no members
    weights: Any  # the architecture's named tuple of stacked weights
    models: int  # how many are stacked
    architecture: ModuleType  # the module that knows how to fill and toggle rows

    def new_state(self) -> Any:
        """Rows for one mask."""
        return self.architecture.new_state(self.weights, self.models)

    def new_scratch(self) -> Any:
        """Working space for one thread."""
        return self.architecture.new_scratch(self.weights, self.models)


def _layers_of(models: Sequence[Any]) -> tuple[ModuleType, list[list[Any]]] | None:
    """The architecture and the two layers of each model, if all reduce to one shape of one architecture."""
    layers = [found for model in models if (found := reduced(model)) is not None]
    if not layers or len(layers) < len(models) or any(_shape(some) != _shape(layers[0]) for some in layers):
        return None
    for architecture in ARCHITECTURES:
        if all(architecture.supports(some) for some in layers):
            return architecture, layers
    return None


def _shape(layers: Sequence[nn.Module]) -> list[object]:
    """What must agree for models to be stacked."""
    shapes = [(name, tuple(value.shape)) for layer in layers for name, value in layer.state_dict().items()]
    return [*shapes, *(getattr(layer, "negative_slope", None) for layer in layers)]


def supports(models: Sequence[Profiled], data: Data, hops: str = "model") -> bool:
    """Whether there are kernels for it: models that reduce to two layers of one shape in float32, a simple graph."""
    found = _layers_of(models)
    if found is None:
        return False
    architecture, known = found
    parameters = (parameter for layers in known for layer in layers for parameter in layer.parameters())
    return (
        hops in ("model", "affected")
        and all(one.device.type == "cpu" and one.dtype == torch.float32 for one in parameters)
        and bool(data.edge_index.device.type == "cpu")
        and bool(data.x.is_floating_point() and data.x.shape[1] > 0)
        and is_simple(data)
        and not (architecture in SELF_LOOPS_MATTER and has_self_loops(data))
    )


def stack_models(models: Sequence[Profiled], data: Data, *, threads: int | None = None) -> StackedModels:
    """Stack the models and read the graph; ask ``supports`` first."""
    found = _layers_of(models)
    if found is None:
        raise InputError("These models have no compiled kernels; ask supports() first.")
    architecture, layers = found
    graph = whole_graph(data)
    x = np.ascontiguousarray(data.x.numpy(), dtype=np.float32)
    weights = architecture.prepare(layers, x, graph, threads=threads or available_cores())
    last_class = layers[0][-1].out_channels - 1
    # A label of no model is never used, but a kernel must be able to look it up; a node without one has no loss.
    graph = graph._replace(label=np.clip(graph.label, -1, last_class))
    return StackedModels(graph=graph, weights=weights, models=len(models), architecture=architecture)


_PIECES_A_THREAD = 8  # enough that no thread waits long for the last piece


@kernel
def fill_rows(weights: Any, stage: int, graph: CSR, state: Any, scratch: Any, cut: tuple[int, int]) -> None:
    """Stage 0 or 1 of the forward pass, for the members in the range ``cut``."""
    for u in range(cut[0], cut[1]):
        if graph.member[u]:
            fill_row(weights, stage, u, graph, state, scratch)


@kernel
def toggle_all(
    weights: Any,
    affected: bool,
    targets: IntArray,
    graph: CSR,
    state: Any,
    out: FloatArray,
    scratch: Any,
    places: IntArray,
) -> None:
    """out[:, place] = S of targets[place], for the places of one piece of work; out [models, nodes]."""
    signal = scratch.signal
    for place in places:
        v = targets[place]
        toggle(weights, v, affected, graph, state, scratch)
        release(v, scratch.reach)
        for m in range(len(signal)):
            out[m, place] = signal[m]


def compiled_toggles(
    models: Sequence[Profiled],
    data: Data,
    masks: Tensor | BoolArray,
    nodes: Tensor | IntArray,
    *,
    hops: Hops = "model",
    threads: int | None = None,
) -> Toggles:
    """S of the paper's eq. (6) and own losses for every model, mask and node; ask ``supports`` first.

    ``hops`` says over which nodes S sums, as in `Question`. The numbers, float64 [K, M, len(nodes)], do not depend on
    ``threads``, which are all cores by default.
    """
    cores = threads or available_cores()
    problem = stack_models(models, data, threads=cores)
    weights = problem.weights
    targets = np.asarray(nodes, dtype=np.int64)
    mask_array = np.asarray(masks, dtype=np.bool_)
    out, own = np.zeros((2, len(mask_array), problem.models, len(targets)))
    state = problem.new_state()
    rows = even_cuts(len(problem.graph.member), _PIECES_A_THREAD * cores)
    near = np.argsort(neighbours_together(problem.graph)[targets], kind="stable")  # rows are then still in a cache
    pieces = [near[slice(*cut)] for cut in even_cuts(len(targets), _PIECES_A_THREAD * cores)]
    with open_workers(cores, problem.new_scratch) as workers:
        for mask, signals, losses in zip(mask_array, out, own, strict=True):
            graph = arrange(problem.graph, mask)
            for stage in range(STAGES):
                workers.each(partial(fill_rows, weights, stage, graph, state), rows)
            workers.each(partial(toggle_all, weights, hops == "affected", targets, graph, state, signals), pieces)
            losses[:] = state.loss[targets].T  # a toggle writes the loss of an added node into its own row
    return Toggles(*(torch.from_numpy(np.ascontiguousarray(found.transpose(1, 0, 2))) for found in (out, own)))


_COMPILATION = 4.5  # seconds on one core
_RATE = 8e-10  # seconds for one value on two cores


@register_engine("compiled", rank=0)
class Compiled:
    """What reduces to two layers of GCN, GAT or GraphSAGE-max in float32; anything else goes to the next engine."""

    apart: ClassVar[bool] = True

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return supports(models, _data(question), question.hops)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`; as if the kernels had to be compiled."""
        return _COMPILATION + _RATE * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`; it keeps one mask at a time."""
        layers = reduced(models[0]) or [None]
        check_width(question.x.new_empty(0, int(layers[-1].out_channels)), question)
        return compiled_toggles(models, _data(question), question.masks, question.nodes, hops=question.hops)


def _data(question: Question) -> Data:
    return Data(x=question.x, edge_index=question.edge_index, y=question.labels)


def fill_state(weights: Any, graph: CSR, state: Any, scratch: Any) -> None:
    """The forward pass on one thread: rows of all members."""
    for stage in range(STAGES):
        fill_rows(weights, stage, graph, state, scratch, (0, len(graph.member)))


@inner_kernel
def commit(weights: Any, v: int, graph: CSR, state: Any, scratch: Any) -> None:
    """Flip v, whose two hops ``scratch.reach`` holds, and refresh every row that this changes. Releases the reach."""
    reach = scratch.reach
    if extra_hops(weights) and reach.size[2] == reach.size[1]:
        grow(2, graph, reach)
    flip(v, graph)
    refresh(weights, v, graph, state, scratch)
    release(v, reach)
