"""The layer-by-layer engine: one kept forward pass per mask, then only the rows that a toggle changes.

Work is split by models, masks and targets to stay within a number of bytes; parts of the targets run on all cores. A
chain of layers is followed ball by ball: rows that turn out not to change are not followed further.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from glasshouse.compute import gpu_share
from glasshouse.graph.programs.rows import is_direct
from glasshouse.graph.rule.engines import Stack, audit_values, register_engine
from glasshouse.graph.rule.incremental import triton
from glasshouse.graph.rule.incremental.any_layer import Unknown
from glasshouse.graph.rule.incremental.graph import MaskedGraph, coalesced, mask_graph
from glasshouse.graph.rule.incremental.layer import Cost
from glasshouse.graph.rule.incremental.operations import MessageOperation, Operation
from glasshouse.graph.rule.incremental.program import (
    Asking,
    ChangedBalls,
    ForwardState,
    LossesToSignal,
    changed_balls,
    first_that_drops,
    forward_state,
    lower,
)
from glasshouse.graph.rule.incremental.segments import segment_sum, slices_within
from glasshouse.graph.rule.question import Question, Toggles, check_width
from glasshouse.io.limits import current_limit
from glasshouse.training.batches import spread


def in_turns(work: Callable[[slice], Tensor], parts: Sequence[slice], *, device: torch.device, threads: bool) -> Tensor:
    """The results of all parts, one after another.

    The parts do not depend on the number of cores, so that neither do the last bits. Torch's own threads wait for each
    other at every operation; parts wait only once, at the end. On a GPU, and without ``threads``, they come one at a
    time.
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
_PATH_BYTES = 120  # index arrays for each path while rings are drawn: keys, order, rows, weights
_ROW_BYTES = 80  # likewise for each row
_LOSS_BYTES = 60  # for each logit of a changed row while it becomes a loss, in float64
_FUSED_LOSS_BYTES = 2  # likewise where one pass does it
_SEARCH_BYTES = 24  # for each walk out of a ball where only those that end in it again are listed


class WorkPlan(NamedTuple):
    """How many models and masks are worked on at once, and how many bytes temporary arrays may take."""

    models: int
    masks: int
    temporary: int


def default_memory(device: torch.device) -> int:
    """Bytes to use by default: the limit on memory on the CPU, 1 GiB; on a GPU 32 GiB or two fifths of what is free.

    Workers that use the same GPU share the 32 GiB: the first ones would otherwise leave nothing to the others.
    """
    if device.type != "cuda":
        return current_limit()
    free, _ = torch.cuda.mem_get_info(device)
    return min(int(2**35 * gpu_share()), int(0.4 * free))


def _bytes_under_mask(costs: Sequence[Cost], question: Question) -> tuple[int, int]:
    """Bytes of the kept state under one mask, and of the mask's graph."""
    return question.size * sum(cost.node for cost in costs), int(question.edge_index.shape[1]) * _EDGE_BYTES


def make_plan(
    costs: Sequence[Cost], question: Question, *, models: int, memory: int, threads: bool = True, drops: bool = False
) -> WorkPlan:
    """As many of so many models, and of masks, at once as fit into ``memory`` bytes; at least one of each.

    ``costs`` are those of one model. A part may be larger where cores may not work on several at the same time
    (``threads``), and where rows that do not change are left out (``drops``): it is then smaller than its estimate.
    """
    kept = int(memory * _KEPT_SHARE)
    for_model, for_graph = _bytes_under_mask(costs, question)
    at_once = min(models, max(1, (kept - for_graph) // max(for_model, 1)))
    masks = max(1, kept // max(for_model * at_once + for_graph, 1))
    on_cpu = _MOST_ON_CPU * (1 if threads else 4) * (2 if drops else 1)
    most = _MOST_TEMPORARY if question.x.is_cuda else on_cpu
    return WorkPlan(models=at_once, masks=masks, temporary=min(memory - kept, most))


def target_costs(graph: MaskedGraph, targets: Tensor, placed: Sequence[ChangedBalls], *, logits: int) -> Tensor:
    """Upper estimate of the bytes that each target needs, [targets], from the number of walks that start there.

    ``logits`` counts those of one node, over all models.
    """
    receivers, fused = graph.receivers, triton.usable(graph.degree)
    most_rows, most_paths = graph.size, max(len(receivers.other), 1)
    working = [(one.inner, one.outer, one.cost()) for one in placed if one.outer is not None]
    rows = torch.ones_like(graph.degree, dtype=torch.float64).unsqueeze(1)
    balls = [rows]  # rows of ball 0, 1, ...: at most 1 + the sum over receivers
    for _ in range(max(outer for _, outer, _ in working) + 1):
        balls.append(segment_sum(balls[-1][receivers.other], receivers.start) + 1)
    deciding = _deciding(placed) if graph.degree.is_cuda else math.inf
    if deciding < math.inf:
        # Around a hub few rows change, and parts by the number of walks would be too small to keep a GPU busy. If a
        # row has more senders than decide it, a sender is one of these with the share of them that do, on average.
        share = (deciding / graph.sources.count.clamp(min=1)).clamp(max=1).unsqueeze(1)
        balls[2:] = [segment_sum((ball * share)[receivers.other], receivers.start) + 1 for ball in balls[1:-1]]
    wanted = [ball.squeeze(1)[targets] for ball in balls]
    total = wanted[working[-1][1]].clamp(max=most_rows) * (logits * (_FUSED_LOSS_BYTES if fused else _LOSS_BYTES))
    for inner, outer, cost in working:
        row_count = wanted[outer].clamp(max=most_rows)
        total += row_count * cost.row
        if cost.path:  # a layer, which needs index arrays
            paths = wanted[inner + 1].clamp(max=most_paths)  # walks out of the inner ball
            around = fused and inner == outer
            total += row_count * _ROW_BYTES + paths * (_SEARCH_BYTES if around else cost.path + _PATH_BYTES)
    return total


def _deciding(placed: Sequence[ChangedBalls]) -> float:
    """How many senders decide a row of the first layer, where rows that do not change are dropped after it."""
    first = next(one.operation for one in placed if isinstance(one.operation, MessageOperation))
    return first.layer.deciding(shared=first.source.shared) if first_that_drops(placed) == 0 else math.inf


def lowered(models: Stack, question: Question, asking: Asking = "formula") -> list[Operation]:
    """`lower`, done once for all questions about a graph."""
    return models.once(("lowered", asking), lambda: lower(models, question, asking=asking))


_RATE = 4e-9  # seconds for one value on two cores


@register_engine("layered", rank=10)
class Layered:
    """Every model with a program (`glasshouse.graph.programs`), of any depth, on the CPU or a GPU."""

    asking: ClassVar[Asking] = "formula"

    def supports(self, models: Stack, question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return all(model.profile.program is not None for model in models)

    def seconds(self, models: Stack, question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        return _RATE * audit_values(models[0], question)

    def toggles(self, models: Stack, question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.engines.Engine`."""
        radius = max(1, models[0].profile.hops) if question.hops == "model" else None

        def of(some: Stack) -> list[ChangedBalls]:
            return changed_balls(lowered(some, question, self.asking), radius=radius)

        placed = of(models)
        edges = coalesced(question.edge_index, question.size, placed[-1].operation.result.sample.dtype)
        costs, count = [one.cost() for one in placed], 1
        threads, drops = are_safe(placed), first_that_drops(placed) is not None
        if sum(_bytes_under_mask(costs, question)) > int(memory * _KEPT_SHARE):
            costs = [one.cost() for one in of(_part(models, 0, 1))]
            count = len(models)
        plan = make_plan(costs, question, models=count, memory=memory, threads=threads, drops=drops)
        at_once = len(models) if count == 1 else plan.models
        parts = []
        for models_at in range(0, len(models), at_once):
            some = _part(models, models_at, at_once)
            if len(some) < len(models):
                placed = of(some)
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
    program, logits = forward_state(placed, question.x, graph, limit=plan.temporary)
    logits = check_width(logits, question).expand(-1, models, -1)
    ends = LossesToSignal.of(question.labels.repeat(masks), logits)
    targets = (torch.arange(masks, device=logits.device).unsqueeze(1) * graph.size + question.nodes).reshape(-1)
    if placed[-1].outer is None:  # no toggle changes an answer
        found = ends.kept_loss[targets].unsqueeze(1).expand(-1, 2, -1)
    else:
        costs = target_costs(graph, targets, placed, logits=models * ends.classes)
        parts = list(slices_within(costs, plan.temporary))
        work = partial(_signals, program, targets, ends)
        found = in_turns(work, parts, device=targets.device, threads=are_safe(placed))
    return found.reshape(masks, count, 2, -1).permute(2, 3, 0, 1)


def _signals(program: ForwardState, targets: Tensor, ends: LossesToSignal, part: slice) -> Tensor:
    return program.signals(targets[part], ends)
