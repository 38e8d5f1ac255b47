"""The layer-by-layer engine: one kept forward pass per mask, then only the rows that a toggle changes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from glasshouse.graph.models.asking import manners_of
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Question, check_width
from glasshouse.graph.rule.toggle.balls import target_ball
from glasshouse.graph.rule.toggle.cost import audit_values
from glasshouse.graph.rule.toggle.front import Front
from glasshouse.graph.rule.toggle.kept_program import KeptProgram, keep_program
from glasshouse.graph.rule.toggle.lowering import lower
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph, coalesced, mask_graph
from glasshouse.graph.rule.toggle.outward import toggle_outward
from glasshouse.graph.rule.toggle.plan import WorkPlan, make_plan, target_costs
from glasshouse.graph.rule.toggle.registry import register_engine
from glasshouse.graph.rule.toggle.segments import slices_within
from glasshouse.graph.rule.toggle.signals import Ends
from glasshouse.graph.rule.toggle.stages import Placed, chain_of, place
from glasshouse.graph.rule.toggle.turns import are_safe, in_turns
from glasshouse.graph.rule.toggles import Toggles

__all__ = ["Layered"]

_RATE = 4e-9  # seconds for one value on two cores


@register_engine("layered", rank=10)
class Layered:
    """Every model with a program (`glasshouse.graph.programs`), of any depth, on the CPU or a GPU.

    Example:
        >>> Layered().supports([lambda x, edge_index: x], None)
        False
    """

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        return all(manners_of(model).program is not None for model in models)

    def seconds(self, models: Sequence[Model], question: Question) -> float:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        return _RATE * audit_values(models[0], question)

    def toggles(self, models: Sequence[Model], question: Question, *, memory: int) -> Toggles:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        radius = manners_of(models[0]).hops if question.hops == "model" else None
        first = place(lower(models[:1], question), radius=radius)
        dtype = first[-1].operation.result.sample.dtype
        edges = coalesced(question.edge_index, question.size, dtype)
        costs, threads = [one.cost() for one in first], are_safe(first)
        plan = make_plan(costs, question, models=len(models), memory=memory, threads=threads)
        parts = []
        for models_at in range(0, len(models), plan.models):
            some = models[models_at : models_at + plan.models]
            placed = first if len(models) == 1 else place(lower(some, question), radius=radius)
            rows = []
            for masks_at in range(0, len(question.masks), plan.masks):
                graph = mask_graph(edges, question.masks[masks_at : masks_at + plan.masks])
                rows.append(_answer(placed, graph, question, models=len(some), plan=plan))
            parts.append(torch.cat(rows, dim=2))
        return Toggles(*torch.cat(parts, dim=1))


def _answer(placed: Sequence[Placed], graph: MaskedGraph, question: Question, *, models: int, plan: WorkPlan) -> Tensor:
    """S and own losses under one group of masks, [2, models, masks, nodes]."""
    masks, count = len(graph.members) // graph.size, len(question.nodes)
    dtype = placed[-1].operation.result.sample.dtype
    x = question.x.to(dtype) if question.x.is_floating_point() else question.x  # whole numbers may be codes
    program, logits = keep_program(placed, x, graph, limit=plan.temporary)
    logits = check_width(logits, question).expand(-1, models, -1)
    ends = Ends.of(question.labels.repeat(masks), logits)
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
    program: KeptProgram, graph: MaskedGraph, targets: Tensor, ends: Ends, *, models: int, limit: int
) -> Tensor:
    """S and own losses of all targets, [targets, 2, models], in chunks that fit into memory."""
    costs = target_costs(graph, targets, program.placed, logits=models * ends.classes)
    return in_turns(
        lambda part: program.signals(targets[part], ends),
        list(slices_within(costs, limit)),
        device=targets.device,
        threads=are_safe(program.placed),
    )
