"""The functions that the engine and the chains need; a kernel finds them by the type of the weights."""

from __future__ import annotations

from typing import Any

from glasshouse.graph.rule.jit import choose_by_type, inner_kernel
from glasshouse.graph.rule.toggle.compiled import gat, gat_refresh, gcn, sage, sage_refresh
from glasshouse.graph.rule.toggle.compiled.plan import Graph

__all__ = ["ARCHITECTURES", "SELF_LOOPS_MATTER", "STAGES", "extra_hops", "fill_row", "refresh", "toggle"]

ARCHITECTURES = (gcn, sage, gat)
SELF_LOOPS_MATTER = (sage,)  # GCN and GAT give every node exactly one self-loop, whatever the graph has
STAGES = 2  # a row is filled for every node in stage 0 before any node reaches stage 1


def fill_row(weights: Any, stage: int, u: int, graph: Graph, state: Any, scratch: Any) -> None:
    """Compute the kept row of member u again."""
    raise TypeError("only kernels may call this")


def toggle(weights: Any, v: int, affected: bool, graph: Graph, state: Any, scratch: Any) -> None:
    """S of node v into ``scratch.signal`` [K]; ``scratch.reach`` stays filled for a commit or a release."""
    raise TypeError("only kernels may call this")


def extra_hops(weights: Any) -> int:
    """How much further a node's presence has an effect than its features: 1 if degrees scale the messages."""
    raise TypeError("only kernels may call this")


def refresh(weights: Any, v: int, graph: Graph, state: Any, scratch: Any) -> None:
    """Update every row after node v, whose neighbourhood ``scratch.reach`` holds, was added or removed."""
    raise TypeError("only kernels may call this")


@inner_kernel
def _fill_all(weights: Any, v: int, graph: Graph, state: Any, scratch: Any) -> None:
    """Compute every row within reach again, so that no error builds up along a chain."""
    reach = scratch.reach
    for stage in range(STAGES):
        if graph.member[v]:
            fill_row(weights, stage, v, graph, state, scratch)
        for i in range(reach.size[stage + extra_hops(weights)]):
            fill_row(weights, stage, reach.nodes[i], graph, state, scratch)


@inner_kernel
def _none(weights: Any) -> int:
    return 0


@inner_kernel
def _one(weights: Any) -> int:
    return 1


choose_by_type(fill_row, {gcn.GCNWeights: gcn.fill_row, sage.SAGEWeights: sage.fill_row, gat.GATWeights: gat.fill_row})
choose_by_type(toggle, {gcn.GCNWeights: gcn.toggle, sage.SAGEWeights: sage.toggle, gat.GATWeights: gat.toggle})
choose_by_type(extra_hops, {gcn.GCNWeights: _one, sage.SAGEWeights: _none, gat.GATWeights: _none})
choose_by_type(
    refresh,
    {gcn.GCNWeights: _fill_all, sage.SAGEWeights: sage_refresh.refresh, gat.GATWeights: gat_refresh.refresh},
)
