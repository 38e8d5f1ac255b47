"""The layer-by-layer engine: one kept forward pass per mask, then only the rows that a toggle changes.

Work is split by models, masks and targets to stay within a number of bytes; parts of the targets run on all cores. A
chain of layers is followed ball by ball: rows that turn out not to change are not followed further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.compute import gpu_share
from glasshouse.graph.programs.rows import is_direct
from glasshouse.graph.rule.engines import Stack, audit_values, register_engine
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.balls import Ball, Rings, grow, target_ball
from glasshouse.graph.rule.incremental.graph import MaskedGraph, coalesced, mask_graph
from glasshouse.graph.rule.incremental.layer import Cost, Kept, Layer
from glasshouse.graph.rule.incremental.program import (
    ChangedBalls,
    ForwardState,
    LayerStep,
    LossesToSignal,
    MessageOperation,
    Operation,
    chain_of,
    changed_balls,
    forward_state,
    lower,
)
from glasshouse.graph.rule.incremental.segments import bag_sum, segment_sum, slices_within, starts_of
from glasshouse.graph.rule.question import Question, Toggles, check_width
from glasshouse.reading import current_limit
from glasshouse.training.batching import spread


def in_turns(work: Callable[[slice], Tensor], parts: Sequence[slice], *, device: torch.device, threads: bool) -> Tensor:
    """The results of all parts, one after another.

    The parts do not depend on the number of cores, so that neither do the last bits. Torch's own threads wait for each
    other at every operation; parts wait only once, at the end.

    Args:
        work: makes the rows of one part.
        parts: in the order of the result.
        device: on a GPU parts come one at a time.
        threads: whether parts may be worked on at the same time.

    Example:
        >>> parts = [slice(0, 2), slice(2, 3)]
        >>> in_turns(lambda part: torch.arange(9)[part], parts, device=torch.device("cpu"), threads=True)
        tensor([0, 1, 2])
    """
    if not threads or device.type != "cpu" or len(parts) == 1 or torch.get_num_threads() == 1:
        return torch.cat([work(part) for part in parts])

    @torch.no_grad()  # each thread has its own switch
    def some(group: list[int]) -> list[Tensor]:
        return [work(parts[number]) for number in group]

    return torch.cat(spread(some, [[number] for number in range(len(parts))], device=device))


def are_safe(placed: Sequence[ChangedBalls]) -> bool:
    """Whether threads may share the operations: none calls a user's own module, which may keep a state.

    A layer of unknown type is called, but each thread has its own copy.
    """
    return all(
        not isinstance(one.operation.layer, Unknown) or one.operation.layer.threads
        if isinstance(one.operation, MessageOperation)
        else is_direct(one.operation.function)
        for one in placed
    )


_KEPT_SHARE = 0.4  # of the memory for kept state; the rest is for the rows being toggled
_MOST_TEMPORARY = 2**34  # arrays stay below 2^31 entries, beyond which some operations of torch fail
_MOST_ON_CPU = 2**27  # rows that were just made are then still near a core; also, each core works on so many bytes
_EDGE_BYTES = 64  # index arrays for each edge and mask
PATH_BYTES = 120  # index arrays for each path while rings are drawn: keys, order, rows, weights
ROW_BYTES = 80  # likewise for each row
_LOSS_BYTES = 60  # for each logit of a changed row while it becomes a loss, in float64
_FUSED_LOSS_BYTES = 2  # likewise where one pass does it
_SEARCH_BYTES = 24  # for each walk out of a ball where only those that end in it again are listed


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """How many models and masks are worked on at once, and how many bytes temporary arrays may take.

    Example:
        >>> WorkPlan(models=9, masks=8, temporary=2**29).masks
        8
    """

    models: int
    masks: int
    temporary: int


def default_memory(device: torch.device) -> int:
    """Bytes to use by default: the limit on memory on the CPU, 1 GiB; on a GPU 32 GiB or two fifths of what is free.

    Workers that use the same GPU share the 32 GiB: the first ones would otherwise leave nothing to the others.

    Example:
        >>> default_memory(torch.device("cpu")) == 2**30
        True
    """
    if device.type != "cuda":
        return current_limit()
    free, _ = torch.cuda.mem_get_info(device)
    return min(int(2**35 * gpu_share()), int(0.4 * free))


def fits(costs: Sequence[Cost], question: Question, *, memory: int) -> bool:
    """Whether the kept state under one mask is within its share of ``memory`` bytes."""
    return _kept_bytes(costs, question) + _graph_bytes(question) <= int(memory * _KEPT_SHARE)


def _kept_bytes(costs: Sequence[Cost], question: Question) -> int:
    return question.size * sum(cost.node for cost in costs)


def _graph_bytes(question: Question) -> int:
    return int(question.edge_index.shape[1]) * _EDGE_BYTES


def make_plan(costs: Sequence[Cost], question: Question, *, models: int, memory: int, threads: bool = True) -> WorkPlan:
    """As many models and masks at once as fit; at least one of each.

    Args:
        costs: of the operations of one model.
        question: sizes of graph and masks.
        models: how many there are.
        memory: bytes.
        threads: whether cores may work on parts at the same time; if not, a part may be larger.
    """
    kept = int(memory * _KEPT_SHARE)
    for_model, for_graph = _kept_bytes(costs, question), _graph_bytes(question)
    at_once = min(models, max(1, (kept - for_graph) // max(for_model, 1)))
    masks = max(1, kept // max(for_model * at_once + for_graph, 1))
    most = _MOST_TEMPORARY if question.x.is_cuda else _MOST_ON_CPU if threads else 4 * _MOST_ON_CPU
    return WorkPlan(models=at_once, masks=masks, temporary=min(memory - kept, most))


def loss_bytes(logits: int, *, fused: bool = False) -> int:
    """Bytes of a changed row while its logits become losses; ``fused`` if one kernel does it.

    Example:
        >>> loss_bytes(2) > loss_bytes(0)
        True
    """
    return logits * (_FUSED_LOSS_BYTES if fused else _LOSS_BYTES)


def target_costs(graph: MaskedGraph, targets: Tensor, placed: Sequence[ChangedBalls], *, logits: int) -> Tensor:
    """Upper estimate of the bytes that each target needs, [targets], from the number of walks that start there.

    Args:
        graph: the union of masks.
        targets: nodes in the union.
        placed: the operations of all models, and the balls that they read and write.
        logits: logits of one node, over all models.
    """
    receivers, fused = graph.receivers, triton.usable(graph.degree)
    most_rows, most_paths = graph.size, max(len(receivers.other), 1)
    working = [(one.inner, one.outer, one.cost()) for one in placed if one.outer is not None]
    rows = torch.ones_like(graph.degree, dtype=torch.float64).unsqueeze(1)
    balls = [rows]  # rows of ball 0, 1, ...: at most 1 + the sum over receivers
    for _ in range(max(outer for _, outer, _ in working) + 1):
        balls.append(bag_sum(balls[-1], receivers.other, receivers.start) + 1)
    wanted = [ball.squeeze(1)[targets] for ball in balls]
    total = wanted[working[-1][1]].clamp(max=most_rows) * loss_bytes(logits, fused=fused)
    for inner, outer, cost in working:
        row_count = wanted[outer].clamp(max=most_rows)
        total += row_count * cost.row
        if cost.path:  # a layer, which needs index arrays
            paths = wanted[inner + 1].clamp(max=most_paths)  # walks out of the inner ball
            around = fused and inner == outer
            total += row_count * ROW_BYTES + paths * (_SEARCH_BYTES if around else cost.path + PATH_BYTES)
    return total


@dataclass(frozen=True, kw_only=True)
class Front:
    """Targets and the changed rows around them.

    Args:
        targets: target nodes in the union of masks, [targets].
        removes: True where the target is a member, so that toggling removes it, bool [targets].
        ball: one row for each pair (target, node) whose value has changed, and for every target.
        first: whether the ball holds the targets alone, before any layer.

    Example:
        >>> from glasshouse.graph.rule.incremental.balls import target_ball
        >>> from glasshouse.graph.rule.incremental.graph import coalesce, mask_graph
        >>> line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> graph = mask_graph(coalesce(line, 3, torch.float32), torch.tensor([[True, True, True]]))
        >>> ends = torch.tensor([0, 2])
        >>> front = Front(targets=ends, removes=graph.members[ends], ball=target_ball(graph, ends), first=True)
        >>> front.grown(graph).balls[1].node.tolist()
        [0, 1, 1, 2]
        >>> front.part(slice(1, 2), 3)[0].ball.keys.tolist()
        [2]
    """

    targets: Tensor
    removes: Tensor
    ball: Ball
    first: bool = False

    def part(self, targets: slice, size: int) -> tuple[Front, slice]:
        """The front of consecutive targets, in a union of ``size`` nodes, and where its rows are in this front."""
        bounds = torch.tensor([targets.start, targets.stop], device=self.targets.device)
        first, last = torch.searchsorted(self.ball.target, bounds).tolist()
        rows = slice(first, last)
        part = Front(
            targets=self.targets[targets],
            removes=self.removes[targets],
            ball=self.ball.part(targets, rows, size),
            first=self.first,
        )
        return part, rows

    def grown(self, graph: MaskedGraph) -> Rings:
        """The front's ball as ball 0 and the ball around it as ball 1, with the paths between them."""
        ball, paths = grow(graph, self.ball, self.targets, self.removes, first=self.first)
        return Rings(targets=self.targets, removes=self.removes, balls=[self.ball, ball], outward=[paths], around=None)


def growth_costs(graph: MaskedGraph, front: Front, layer: Layer, *, shared: bool, logits: int) -> Tensor:
    """Bytes that each target's next ball takes at most, [targets].

    Args:
        graph: the union of masks.
        front: where it grows from.
        layer: that is toggled.
        shared: whether its inputs are the features, the same for all models.
        logits: logits of one node over all models if this is the last layer, else 0.
    """
    sent = graph.receivers.count[front.ball.node].double().unsqueeze(1)
    starts = starts_of(front.ball.target, len(front.targets))
    paths = segment_sum(sent, starts).squeeze(1)
    paths += torch.where(front.removes, 0, graph.sources.count[front.targets])  # an added target receives too
    rows = (paths + starts.diff()).clamp(max=graph.size)
    cost = layer.cost(shared=shared)
    return rows * (cost.row + ROW_BYTES + loss_bytes(logits, fused=triton.usable(sent))) + paths * (
        cost.path + PATH_BYTES
    )


def toggle_outward(
    steps: Sequence[tuple[LayerStep, Kept]],
    graph: MaskedGraph,
    front: Front,
    ends: LossesToSignal,
    *,
    limit: int,
    values: Tensor | None = None,
    threads: bool = False,
) -> Tensor:
    """S and own losses of the front's targets, [targets, 2, models].

    Each ball is drawn, and the work split to fit into memory, only when the changed rows are known.

    Args:
        steps: the remaining layers and their states.
        graph: the union of masks.
        front: targets, and the rows around them that have changed so far.
        ends: what turns logits into signals.
        limit: bytes that temporary arrays may take.
        values: new inputs of these rows [rows, models, width]; None if the inputs do not change.
        threads: whether parts of the targets may be worked on at the same time.
    """
    (step, kept), *rest = steps
    models = ends.kept_loss.shape[1]
    logits = 0 if rest else models * ends.classes
    costs = growth_costs(graph, front, step.layer, shared=values is None, logits=logits)

    def signals_of(part: slice) -> Tensor:
        some, rows = front.part(part, len(graph.members))
        rings = some.grown(graph)
        changed, alive = kept.toggle(None if values is None else values[rows], rings, inner=0, outer=1)
        if not rest:
            return ends.signals(step.after(changed).expand(-1, models, -1), rings, outer=1)
        ball = rings.balls[1]
        if alive is not None and not any(later.layer.counts_senders for later, _ in rest):
            ball, changed = ball.only(alive), changed[alive]
        onward = Front(targets=some.targets, removes=some.removes, ball=ball)
        return toggle_outward(rest, graph, onward, ends, limit=limit, values=step.after(changed))

    return in_turns(signals_of, list(slices_within(costs, limit)), device=front.targets.device, threads=threads)


def lowered(models: Stack, question: Question) -> list[Operation]:
    """`lower`, done once for all questions about a graph."""
    return models.once("lowered", lambda: lower(models, question))


_RATE = 4e-9  # seconds for one value on two cores


@register_engine("layered", rank=10)
class Layered:
    """Every model with a program (`glasshouse.graph.programs`), of any depth, on the CPU or a GPU.

    Example:
        >>> from glasshouse.graph.models.profile import ModelProfile, Profiled
        >>> Layered().supports(Stack([Profiled(lambda x, edge_index: x, ModelProfile())]), None)
        False
    """

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return all(model.profile.program is not None for model in models)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return _RATE * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        radius = models[0].profile.hops if question.hops == "model" else None
        placed = changed_balls(lowered(models, question), radius=radius)
        edges = coalesced(question.edge_index, question.size, placed[-1].operation.result.sample.dtype)
        costs, count, threads = [one.cost() for one in placed], 1, are_safe(placed)
        if not fits(costs, question, memory=memory):
            costs = [one.cost() for one in changed_balls(lowered(_part(models, 0, 1), question), radius=radius)]
            count = len(models)
        plan = make_plan(costs, question, models=count, memory=memory, threads=threads)
        at_once = len(models) if count == 1 else plan.models
        parts = []
        for models_at in range(0, len(models), at_once):
            some = _part(models, models_at, at_once)
            if len(some) < len(models):
                placed = changed_balls(lowered(some, question), radius=radius)
            rows = []
            for masks_at in range(0, len(question.masks), plan.masks):
                graph = mask_graph(edges, question.masks[masks_at : masks_at + plan.masks])
                rows.append(_answer(placed, graph, question, models=len(some), plan=plan))
            parts.append(torch.cat(rows, dim=2))
        return Toggles(*torch.cat(parts, dim=1))


def _part(models: Stack, first: int, count: int) -> Stack:
    return models.once((first, count), lambda: Stack(models[first : first + count])) if count < len(models) else models


def _answer(
    placed: Sequence[ChangedBalls], graph: MaskedGraph, question: Question, *, models: int, plan: WorkPlan
) -> Tensor:
    """S and own losses under one group of masks, [2, models, masks, nodes]."""
    masks, count = len(graph.members) // graph.size, len(question.nodes)
    dtype = placed[-1].operation.result.sample.dtype
    x = question.x.to(dtype) if question.x.is_floating_point() else question.x  # whole numbers may be codes
    program, logits = forward_state(placed, x, graph, limit=plan.temporary)
    logits = check_width(logits, question).expand(-1, models, -1)
    ends = LossesToSignal.of(question.labels.repeat(masks), logits)
    targets = (torch.arange(masks, device=logits.device).unsqueeze(1) * graph.size + question.nodes).reshape(-1)
    chain = chain_of(placed)
    if placed[-1].outer is None:  # no toggle changes an answer
        found = ends.kept_loss[targets].unsqueeze(1).expand(-1, 2, -1)
    elif chain is not None:
        start = Front(targets=targets, removes=graph.members[targets], ball=target_ball(graph, targets), first=True)
        steps = list(zip(chain, program.layers, strict=True))
        found = toggle_outward(steps, graph, start, ends, limit=plan.temporary, threads=are_safe(placed))
    else:
        found = _in_balls(program, graph, targets, ends, models=models, limit=plan.temporary)
    return found.reshape(masks, count, 2, -1).permute(2, 3, 0, 1)


def _in_balls(
    program: ForwardState, graph: MaskedGraph, targets: Tensor, ends: LossesToSignal, *, models: int, limit: int
) -> Tensor:
    """S and own losses of all targets, [targets, 2, models], in chunks that fit into memory."""
    costs = target_costs(graph, targets, program.placed, logits=models * ends.classes)
    return in_turns(
        lambda part: program.signals(targets[part], ends),
        list(slices_within(costs, limit)),
        device=targets.device,
        threads=are_safe(program.placed),
    )
