"""Make a flip permanent: every row that it changes is updated."""

from __future__ import annotations

from typing import Any

from glasshouse.graph.rule.jit import inner_kernel, kernel
from glasshouse.graph.rule.toggle.compiled.architecture import STAGES, extra_hops, fill_row, refresh
from glasshouse.graph.rule.toggle.compiled.plan import Graph, flip
from glasshouse.graph.rule.toggle.compiled.reach import find_two_hops, grow, release

__all__ = ["commit", "fill_state", "move"]


@kernel
def fill_state(weights: Any, graph: Graph, state: Any, scratch: Any) -> None:
    """The forward pass: rows of all members."""
    for stage in range(STAGES):
        for u in range(len(graph.member)):
            if graph.member[u]:
                fill_row(weights, stage, u, graph, state, scratch)


@inner_kernel
def commit(weights: Any, v: int, graph: Graph, state: Any, scratch: Any) -> None:
    """Flip v, whose two hops ``scratch.reach`` holds, and refresh every row that this changes. Releases the reach."""
    reach = scratch.reach
    if extra_hops(weights) and reach.size[2] == reach.size[1]:
        grow(2, graph, reach)
    flip(v, graph)
    refresh(weights, v, graph, state, scratch)
    release(v, reach)


@inner_kernel
def _add_losses_around(v: int, sign: int, graph: Graph, state: Any, reach: Any, totals: Any) -> None:
    for m in range(len(totals)):
        if graph.member[v]:
            totals[m] += sign * state.loss[v, m]
        for i in range(reach.size[2]):
            totals[m] += sign * state.loss[reach.nodes[i], m]


@inner_kernel
def move(weights: Any, v: int, graph: Graph, state: Any, scratch: Any, totals: Any) -> None:
    """Flip v and keep ``totals`` [K], the summed losses of all members, up to date."""
    reach = scratch.reach
    find_two_hops(v, graph, reach)
    if extra_hops(weights):
        grow(2, graph, reach)
    _add_losses_around(v, -1, graph, state, reach, totals)
    commit(weights, v, graph, state, scratch)
    # The list is still there after its release; only the slots were cleared.
    _add_losses_around(v, 1, graph, state, reach, totals)
