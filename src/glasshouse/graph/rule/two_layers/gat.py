"""GAT of two layers: weighted sums and sums of weights are kept separately, so that a message can be added or removed.

A toggle of v changes the hidden rows of one hop and the logits of two. Next to v a node's own scores change, so its
sums are computed again; two hops away only the messages from the changed rows are exchanged. After a flip a row's sums
are computed from all of its messages again after some updates, or when an update takes much of them away, so that
rounding does not build up along a chain.

There is no exponential per edge. The weight of the edge from w to x is exp(leaky(source_w + target_x) - shift_x), and
the leaky ReLU has two straight branches, so it is a product of one number from w and one from x; the sign of the sum
selects the branch. A node keeps both numbers for both branches, in a message row of six parts, each as wide as the
values that are sent:

====  ==========================================================
part  holds
====  ==========================================================
0, 1  values times exp(slope * (source - level)), upper and lower branch
2     source score
3     target score
4, 5  exp(slope * (target + level) - shift), upper and lower branch
====  ==========================================================

The values of a head end with a 1, so that one pass gives the weighted sum and the sum of weights. ``level`` is about
the largest source score, and cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.nn import GATConv

from glasshouse.core.arrays import F32, I32, FloatArray, Floats
from glasshouse.graph.rule.two_layers import rows
from glasshouse.graph.rule.two_layers.graph import CSR, Reach, arrange, find_two_hops, new_reach
from glasshouse.graph.rule.two_layers.kernels import inner_kernel, kernel
from glasshouse.graph.rule.two_layers.rows import array, batch_biases, batch_columns, feature_rows, project, times

PARTS = 6
QUARTER = 0.25  # if less is left of a sum of weights, too few digits of it are left


@inner_kernel
def write_message(
    values: Floats, scores: Floats, row: int, level: Floats, slope: float, messages: Floats, place: int
) -> None:
    """Fill messages[place] from values[row] and scores[row].

    values [., heads * width]; scores [., 2 * heads], sources then targets; messages [., PARTS, heads * (width + 1)].
    """
    heads = len(level)
    width = messages.shape[2] // heads
    for g in range(heads):
        source, target = scores[row, g], scores[row, heads + g]
        upper, lower = np.exp(source - level[g]), np.exp(slope * (source - level[g]))
        reach = target + level[g]
        shift = reach if reach > 0 else slope * reach
        first, last = g * width, (g + 1) * width
        for j in range(first, last - 1):
            messages[place, 0, j] = upper * values[row, j - g]
            messages[place, 1, j] = lower * values[row, j - g]
        messages[place, 0, last - 1] = upper
        messages[place, 1, last - 1] = lower
        to_upper, to_lower = np.exp(reach - shift), np.exp(slope * reach - shift)
        for j in range(first, last):
            messages[place, 2, j] = source
            messages[place, 3, j] = target
            messages[place, 4, j] = to_upper
            messages[place, 5, j] = to_lower


@inner_kernel
def add_message(out: Floats, to: Floats, t: int, source: Floats, s: int) -> None:
    """out[0] += the message from source[s] to to[t]."""
    for j in range(out.shape[1]):
        upper = to[t, 4, j] * source[s, 0, j]
        lower = to[t, 5, j] * source[s, 1, j]
        out[0, j] += upper if source[s, 2, j] > -to[t, 3, j] else lower


@inner_kernel
def take_message(out: Floats, to: Floats, t: int, source: Floats, s: int) -> None:
    """out[0] -= the message from source[s] to to[t]."""
    for j in range(out.shape[1]):
        upper = to[t, 4, j] * source[s, 0, j]
        lower = to[t, 5, j] * source[s, 1, j]
        out[0, j] -= upper if source[s, 2, j] > -to[t, 3, j] else lower


@inner_kernel
def replace_message(out: Floats, to: Floats, t: int, old: Floats, o: int, new: Floats, k: int) -> None:
    """out[0] += the message from new[k] less the one from old[o]."""
    for j in range(out.shape[1]):
        below, to_upper, to_lower = -to[t, 3, j], to[t, 4, j], to[t, 5, j]
        new_upper, new_lower = to_upper * new[k, 0, j], to_lower * new[k, 1, j]  # both, so that no load is conditional
        old_upper, old_lower = to_upper * old[o, 0, j], to_lower * old[o, 1, j]
        fresh = new_upper if new[k, 2, j] > below else new_lower
        stale = old_upper if old[o, 2, j] > below else old_lower
        out[0, j] += fresh - stale


@inner_kernel
def cancels(kept: Floats, row: int, changed: Floats, heads: int, share: float) -> bool:
    """Whether some sum of weights in changed[0] fell below this share of kept[row]."""
    width = changed.shape[1] // heads
    for g in range(heads):
        last = (g + 1) * width - 1
        if changed[0, last] < share * kept[row, last]:
            return True
    return False


_WIDEST = 60.0  # spread of scores beyond which exponentials leave float32


class GATWeights(NamedTuple):
    """K models side by side; G = K * heads; h values per head, and C classes in the second layer.

    Everything is float32, or float64 if the scores are spread too widely for it.
    """

    first: Floats  # [n, PARTS, G1 * (h + 1)], the first layer's messages: no mask changes them
    b1: Floats  # [G1 * h]
    W2: Floats  # [K * outputs, heads1 * h]: values of all heads, then source and target scores per head
    level2: Floats  # [G2]
    b2: Floats  # [K * C]
    slope: Floats  # [1], of the leaky ReLU in the second layer
    most: int  # the largest degree


class GATState(NamedTuple):
    """Valid in the rows of members."""

    sum1: Floats  # [n, G1 * (h + 1)]
    second: Floats  # [n, PARTS, G2 * (C + 1)], the second layer's messages
    sum2: Floats  # [n, G2 * (C + 1)]
    loss: FloatArray  # [n, K]
    updates: I32  # [n, 2], how often the sums of either layer were updated since they were computed from all messages


class GATScratch(NamedTuple):
    """One thread's space."""

    reach: Reach
    sum1: Floats  # [1, G1 * (h + 1)]
    hidden: Floats  # [1, G1 * h]
    output: Floats  # [1, K * outputs]
    values: Floats  # [1, G2 * C]
    scores: Floats  # [1, 2 * G2]
    after: Floats  # [most + 1, PARTS, G2 * (C + 1)], by slot: new messages; then the toggled node's own
    sum2: Floats  # [1, G2 * (C + 1)]
    row: rows.LossRow
    sums: rows.LossSum
    signal: FloatArray  # [K]


def supports(layers: Sequence[Any]) -> bool:
    """Whether these are plain GATConv layers, heads side by side in the first and averaged in the second."""
    return all(
        type(one) is GATConv
        and one.add_self_loops
        and one.edge_dim is None
        and one.lin is not None
        and not one.residual
        and (one.concat == concat or one.heads == 1)
        for one, concat in zip(layers, (True, False), strict=True)
    )


def _scores(layer: GATConv, values: FloatArray) -> FloatArray:
    """Source and target scores [., 2, heads] of one model's values [., heads * width]."""
    split = values.reshape(len(values), layer.heads, layer.out_channels)
    sides = [array(side).astype(np.float64) for side in (layer.att_src, layer.att_dst)]
    return np.stack([(split * side).sum(-1) for side in sides], axis=1)


@kernel
def _write_all(values: Floats, scores: Floats, level: Floats, slope: float, messages: Floats) -> None:
    for u in range(len(values)):
        write_message(values, scores, u, level, slope, messages, u)


def _first_messages(layers: Sequence[GATConv], values: F32) -> Floats:
    """Messages [n, PARTS, G1 * (h + 1)] from values [n, G1 * h]; float64 if the scores are spread too widely."""
    n, heads = len(values), layers[0].heads
    parts = np.split(values, len(layers), axis=1)
    scores = [_scores(layer, part.astype(np.float64)) for layer, part in zip(layers, parts, strict=True)]
    both = np.stack(scores, axis=2).reshape(n, 2 * len(layers) * heads)
    sources = both[:, : both.shape[1] // 2]
    level = sources.max(axis=0)
    narrow = (level - sources.min(axis=0)).max(initial=0) < _WIDEST
    messages = np.empty((n, PARTS, values.shape[1] + len(level)), np.float32 if narrow else np.float64)
    _write_all(values, both, level, float(layers[0].negative_slope), messages)
    return messages


def _second_matrix(layer: GATConv) -> F32:
    """Rows of W2 of one model: values of all heads, then the scores as further outputs."""
    weight = array(layer.lin.weight).astype(np.float64)  # [heads * C, width]
    scores = _scores(layer, np.ascontiguousarray(weight.T))  # [width, 2, heads]
    return np.concatenate([weight, scores[:, 0].T, scores[:, 1].T]).astype(np.float32)


def prepare(models: Sequence[Sequence[Any]], x: F32, graph: CSR, *, threads: int) -> GATWeights:
    """Stack the two layers of every model; x [n, features]."""
    first, second = zip(*models, strict=True)
    values = times(x, feature_rows(x), batch_columns([c.lin.weight for c in first]), threads=threads)
    messages = _first_messages(first, values)
    heads, kind = len(models) * second[0].heads, messages.dtype
    weights = GATWeights(
        first=messages,
        b1=batch_biases([c.bias for c in first], first[0].heads * first[0].out_channels).astype(kind),
        W2=np.concatenate([_second_matrix(c) for c in second]).astype(kind),
        level2=np.zeros(heads, kind),
        b2=batch_biases([c.bias for c in second], second[0].out_channels).astype(kind),
        slope=np.full(1, second[0].negative_slope, kind),
        most=int(np.diff(graph.start).max(initial=0)),
    )
    # The scores of the second layer hardly depend on the mask; those of the whole graph show their range.
    whole, state = arrange(graph, np.ones(len(x), np.bool_)), new_state(weights, len(models))
    _fill_all(weights, 0, whole, state, new_scratch(weights, len(models)))
    sources = state.second[:, 2, :: second[0].out_channels + 1]
    level = sources.max(axis=0)
    if kind == np.float32 and (level - sources.min(axis=0)).max() >= _WIDEST:
        doubled = {name: part.astype(np.float64) for name, part in weights._asdict().items() if name != "most"}
        weights = weights._replace(**doubled)
    return weights._replace(level2=level.astype(weights.level2.dtype))


def new_state(weights: GATWeights, models: int) -> GATState:
    """Rows to be filled."""
    n, _, width1 = weights.first.shape
    width2 = len(weights.level2) * (len(weights.b2) // models + 1)
    kind = weights.first.dtype
    return GATState(
        sum1=np.zeros((n, width1), kind),
        second=np.zeros((n, PARTS, width2), kind),
        sum2=np.zeros((n, width2), kind),
        loss=np.zeros((n, models)),
        updates=np.zeros((n, 2), np.int32),
    )


def new_scratch(weights: GATWeights, models: int) -> GATScratch:
    """Space for one thread."""
    n, _, width1 = weights.first.shape
    heads, classes = len(weights.level2), len(weights.b2) // models
    kind = weights.first.dtype
    return GATScratch(
        reach=new_reach(n),
        sum1=np.zeros((1, width1), kind),
        hidden=np.zeros((1, len(weights.b1)), kind),
        output=np.zeros((1, len(weights.W2)), kind),
        values=np.zeros((1, heads * classes), kind),
        scores=np.zeros((1, 2 * heads), kind),
        after=np.zeros((weights.most + 1, PARTS, heads * (classes + 1)), kind),
        sum2=np.zeros((1, heads * (classes + 1)), kind),
        row=rows.new_loss_row(models, classes),
        sums=rows.new_loss_sum(models),
        signal=np.zeros(models),
    )


@inner_kernel
def second_message(
    weights: GATWeights, sums: Floats, row: int, scratch: GATScratch, messages: Floats, place: int
) -> None:
    """From the first layer's sums[row] to the second layer's messages[place]."""
    hidden, output, b1 = scratch.hidden, scratch.output, weights.b1
    models = len(scratch.signal)
    heads = sums.shape[1] - hidden.shape[1]
    width = sums.shape[1] // heads
    zero = b1[0] - b1[0]
    for g in range(heads):
        scale = 1 / sums[row, (g + 1) * width - 1]
        for j in range(g * (width - 1), (g + 1) * (width - 1)):
            hidden[0, j] = max(sums[row, j + g] * scale + b1[j], zero)
    project(hidden, 0, weights.W2, models, output, 0)
    heads = len(weights.level2) // models
    values = scratch.values.shape[1] // models
    outputs = values + 2 * heads
    for m in range(models):
        for j in range(values):
            scratch.values[0, m * values + j] = output[0, m * outputs + j]
        for g in range(heads):
            scratch.scores[0, m * heads + g] = output[0, m * outputs + values + g]
            scratch.scores[0, (models + m) * heads + g] = output[0, m * outputs + values + heads + g]
    write_message(scratch.values, scratch.scores, 0, weights.level2, weights.slope[0], messages, place)


@inner_kernel
def sum_messages(messages: Floats, u: int, without: int, graph: CSR, sums: Floats) -> None:
    """The sums of u over itself and its member neighbours, without one of them, into sums[0]."""
    for j in range(sums.shape[1]):
        sums[0, j] = 0
    add_message(sums, messages, u, messages, u)
    for e in range(graph.start[u], graph.start[u] + graph.degree[u]):
        w = graph.columns[e]
        if w != without:
            add_message(sums, messages, u, messages, w)


@inner_kernel
def write_logits(weights: GATWeights, scratch: GATScratch) -> None:
    """The average over heads of ``scratch.sum2``, into ``row.logits``."""
    sums, logits, b2, scale = scratch.sum2, scratch.row.logits, weights.b2, scratch.scores
    models = len(scratch.signal)
    heads = len(weights.level2) // models
    classes = len(logits) // models
    width = classes + 1
    for g in range(len(weights.level2)):
        scale[0, g] = 1 / (heads * sums[0, g * width + classes])
    for m in range(models):
        for c in range(classes):
            value = b2[m * classes + c]
            for g in range(m * heads, (m + 1) * heads):
                value += sums[0, g * width + c] * scale[0, g]
            logits[m * classes + c] = value


@inner_kernel
def fill_row(weights: GATWeights, stage: int, u: int, graph: CSR, state: GATState, scratch: GATScratch) -> None:
    """Compute the kept row of member u again: stage 0 up to its message, stage 1 the loss."""
    state.updates[u, stage] = 0
    if stage == 0:
        sum_messages(weights.first, u, -1, graph, scratch.sum1)
        for j in range(scratch.sum1.shape[1]):
            state.sum1[u, j] = scratch.sum1[0, j]
        second_message(weights, state.sum1, u, scratch, state.second, u)
        return
    sums = scratch.sum2
    sum_messages(state.second, u, -1, graph, sums)
    for j in range(sums.shape[1]):
        state.sum2[u, j] = sums[0, j]
    write_logits(weights, scratch)
    rows.row_losses(graph.label[u], scratch.row, u, state.loss)


@kernel
def _fill_all(weights: GATWeights, stage: int, graph: CSR, state: GATState, scratch: GATScratch) -> None:
    for u in range(len(graph.member)):
        fill_row(weights, stage, u, graph, state, scratch)


@inner_kernel
def _new_messages(v: int, graph: CSR, weights: GATWeights, state: GATState, scratch: GATScratch) -> None:
    """Fill ``after`` for the neighbours of v, and after them for v itself if it is not a member yet."""
    first, sums, reach = weights.first, scratch.sum1, scratch.reach
    near = reach.size[0]
    heads = sums.shape[1] - scratch.hidden.shape[1]
    for i in range(near):
        u = reach.nodes[i]
        for j in range(sums.shape[1]):
            sums[0, j] = state.sum1[u, j]
        if not graph.member[v]:
            add_message(sums, first, u, first, v)
        else:
            take_message(sums, first, u, first, v)
            if cancels(state.sum1, u, sums, heads, QUARTER):
                sum_messages(first, u, v, graph, sums)
        second_message(weights, sums, 0, scratch, scratch.after, i)
    if not graph.member[v]:
        sum_messages(first, v, -1, graph, sums)
        second_message(weights, sums, 0, scratch, scratch.after, near)


@inner_kernel
def _second_sums(v: int, i: int, graph: CSR, state: GATState, scratch: GATScratch) -> None:
    """The second layer's sums of the i-th node around v after the toggle, computed again, into ``scratch.sum2``."""
    reach, after, second, sums = scratch.reach, scratch.after, state.second, scratch.sum2
    x, near = reach.nodes[i], reach.size[0]
    to, t = (after, i) if i < near else (second, x)
    for j in range(sums.shape[1]):
        sums[0, j] = 0
    add_message(sums, to, t, to, t)
    for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
        w = graph.columns[e]
        k = reach.slot[w]
        if 0 <= k < near:
            add_message(sums, to, t, after, k)
        elif w != v:
            add_message(sums, to, t, second, w)
    if i < near and not graph.member[v]:
        add_message(sums, to, t, after, near)


@inner_kernel
def toggle(weights: GATWeights, v: int, affected: bool, graph: CSR, state: GATState, scratch: GATScratch) -> None:
    """Write S of v for all models into ``scratch.signal``; ``scratch.reach`` stays filled for a commit or a release."""
    reach, sums, sum2, after = scratch.reach, scratch.sums, scratch.sum2, scratch.after
    find_two_hops(v, graph, reach)
    _new_messages(v, graph, weights, state, scratch)
    near, inside = reach.size[0], graph.member[v]
    if not inside:
        for j in range(sum2.shape[1]):
            sum2[0, j] = 0
        for i in range(near + 1):
            add_message(sum2, after, near, after, i)
        write_logits(weights, scratch)
        rows.row_losses(graph.label[v], scratch.row, v, state.loss)
    rows.clear(sums)
    for i in range(reach.size[1]):
        x = reach.nodes[i]
        afresh = i < near
        if not afresh:
            for j in range(sum2.shape[1]):
                sum2[0, j] = state.sum2[x, j]
            for e in range(graph.start[x], graph.start[x] + graph.degree[x]):
                w = graph.columns[e]
                k = reach.slot[w]
                if 0 <= k < near:
                    replace_message(sum2, state.second, x, state.second, w, after, k)
            afresh = cancels(state.sum2, x, sum2, len(weights.level2), QUARTER)
        if afresh:
            _second_sums(v, i, graph, state, scratch)
        write_logits(weights, scratch)
        rows.add_change(graph.label[x], scratch.row, x, state.loss, sums)
    rows.write_signal(v, inside, state.loss, sums, scratch.signal)


_MOST = 16  # updates of a row before all of its messages are added up again
_LEFT = 11 / 12  # the least share of a sum of weights that an update may leave: after 16 of them a quarter is left


@inner_kernel
def refresh(weights: GATWeights, v: int, graph: CSR, state: GATState, scratch: GATScratch) -> None:
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
def _message_row(v: int, i: int, weights: GATWeights, graph: CSR, state: GATState, scratch: GATScratch) -> None:
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
        sum_messages(first, u, -1, graph, sums)
    for j in range(sums.shape[1]):
        state.sum1[u, j] = sums[0, j]
    second_message(weights, state.sum1, u, scratch, second, u)


@inner_kernel
def _loss_row(i: int, weights: GATWeights, graph: CSR, state: GATState, scratch: GATScratch) -> None:
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
    rows.row_losses(graph.label[x], scratch.row, x, state.loss)
