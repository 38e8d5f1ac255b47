"""S for all models, masks and nodes with compiled kernels: one forward pass per mask, then one toggle per node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.rule.jit import kernel
from glasshouse.graph.rule.toggle.compiled.architecture import STAGES, fill_row, toggle
from glasshouse.graph.rule.toggle.compiled.plan import Graph, arrange, target_order
from glasshouse.graph.rule.toggle.compiled.problem import build_problem
from glasshouse.graph.rule.toggle.compiled.reach import release
from glasshouse.graph.rule.toggle.compiled.workers import available_cores, even_cuts, open_workers
from glasshouse.graph.rule.toggles import Toggles

__all__ = ["compiled_toggles", "fill_rows", "toggle_all"]

_PIECES_A_THREAD = 8  # enough that no thread waits long for the last piece


@kernel
def fill_rows(weights: Any, stage: int, graph: Graph, state: Any, scratch: Any, cut: tuple[int, int]) -> None:
    """Stage 0 or 1 of the forward pass, for the members in the range ``cut``."""
    for u in range(cut[0], cut[1]):
        if graph.member[u]:
            fill_row(weights, stage, u, graph, state, scratch)


@kernel
def toggle_all(
    weights: Any,
    affected: bool,
    targets: IntArray,
    graph: Graph,
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
    models: Sequence[Any],
    data: Data,
    masks: Tensor | BoolArray,
    nodes: Tensor | IntArray,
    *,
    hops: Literal["model", "affected"] = "model",
    threads: int | None = None,
) -> Toggles:
    """S of the paper's eq. (6) and own losses for every model, mask and node; ask ``supports`` first.

    Args:
        models: K models of one shape that reduce to two convolutions.
        data: the graph with ``x`` [n, features], ``edge_index`` [2, e] and ``y`` [n].
        masks: bool [M, n], the assumed members.
        nodes: indices of the nodes to toggle.
        hops: ``"model"`` sums over the nodes within two hops, ``"affected"`` over all whose prediction changes.
        threads: cores to use; all by default. The numbers do not depend on it.

    Returns:
        Float64 [K, M, len(nodes)] each.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> model = build_gnn("gcn", features=2, hidden=4, classes=2)
        >>> compiled_toggles([model], pair, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0, 1])).own.shape
        torch.Size([1, 1, 2])
    """
    cores = threads or available_cores()
    problem = build_problem(models, data, threads=cores)
    weights = problem.weights
    targets = np.asarray(nodes, dtype=np.int64)
    mask_array = np.asarray(masks, dtype=np.bool_)
    out, own = np.zeros((2, len(mask_array), problem.models, len(targets)))
    state = problem.new_state()
    rows = even_cuts(len(problem.graph.member), _PIECES_A_THREAD * cores)
    pieces = target_order(problem.graph, targets, pieces=_PIECES_A_THREAD * cores)
    with open_workers(cores, problem.new_scratch) as workers:
        for mask, signals, losses in zip(mask_array, out, own, strict=True):
            graph = arrange(problem.graph, mask)
            for stage in range(STAGES):
                workers.each(partial(fill_rows, weights, stage, graph, state), rows)
            workers.each(partial(toggle_all, weights, hops == "affected", targets, graph, state, signals), pieces)
            losses[:] = state.loss[targets].T  # a toggle writes the loss of an added node into its own row
    return Toggles(*(torch.from_numpy(np.ascontiguousarray(found.transpose(1, 0, 2))) for found in (out, own)))
