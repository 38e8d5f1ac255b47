"""GraphSAGE-max of two layers: the two largest values per entry are kept, so that a neighbour can be added or removed.

The first maximum is over raw features and so the same for all models. A toggle of v changes it next to v, which changes
the hidden rows of one hop and the logits of two. All values are those after a ReLU, so a missing value is the same as
a 0. After a flip only the maxima that depended on the node are searched again: the two largest values of a hub rarely
depend on one neighbour, so its row costs as much as its width, not its degree. Maxima are exact in both ways, and sums
are computed again from them: no error builds up along a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import MaxAggregation

from glasshouse.core.arrays import F32, I32, BoolArray, FloatArray
from glasshouse.graph.rule.two_layers.graph import CSR, Reach, find_one_hop, grow_from, new_reach
from glasshouse.graph.rule.two_layers.kernels import inner_kernel
from glasshouse.graph.rule.two_layers.rows import (
    FeatureRows,
    LossRow,
    LossSum,
    add_change,
    add_product,
    batch_biases,
    batch_columns,
    batch_lines,
    clear,
    feature_rows,
    new_loss_row,
    new_loss_sum,
    project,
    row_losses,
    times,
    write_signal,
)

_ZERO = np.float32(0)


@inner_kernel
def replace_several(
    with_v: bool, v: int, x: int, moved: int, graph: CSR, top: F32, second: F32, before: F32, scratch: Any
) -> None:
    """The neighbours of x in ``scratch.moved`` change, and v is added or removed if it is a neighbour."""
    delta, after = scratch.delta, scratch.after
    width = delta.shape[1]
    inside = graph.member[v]
    for j in range(width):
        own = max(scratch.own[0, j], _ZERO) if with_v else _ZERO
        delta[1, j] = _ZERO if inside else own  # the largest new value
        delta[2, j] = own if inside else _ZERO  # the largest old value
        delta[3, j] = _ZERO  # the second largest
    for i in range(moved):
        k = scratch.moved[i]
        for j in range(width):
            delta[1, j] = max(delta[1, j], after[k, j])
    if graph.degree[x] <= 2 * moved + 2:  # few neighbours are unchanged: look at each of them
        _recompute(v, x, graph, top, before, scratch)
        return
    for i in range(moved):
        w = scratch.reach.nodes[scratch.moved[i]]
        for j in range(width):
            value = before[w, j]
            delta[3, j] = max(delta[3, j], min(delta[2, j], value))
            delta[2, j] = max(delta[2, j], value)
    unknown = 0
    for j in range(width):
        largest = top[x, j]
        runner_up = second[x, j]
        unknown += delta[2, j] >= largest and delta[3, j] >= runner_up and runner_up > _ZERO
        others = largest if delta[2, j] < largest else runner_up
        delta[0, j] = max(others, delta[1, j]) - largest
    if unknown:  # both of the two largest changed, and the third was not kept
        _recompute(v, x, graph, top, before, scratch)


@inner_kernel
def _recompute(v: int, x: int, graph: CSR, top: F32, before: F32, scratch: Any) -> None:
    """The maximum of delta[1] and of all unchanged neighbours of x."""
    delta, slot, near = scratch.delta, scratch.reach.slot, scratch.reach.size[0]
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        w = graph.columns[e]
        k = slot[w]
        if w != v and not (0 <= k < near and scratch.changed[k]):
            for j in range(delta.shape[1]):
                delta[1, j] = max(delta[1, j], before[w, j])
    for j in range(delta.shape[1]):
        delta[0, j] = delta[1, j] - top[x, j]


_NONE = np.float32(-np.inf)


class SAGEWeights(NamedTuple):
    """K models side by side, each of width h with C classes; F features."""

    X: F32  # [n, F]
    rows: FeatureRows  # of X
    W1: F32  # [F, K * h], for the largest value among neighbours
    own1: F32  # [n, K * h], the node's own share and the bias
    W2: F32  # [K * C, h], for neighbours
    V2: F32  # [K * C, h], for the node itself
    b2: F32  # [K * C]
    most: int  # the largest degree


class SAGEState(NamedTuple):
    """Valid in the rows of members."""

    feature1: F32  # [n, F], the largest value among neighbours; minus infinity without neighbours
    feature2: F32  # [n, F], the second largest, by multiplicity
    before: F32  # [n, K * h], the hidden row before its ReLU
    hidden1: F32  # [n, K * h], the largest hidden value among neighbours; 0 without neighbours, as after a ReLU
    hidden2: F32  # [n, K * h]
    logits: F32  # [n, K * C]
    loss: FloatArray  # [n, K]


class SAGEScratch(NamedTuple):
    """One thread's space."""

    reach: Reach
    feature: I32  # [F], features whose maximum changed
    value: F32  # [F], by how much
    largest: F32  # [1, F]
    changed: BoolArray  # [most], by slot: whether the hidden row changes
    moved: I32  # [most], slots of the changed neighbours of a row
    after: F32  # [most, K * h], by slot: the new hidden row before its ReLU
    own: F32  # [1, K * h], the toggled node's row before its ReLU
    delta: F32  # [4, K * h]: change of a maximum; then space to work one out
    lost: I32  # [K * h], entries of a row where it must be searched again
    part: F32  # [1, K * C]
    row: LossRow
    sums: LossSum
    signal: FloatArray  # [K]


def supports(layers: Sequence[Any]) -> bool:
    """Whether these are plain SAGEConv layers with a maximum."""
    return all(
        type(one) is SAGEConv
        and isinstance(one.aggr_module, MaxAggregation)
        and one.root_weight
        and not (one.normalize or one.project)
        for one in layers
    )


def prepare(models: Sequence[Sequence[Any]], x: F32, graph: CSR, *, threads: int) -> SAGEWeights:
    """Stack the two layers of every model; x [n, features]."""
    first, second = zip(*models, strict=True)
    rows = feature_rows(x)
    own = times(x, rows, batch_columns([c.lin_r.weight for c in first]), threads=threads)
    own += batch_biases([c.lin_l.bias for c in first], first[0].out_channels)
    return SAGEWeights(
        X=x,
        rows=rows,
        W1=batch_columns([c.lin_l.weight for c in first]),
        own1=own,
        W2=batch_lines([c.lin_l.weight for c in second]),
        V2=batch_lines([c.lin_r.weight for c in second]),
        b2=batch_biases([c.lin_l.bias for c in second], second[0].out_channels),
        most=int(np.diff(graph.start).max(initial=0)),
    )


def new_state(weights: SAGEWeights, models: int) -> SAGEState:
    """Rows to be filled."""
    n, width = weights.own1.shape
    features = weights.X.shape[1]
    return SAGEState(
        feature1=np.zeros((n, features), np.float32),
        feature2=np.zeros((n, features), np.float32),
        before=np.zeros((n, width), np.float32),
        hidden1=np.zeros((n, width), np.float32),
        hidden2=np.zeros((n, width), np.float32),
        logits=np.zeros((n, len(weights.b2)), np.float32),
        loss=np.zeros((n, models)),
    )


def new_scratch(weights: SAGEWeights, models: int) -> SAGEScratch:
    """Space for one thread."""
    n, width = weights.own1.shape
    features, logits, most = weights.X.shape[1], len(weights.b2), weights.most
    return SAGEScratch(
        reach=new_reach(n),
        feature=np.zeros(features, np.int32),
        value=np.zeros(features, np.float32),
        largest=np.zeros((1, features), np.float32),
        changed=np.zeros(most, np.bool_),
        moved=np.zeros(most, np.int32),
        after=np.zeros((most, width), np.float32),
        own=np.zeros((1, width), np.float32),
        delta=np.zeros((4, width), np.float32),
        lost=np.zeros(width, np.int32),
        part=np.zeros((1, logits), np.float32),
        row=new_loss_row(models, logits // models),
        sums=new_loss_sum(models),
        signal=np.zeros(models),
    )


@inner_kernel
def _add_aggregate(largest: F32, row: int, weights: SAGEWeights, scratch: SAGEScratch, place: int, out: F32) -> None:
    """out[place] += largest[row] times W1, by the non-zero entries."""
    entries = 0
    for f in range(largest.shape[1]):
        if largest[row, f] != _ZERO:
            scratch.feature[entries] = f
            scratch.value[entries] = largest[row, f]
            entries += 1
    add_product(0, entries, scratch.feature, scratch.value, weights.W1, place, out)


@inner_kernel
def _two_largest(u: int, values: F32, none: np.float32, graph: CSR, top: F32, second: F32) -> None:
    """Fill row u of ``top`` and ``second`` with the two largest values among the members next to u."""
    for j in range(values.shape[1]):
        top[u, j] = none
        second[u, j] = none
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        w = graph.columns[e]
        for j in range(values.shape[1]):
            x = values[w, j]
            second[u, j] = max(second[u, j], min(top[u, j], x))
            top[u, j] = max(top[u, j], x)


@inner_kernel
def fill_hidden(weights: SAGEWeights, u: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Compute the hidden row of member u again from the maxima of its neighbours' features."""
    for j in range(state.before.shape[1]):
        state.before[u, j] = weights.own1[u, j]
    if graph.degree[u] > 0:
        _add_aggregate(state.feature1, u, weights, scratch, u, state.before)


@inner_kernel
def fill_row(weights: SAGEWeights, stage: int, u: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Compute the kept row of member u again: stage 0 up to the hidden row, stage 1 the loss."""
    if stage == 0:
        _two_largest(u, weights.X, _NONE, graph, state.feature1, state.feature2)
        fill_hidden(weights, u, graph, state, scratch)
        return
    _two_largest(u, state.before, _ZERO, graph, state.hidden1, state.hidden2)
    fill_loss(weights, u, graph, state, scratch)


@inner_kernel
def fill_loss(weights: SAGEWeights, u: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Compute logits and losses of member u again from its hidden row and the maxima of its neighbours'."""
    before, row, own = state.before, scratch.row, scratch.own
    for j in range(own.shape[1]):
        own[0, j] = max(before[u, j], _ZERO)
    models = len(row.excess)
    project(state.hidden1, u, weights.W2, models, state.logits, u)
    project(own, 0, weights.V2, models, scratch.part, 0)
    for j in range(len(row.logits)):
        state.logits[u, j] += scratch.part[0, j] + weights.b2[j]
        row.logits[j] = state.logits[u, j]
    row_losses(graph.label[u], row, u, state.loss)


@inner_kernel
def _own_row(v: int, graph: CSR, weights: SAGEWeights, state: SAGEState, scratch: SAGEScratch) -> None:
    """Fill ``own``: the hidden row of v, before its ReLU, in the graph with v."""
    own = scratch.own
    if graph.member[v]:
        for j in range(own.shape[1]):
            own[0, j] = state.before[v, j]
        return
    for j in range(own.shape[1]):
        own[0, j] = weights.own1[v, j]
    near = scratch.reach.size[0]
    if near == 0:
        return
    X, largest = weights.X, scratch.largest
    for f in range(X.shape[1]):
        largest[0, f] = _NONE
    for i in range(near):
        u = scratch.reach.nodes[i]
        for f in range(X.shape[1]):
            largest[0, f] = max(largest[0, f], X[u, f])
    _add_aggregate(largest, 0, weights, scratch, 0, own)


@inner_kernel
def _new_hidden_row(v: int, i: int, graph: CSR, weights: SAGEWeights, state: SAGEState, scratch: SAGEScratch) -> None:
    """Fill ``after`` of the i-th neighbour of v, or mark that nothing changes there."""
    u = scratch.reach.nodes[i]
    rows, top, second = weights.rows, state.feature1, state.feature2
    feature, value = scratch.feature, scratch.value
    count = graph.degree[u]
    entries = 0
    for k in range(rows.start[v], rows.start[v + 1]):
        f, x = rows.feature[k], rows.value[k]
        step = _ZERO
        if not graph.member[v]:
            step = max(top[u, f], x) - (top[u, f] if count > 0 else _ZERO)
        elif x >= top[u, f]:
            step = (second[u, f] if count > 1 else _ZERO) - x
        if step != _ZERO:
            feature[entries] = f
            value[entries] = step
            entries += 1
    scratch.changed[i] = entries > 0
    if entries:
        for j in range(scratch.after.shape[1]):
            scratch.after[i, j] = state.before[u, j]
        add_product(0, entries, feature, value, weights.W1, i, scratch.after)


@inner_kernel
def _own_loss(v: int, graph: CSR, weights: SAGEWeights, state: SAGEState, scratch: SAGEScratch) -> None:
    """Write the loss of v, not a member, in the graph with v, into its otherwise unused row of the state."""
    delta, own, row = scratch.delta, scratch.own, scratch.row
    for j in range(own.shape[1]):
        delta[0, j] = _ZERO
        delta[1, j] = max(own[0, j], _ZERO)
    for i in range(scratch.reach.size[0]):
        if scratch.changed[i]:
            for j in range(own.shape[1]):
                delta[0, j] = max(delta[0, j], scratch.after[i, j])
        else:
            u = scratch.reach.nodes[i]
            for j in range(own.shape[1]):
                delta[0, j] = max(delta[0, j], state.before[u, j])
    models = len(row.excess)
    project(delta, 0, weights.W2, models, state.logits, v)
    project(delta, 1, weights.V2, models, scratch.part, 0)
    for j in range(len(row.logits)):
        row.logits[j] = state.logits[v, j] + scratch.part[0, j] + weights.b2[j]
    row_losses(graph.label[v], row, v, state.loss)


@inner_kernel
def find_moved(i: int, graph: CSR, scratch: SAGEScratch) -> int:
    """Fill ``moved`` with the slots of the i-th node's neighbours whose hidden rows change, and return how many."""
    reach, moved = scratch.reach, 0
    x = reach.nodes[i]
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        k = reach.slot[graph.columns[e]]
        if 0 <= k < reach.size[0] and scratch.changed[k]:
            scratch.moved[moved] = k
            moved += 1
    return moved


@inner_kernel
def _new_logits(v: int, i: int, graph: CSR, weights: SAGEWeights, state: SAGEState, scratch: SAGEScratch) -> bool:
    """Put the logits of the i-th node around v into ``row.logits``; False if none of its inputs changes."""
    reach, delta, row, after, before = scratch.reach, scratch.delta, scratch.row, scratch.after, state.before
    x = reach.nodes[i]
    near = reach.size[0]
    moved = find_moved(i, graph, scratch)
    models = len(row.excess)
    width = before.shape[1]
    if i >= near and moved == 0:
        return False
    replace_several(i < near, v, x, moved, graph, state.hidden1, state.hidden2, before, scratch)
    project(delta, 0, weights.W2, models, scratch.part, 0)
    for j in range(len(row.logits)):
        row.logits[j] = state.logits[x, j] + scratch.part[0, j]
    if i < near and scratch.changed[i]:
        for j in range(width):
            delta[0, j] = max(after[i, j], _ZERO) - max(before[x, j], _ZERO)
        project(delta, 0, weights.V2, models, scratch.part, 0)
        for j in range(len(row.logits)):
            row.logits[j] += scratch.part[0, j]
    return True


@inner_kernel
def toggle(weights: SAGEWeights, v: int, affected: bool, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Write S of v for all models into ``scratch.signal``; ``scratch.reach`` stays filled for a commit or a release."""
    reach, sums = scratch.reach, scratch.sums
    find_one_hop(v, graph, reach)
    _own_row(v, graph, weights, state, scratch)
    for i in range(reach.size[0]):
        _new_hidden_row(v, i, graph, weights, state, scratch)
    # a hub's maximum rarely depends on one neighbour, and then nothing changes behind the hub
    grow_from(scratch.changed, graph, reach)
    inside = graph.member[v]
    if not inside:
        _own_loss(v, graph, weights, state, scratch)
    clear(sums)
    for i in range(reach.size[1]):
        if _new_logits(v, i, graph, weights, state, scratch):
            x = reach.nodes[i]
            add_change(graph.label[x], scratch.row, x, state.loss, sums)
    write_signal(v, inside, state.loss, sums, scratch.signal)


_SHARE = 8  # if more than one neighbour in this many changes, looking at all of them in order is faster


@inner_kernel
def refresh(weights: SAGEWeights, v: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Update the rows of v and of its two hops; the graph already has its new state."""
    reach, joined = scratch.reach, graph.member[v]
    if joined:
        fill_row(weights, 0, v, graph, state, scratch)
    for i in range(reach.size[0]):
        _hidden_row(v, i, weights, graph, state, scratch)
    if joined:
        fill_row(weights, 1, v, graph, state, scratch)
    for i in range(reach.size[1]):
        _loss_row(v, i, weights, graph, state, scratch)


@inner_kernel
def _hidden_row(v: int, i: int, weights: SAGEWeights, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
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
def _largest_features(v: int, u: int, weights: SAGEWeights, graph: CSR, state: SAGEState) -> bool:
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
def _loss_row(v: int, i: int, weights: SAGEWeights, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
    """Update the largest hidden values, the logits and the loss of the i-th node around v."""
    reach = scratch.reach
    x, near = reach.nodes[i], reach.size[0]
    moved = find_moved(i, graph, scratch)
    if i >= near and moved == 0:
        return
    if graph.degree[x] <= _SHARE * (moved + 1):
        fill_row(weights, 1, x, graph, state, scratch)
    elif _largest_hidden(v, i, moved, graph, state, scratch) or (i < near and scratch.changed[i]):
        fill_loss(weights, x, graph, state, scratch)


@inner_kernel
def _largest_hidden(v: int, i: int, moved: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> bool:
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
def _comings_and_goings(v: int, i: int, moved: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
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
def _seek_several(count: int, x: int, graph: CSR, state: SAGEState, scratch: SAGEScratch) -> None:
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
def _seek(f: int, u: int, graph: CSR, weights: SAGEWeights, state: SAGEState) -> None:
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
