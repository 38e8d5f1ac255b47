"""GAT after a node was added or removed: messages that changed are exchanged, the others are not added up again.

A row's sums are computed from all of its messages again after some updates, or when an update takes much of them away,
so that rounding does not build up along a chain.
"""

from __future__ import annotations

from glasshouse.graph.rule.jit import inner_kernel
from glasshouse.graph.rule.toggle.compiled import losses
from glasshouse.graph.rule.toggle.compiled.attention import (
    PARTS,
    add_message,
    cancels,
    replace_message,
    take_message,
)
from glasshouse.graph.rule.toggle.compiled.gat import (
    GATScratch,
    GATState,
    GATWeights,
    fill_row,
    first_sums,
    second_message,
    write_logits,
)
from glasshouse.graph.rule.toggle.compiled.plan import Graph

__all__ = ["refresh"]

_MOST = 16  # updates of a row before all of its messages are added up again
_LEFT = 11 / 12  # the least share of a sum of weights that an update may leave: after 16 of them a quarter is left


@inner_kernel
def refresh(weights: GATWeights, v: int, graph: Graph, state: GATState, scratch: GATScratch) -> None:
    """Update the rows of v and of its two hops; the graph already has its new state."""
    reach, joined = scratch.reach, graph.member[v]
    if joined:
        fill_row(weights, 0, v, graph, state, scratch)
    for i in range(reach.size[0]):
        _message_row(v, i, weights, graph, state, scratch)
    if joined:
        fill_row(weights, 1, v, graph, state, scratch)
    for i in range(reach.size[1]):
        if i < reach.size[0]:  # its own score is another one, which changes the weights of all its messages
            fill_row(weights, 1, reach.nodes[i], graph, state, scratch)
        else:
            _loss_row(i, weights, graph, state, scratch)


@inner_kernel
def _message_row(v: int, i: int, weights: GATWeights, graph: Graph, state: GATState, scratch: GATScratch) -> None:
    """Update the first layer's sums and the message of the i-th neighbour of v; its old message stays in ``after``."""
    first, sums, after, second = weights.first, scratch.sum1, scratch.after, state.second
    u = scratch.reach.nodes[i]
    for part in range(PARTS):
        for j in range(after.shape[2]):
            after[i, part, j] = second[u, part, j]
    for j in range(sums.shape[1]):
        sums[0, j] = state.sum1[u, j]
    if graph.member[v]:
        add_message(sums, first, u, first, v)
    else:
        take_message(sums, first, u, first, v)
    state.updates[u, 0] += 1
    if state.updates[u, 0] > _MOST or cancels(state.sum1, u, sums, sums.shape[1] - len(weights.b1), _LEFT):
        state.updates[u, 0] = 0
        first_sums(weights, u, -1, graph, scratch)
    for j in range(sums.shape[1]):
        state.sum1[u, j] = sums[0, j]
    second_message(weights, state.sum1, u, scratch, second, u)


@inner_kernel
def _loss_row(i: int, weights: GATWeights, graph: Graph, state: GATState, scratch: GATScratch) -> None:
    """Update the second layer's sums and the loss of the i-th node, two steps from the flipped one."""
    reach, sums, second = scratch.reach, scratch.sum2, state.second
    x, near = reach.nodes[i], reach.size[0]
    for j in range(sums.shape[1]):
        sums[0, j] = state.sum2[x, j]
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        w = graph.columns[e]
        k = reach.slot[w]
        if 0 <= k < near:
            replace_message(sums, second, x, scratch.after, k, second, w)
    state.updates[x, 1] += 1
    if state.updates[x, 1] > _MOST or cancels(state.sum2, x, sums, len(weights.level2), _LEFT):
        fill_row(weights, 1, x, graph, state, scratch)
        return
    for j in range(sums.shape[1]):
        state.sum2[x, j] = sums[0, j]
    write_logits(weights, scratch)
    losses.row_losses(graph.label[x], scratch.row, x, state.loss)
