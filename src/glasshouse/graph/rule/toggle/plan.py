"""How the work is split so that it stays within a number of bytes: models, masks, then targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glasshouse.compute import gpu_share
from glasshouse.graph.rule.question import Question
from glasshouse.graph.rule.toggle.fused import jit
from glasshouse.graph.rule.toggle.layers.base import Cost
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import bag_sum
from glasshouse.graph.rule.toggle.stages import Placed
from glasshouse.reading import current_limit

__all__ = ["PATH_BYTES", "ROW_BYTES", "WorkPlan", "default_memory", "loss_bytes", "make_plan", "target_costs"]

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
    for_model = question.size * sum(cost.node for cost in costs)
    for_graph = question.edge_index.shape[1] * _EDGE_BYTES
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


def target_costs(graph: MaskedGraph, targets: Tensor, placed: Sequence[Placed], *, logits: int) -> Tensor:
    """Upper estimate of the bytes that each target needs, [targets], from the number of walks that start there.

    Args:
        graph: the union of masks.
        targets: nodes in the union.
        placed: the operations of all models, and the balls that they read and write.
        logits: logits of one node, over all models.
    """
    receivers, fused = graph.receivers, jit.usable(graph.degree)
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
