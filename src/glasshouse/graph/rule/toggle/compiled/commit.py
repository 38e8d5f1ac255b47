"""Make a flip permanent: every row that it changes is updated."""

from __future__ import annotations

from typing import Any

from glasshouse.graph.rule.jit import inner_kernel, kernel
from glasshouse.graph.rule.toggle.compiled.architecture import STAGES, extra_hops, fill_row, refresh
from glasshouse.graph.rule.toggle.compiled.plan import Graph, flip
from glasshouse.graph.rule.toggle.compiled.reach import grow, release

__all__ = ["commit", "fill_state"]


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
