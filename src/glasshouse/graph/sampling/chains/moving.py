"""Flip members one after another, and keep what all of them add up to."""

from __future__ import annotations

from typing import Any

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.rule.jit import inner_kernel, kernel
from glasshouse.graph.rule.toggle.compiled.architecture import extra_hops
from glasshouse.graph.rule.toggle.compiled.commit import commit
from glasshouse.graph.rule.toggle.compiled.plan import Graph
from glasshouse.graph.rule.toggle.compiled.reach import find_two_hops, grow
from glasshouse.graph.sampling.chains.posterior import asked_ratio

__all__ = ["add_members", "move", "move_all"]


@inner_kernel
def _add(u: int, sign: int, state: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Add (or take away) the losses of member u; where ``asked`` has rows, its own ratio, with its sign turned."""
    if len(asked) > 0:
        totals[0] -= sign * asked_ratio(state.loss[u], asked[u])
    else:
        for m in range(len(totals)):
            totals[m] += sign * state.loss[u, m]


@kernel
def add_members(graph: Graph, state: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Add every member to ``totals`` [1 + K]."""
    for u in range(len(graph.member)):
        if graph.member[u]:
            _add(u, 1, state, asked, totals)


@inner_kernel
def _add_around(v: int, sign: int, graph: Graph, state: Any, reach: Any, asked: BoolArray, totals: FloatArray) -> None:
    if graph.member[v]:
        _add(v, sign, state, asked, totals)
    for i in range(reach.size[2]):
        _add(reach.nodes[i], sign, state, asked, totals)


@inner_kernel
def move(weights: Any, v: int, graph: Graph, state: Any, scratch: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Flip v and keep ``totals`` [1 + K] up to date: summed losses of all members.

    If ``asked`` [n, K] has rows, ``totals[0]`` is the members' summed ratio with its sign turned, and the others stay
    zero, so that `log_ratio` of the totals is that sum.
    """
    reach = scratch.reach
    find_two_hops(v, graph, reach)
    if extra_hops(weights):
        grow(2, graph, reach)
    _add_around(v, -1, graph, state, reach, asked, totals)
    commit(weights, v, graph, state, scratch)
    # The list is still there after its release; only the slots were cleared.
    _add_around(v, 1, graph, state, reach, asked, totals)


@kernel
def move_all(
    weights: Any, nodes: IntArray, graph: Graph, state: Any, scratch: Any, asked: BoolArray, totals: FloatArray
) -> None:
    """Flip these nodes in turn, and keep ``totals`` up to date."""
    for i in range(len(nodes)):
        move(weights, nodes[i], graph, state, scratch, asked, totals)
