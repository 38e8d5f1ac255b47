"""GCN of two layers: kept sums, and what one toggled node adds to or removes from them.

With c_u = 1 + the members next to u and s = c^-1/2, a layer gives s_u (s_u Z_u + sum of s_w Z_w) + b. A toggle of v
changes s next to v, so the hidden rows of two hops change, and the logits of three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.nn import GCNConv

from glasshouse.core.arrays import F32, FloatArray
from glasshouse.graph.rule.two_layers import rows
from glasshouse.graph.rule.two_layers.graph import CSR, Reach, find_two_hops, grow, new_reach
from glasshouse.graph.rule.two_layers.kernels import inner_kernel
from glasshouse.graph.rule.two_layers.rows import (
    batch_biases,
    batch_columns,
    batch_lines,
    feature_rows,
    project,
    times,
)


class GCNWeights(NamedTuple):
    """K models side by side, each of width h with C classes."""

    Z: F32  # [n, K * h], features times the first layer's matrix
    b1: F32  # [K * h]
    W2: F32  # [K * C, h]
    b2: F32  # [K * C]
    rsqrt: F32  # [largest degree + 2], k -> k^-1/2


class GCNState(NamedTuple):
    """Valid in the rows of members."""

    a1: F32  # [n, K * h]
    P: F32  # [n, K * C], hidden row times the second layer's matrix
    a2: F32  # [n, K * C]
    loss: FloatArray  # [n, K]


class GCNScratch(NamedTuple):
    """One thread's space."""

    reach: Reach
    hidden: F32  # [1, K * h]
    change: F32  # [n, K * C], s'P' - sP by slot
    own: F32  # [1, K * C], P of the toggled node
    row: rows.LossRow
    sums: rows.LossSum
    signal: FloatArray  # [K]


def supports(layers: Sequence[Any]) -> bool:
    """Whether these are plain GCNConv layers."""
    return all(
        type(one) is GCNConv and one.normalize and one.add_self_loops and not (one.improved or one.cached)
        for one in layers
    )


def prepare(models: Sequence[Sequence[Any]], x: F32, graph: CSR, *, threads: int) -> GCNWeights:
    """Stack the two layers of every model; x [n, features]."""
    first, second = zip(*models, strict=True)
    return GCNWeights(
        Z=times(x, feature_rows(x), batch_columns([c.lin.weight for c in first]), threads=threads),
        b1=batch_biases([c.bias for c in first], first[0].out_channels),
        W2=batch_lines([c.lin.weight for c in second]),
        b2=batch_biases([c.bias for c in second], second[0].out_channels),
        rsqrt=(1 / np.sqrt(np.maximum(np.arange(np.diff(graph.start).max(initial=0) + 3), 1))).astype(np.float32),
    )


def new_state(weights: GCNWeights, models: int) -> GCNState:
    """Rows to be filled."""
    n, logits = len(weights.Z), len(weights.b2)
    return GCNState(
        a1=np.zeros_like(weights.Z),
        P=np.zeros((n, logits), np.float32),
        a2=np.zeros((n, logits), np.float32),
        loss=np.zeros((n, models)),
    )


def new_scratch(weights: GCNWeights, models: int) -> GCNScratch:
    """Space for one thread."""
    n, logits = len(weights.Z), len(weights.b2)
    return GCNScratch(
        reach=new_reach(n),
        hidden=np.zeros((1, weights.Z.shape[1]), np.float32),
        change=np.zeros((n, logits), np.float32),
        own=np.zeros((1, logits), np.float32),
        row=rows.new_loss_row(models, logits // models),
        sums=rows.new_loss_sum(models),
        signal=np.zeros(models),
    )


@inner_kernel
def _activate(scale: float, weights: GCNWeights, hidden: F32) -> None:
    for j in range(hidden.shape[1]):
        hidden[0, j] = max(scale * hidden[0, j] + weights.b1[j], np.float32(0))


@inner_kernel
def _gather(u: int, values: F32, graph: CSR, rsqrt: F32, out: F32) -> None:
    """out[u] = the row of u and those of its member neighbours, each times its own root of the degree."""
    s = rsqrt[1 + graph.degree[u]]
    for j in range(values.shape[1]):
        out[u, j] = s * values[u, j]
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        w = graph.columns[e]
        s_w = rsqrt[1 + graph.degree[w]]
        for j in range(values.shape[1]):
            out[u, j] += s_w * values[w, j]


@inner_kernel
def fill_row(weights: GCNWeights, stage: int, u: int, graph: CSR, state: GCNState, scratch: GCNScratch) -> None:
    """Compute the kept row of member u again: stage 0 up to P, stage 1 the loss."""
    hidden, row = scratch.hidden, scratch.row
    s = weights.rsqrt[1 + graph.degree[u]]
    if stage == 0:
        _gather(u, weights.Z, graph, weights.rsqrt, state.a1)
        for j in range(hidden.shape[1]):
            hidden[0, j] = state.a1[u, j]
        _activate(s, weights, hidden)
        project(hidden, 0, weights.W2, len(row.excess), state.P, u)
        return
    _gather(u, state.P, graph, weights.rsqrt, state.a2)
    for j in range(len(row.logits)):
        row.logits[j] = s * state.a2[u, j] + weights.b2[j]
    rows.row_losses(graph.label[u], row, u, state.loss)


@inner_kernel
def _hidden_changes(v: int, sign: int, graph: CSR, weights: GCNWeights, state: GCNState, scratch: GCNScratch) -> None:
    """Fill ``change`` for the rows within two hops of v."""
    start, columns, count = graph.start, graph.columns, graph.degree
    rsqrt, Z, hidden = weights.rsqrt, weights.Z, scratch.hidden
    nodes, slot = scratch.reach.nodes, scratch.reach.slot
    near = scratch.reach.size[0]
    width = Z.shape[1]
    from_v = rsqrt[1 + near] if sign > 0 else -rsqrt[1 + near]  # a product with an int would be a float64
    for i in range(scratch.reach.size[1]):
        x = nodes[i]
        s = rsqrt[1 + count[x]]
        s_new = s
        if i < near:
            s_new = rsqrt[1 + count[x] + sign]
            ds = s_new - s
            for j in range(width):
                hidden[0, j] = state.a1[x, j] + ds * Z[x, j] + from_v * Z[v, j]
        else:
            for j in range(width):
                hidden[0, j] = state.a1[x, j]
        for e in range(start[x], start[x] + count[x]):
            w = columns[e]
            if 0 <= slot[w] < near:
                ds = rsqrt[1 + count[w] + sign] - rsqrt[1 + count[w]]
                for j in range(width):
                    hidden[0, j] += ds * Z[w, j]
        _activate(s_new, weights, hidden)
        project(hidden, 0, weights.W2, len(scratch.row.excess), scratch.change, i)
        for j in range(state.P.shape[1]):
            scratch.change[i, j] = s_new * scratch.change[i, j] - s * state.P[x, j]


@inner_kernel
def _own_projection(v: int, graph: CSR, weights: GCNWeights, state: GCNState, scratch: GCNScratch) -> None:
    """Fill ``own``: P of v in the graph with v."""
    if graph.member[v]:
        for j in range(state.P.shape[1]):
            scratch.own[0, j] = state.P[v, j]
        return
    rsqrt, Z, hidden = weights.rsqrt, weights.Z, scratch.hidden
    near = scratch.reach.size[0]
    s = rsqrt[1 + near]
    for j in range(Z.shape[1]):
        hidden[0, j] = s * Z[v, j]
    for i in range(near):
        u = scratch.reach.nodes[i]
        s_u = rsqrt[2 + graph.degree[u]]
        for j in range(Z.shape[1]):
            hidden[0, j] += s_u * Z[u, j]
    _activate(s, weights, hidden)
    project(hidden, 0, weights.W2, len(scratch.row.excess), scratch.own, 0)


@inner_kernel
def _own_loss(v: int, graph: CSR, weights: GCNWeights, state: GCNState, scratch: GCNScratch) -> None:
    """Write the loss of v, not a member, in the graph with v, into its otherwise unused row of the state."""
    nodes, row, change = scratch.reach.nodes, scratch.row, scratch.change
    s = weights.rsqrt[1 + scratch.reach.size[0]]
    for j in range(len(row.logits)):
        row.logits[j] = s * scratch.own[0, j]
    for i in range(scratch.reach.size[0]):
        u = nodes[i]
        s_u = weights.rsqrt[1 + graph.degree[u]]
        for j in range(len(row.logits)):
            row.logits[j] += change[i, j] + s_u * state.P[u, j]
    for j in range(len(row.logits)):
        row.logits[j] = s * row.logits[j] + weights.b2[j]
    rows.row_losses(graph.label[v], row, v, state.loss)


@inner_kernel
def toggle(weights: GCNWeights, v: int, affected: bool, graph: CSR, state: GCNState, scratch: GCNScratch) -> None:
    """Write S of v for all models into ``scratch.signal``; ``scratch.reach`` stays filled for a commit or a release."""
    reach, row, sums, signal = scratch.reach, scratch.row, scratch.sums, scratch.signal
    start, columns, count = graph.start, graph.columns, graph.degree
    slot, change = reach.slot, scratch.change
    find_two_hops(v, graph, reach)
    if affected:
        grow(2, graph, reach)
    sign = -1 if graph.member[v] else 1
    near, two = reach.size[0], reach.size[1]
    _hidden_changes(v, sign, graph, weights, state, scratch)
    _own_projection(v, graph, weights, state, scratch)
    if sign > 0:
        _own_loss(v, graph, weights, state, scratch)
    from_v = weights.rsqrt[1 + near] if sign > 0 else -weights.rsqrt[1 + near]
    width = len(row.logits)
    rows.clear(sums)
    for i in range(reach.size[2]):
        x = reach.nodes[i]
        for j in range(width):
            row.logits[j] = state.a2[x, j]
        if i < two:
            for j in range(width):
                row.logits[j] += change[i, j]
        if i < near:
            for j in range(width):
                row.logits[j] += from_v * scratch.own[0, j]
        for e in range(start[x], start[x] + count[x]):
            k = slot[columns[e]]
            if 0 <= k < two:
                for j in range(width):
                    row.logits[j] += change[k, j]
        s = weights.rsqrt[1 + count[x] + (sign if i < near else 0)]
        for j in range(width):
            row.logits[j] = s * row.logits[j] + weights.b2[j]
        rows.add_change(graph.label[x], row, x, state.loss, sums)
    rows.write_signal(v, sign < 0, state.loss, sums, signal)
