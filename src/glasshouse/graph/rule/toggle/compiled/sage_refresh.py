"""GraphSAGE-max after a node was added or removed: only the maxima that depended on it are searched again.

The two largest values of a hub rarely depend on one neighbour, so its row costs as much as its width, not its degree.
Maxima are exact in both ways, and sums are computed again from them: no error builds up along a chain.
"""

from __future__ import annotations

import numpy as np

from glasshouse.graph.rule.jit import inner_kernel
from glasshouse.graph.rule.toggle.compiled.plan import Graph
from glasshouse.graph.rule.toggle.compiled.sage import (
    SAGEScratch,
    SAGEState,
    SAGEWeights,
    fill_hidden,
    fill_loss,
    fill_row,
    find_moved,
    list_moved,
)

__all__ = ["refresh"]

_ZERO = np.float32(0)
_NONE = np.float32(-np.inf)
_SHARE = 8  # if more than one neighbour in this many changes, looking at all of them in order is faster


@inner_kernel
def refresh(weights: SAGEWeights, v: int, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> None:
    """Update the rows of v and of its two hops; the graph already has its new state."""
    reach, joined = scratch.reach, graph.member[v]
    if joined:
        fill_row(weights, 0, v, graph, state, scratch)
    for i in range(reach.size[0]):
        _hidden_row(v, i, weights, graph, state, scratch)
    if joined:
        fill_row(weights, 1, v, graph, state, scratch)
    list_moved(graph, scratch)
    for i in range(reach.size[1]):
        _loss_row(v, i, weights, graph, state, scratch)


@inner_kernel
def _hidden_row(v: int, i: int, weights: SAGEWeights, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> None:
    """Update the hidden row of the i-th neighbour of v, leave the old one in ``after``, return whether it changed."""
    u = scratch.reach.nodes[i]
    before, after, width = state.before, scratch.after, state.before.shape[1]
    for j in range(width):
        after[i, j] = before[u, j]
    # with two values or more, the two largest of a feature that v does not have are the same before and after
    if graph.degree[u] < _SHARE:
        fill_row(weights, 0, u, graph, state, scratch)
    elif _largest_features(v, u, weights, graph, state):
        fill_hidden(weights, u, graph, state, scratch)
    scratch.changed[i] = False
    for j in range(width):
        if before[u, j] != after[i, j]:
            scratch.changed[i] = True
            break


@inner_kernel
def _largest_features(v: int, u: int, weights: SAGEWeights, graph: Graph, state: SAGEState) -> bool:
    """Update the two largest values of each feature among the neighbours of u; return whether a largest one changes."""
    rows, top, second = weights.rows, state.feature1, state.feature2
    changes = False
    for k in range(rows.start[v], rows.start[v + 1]):
        f, x = rows.feature[k], rows.value[k]
        largest = top[u, f]
        if graph.member[v]:
            second[u, f] = max(second[u, f], min(largest, x))
            top[u, f] = max(largest, x)
        elif x >= second[u, f]:
            _seek(f, u, graph, weights, state)
        changes |= top[u, f] != largest
    return changes


@inner_kernel
def _loss_row(v: int, i: int, weights: SAGEWeights, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> None:
    """Update the largest hidden values, the logits and the loss of the i-th node around v."""
    reach = scratch.reach
    x, near = reach.nodes[i], reach.size[0]
    moved = find_moved(i, scratch)
    if i >= near and moved == 0:
        return
    if graph.degree[x] <= _SHARE * (moved + 1):
        fill_row(weights, 1, x, graph, state, scratch)
    elif _largest_hidden(v, i, moved, graph, state, scratch) or (i < near and scratch.changed[i]):
        fill_loss(weights, x, graph, state, scratch)


@inner_kernel
def _largest_hidden(v: int, i: int, moved: int, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> bool:
    """Update the two largest hidden values among the neighbours of the i-th node; return whether a largest changes."""
    top, second, delta, lost = state.hidden1, state.hidden2, scratch.delta, scratch.lost
    x = scratch.reach.nodes[i]
    _comings_and_goings(v, i, moved, graph, state, scratch)
    changes = False
    count = 0
    for j in range(top.shape[1]):
        largest, runner_up, came = top[x, j], second[x, j], delta[2, j]
        if delta[0, j] < runner_up or delta[0, j] == _ZERO:  # both are still present
            second[x, j] = max(max(runner_up, delta[3, j]), min(largest, came))
            top[x, j] = max(largest, came)
        elif delta[1, j] < runner_up and came >= runner_up:  # one is, and the new value is not below the others
            stays = runner_up if delta[0, j] >= largest else largest
            second[x, j] = max(delta[3, j], min(stays, came))
            top[x, j] = max(stays, came)
        else:
            delta[0, count] = largest  # entries before j are finished
            lost[count] = j
            count += 1
            continue
        changes |= top[x, j] != largest
    _seek_several(count, x, graph, state, scratch)
    for k in range(count):
        changes |= top[x, lost[k]] != delta[0, k]
    return changes


@inner_kernel
def _comings_and_goings(v: int, i: int, moved: int, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> None:
    """Fill ``delta`` with the two largest hidden values that the i-th node no longer sees, and those that are new."""
    before, after, delta = state.before, scratch.after, scratch.delta
    width = before.shape[1]
    for j in range(width):
        own = max(before[v, j], _ZERO) if i < scratch.reach.size[0] else _ZERO
        delta[0, j] = _ZERO if graph.member[v] else own
        delta[1, j] = _ZERO
        delta[2, j] = own if graph.member[v] else _ZERO
        delta[3, j] = _ZERO
    for place in range(moved):
        k = scratch.moved[place]
        w = scratch.reach.nodes[k]
        for j in range(width):
            old, new = after[k, j], before[w, j]
            delta[1, j] = max(delta[1, j], min(delta[0, j], old))
            delta[0, j] = max(delta[0, j], old)
            delta[3, j] = max(delta[3, j], min(delta[2, j], new))
            delta[2, j] = max(delta[2, j], new)


@inner_kernel
def _seek_several(count: int, x: int, graph: Graph, state: SAGEState, scratch: SAGEScratch) -> None:
    """Find the two largest hidden values among all neighbours of x at the first entries of ``lost``."""
    before, top, second, lost = state.before, state.hidden1, state.hidden2, scratch.lost
    for k in range(count):
        top[x, lost[k]] = _ZERO
        second[x, lost[k]] = _ZERO
    if count == 0:
        return
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        w = graph.columns[e]
        for k in range(count):
            j = lost[k]
            value = before[w, j]
            second[x, j] = max(second[x, j], min(top[x, j], value))
            top[x, j] = max(top[x, j], value)


@inner_kernel
def _seek(f: int, u: int, graph: Graph, weights: SAGEWeights, state: SAGEState) -> None:
    """Find the two largest values of feature f among all neighbours of u; none of them is above the kept one."""
    X, most = weights.X, state.feature1[u, f]
    first, next_to_it = _NONE, _NONE
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        value = X[graph.columns[e], f]
        next_to_it = max(next_to_it, min(first, value))
        first = max(first, value)
        if next_to_it >= most:
            break
    state.feature1[u, f] = first
    state.feature2[u, f] = next_to_it
