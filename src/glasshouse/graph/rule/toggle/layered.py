"""The layer-by-layer engine: one kept forward pass per mask, then only the rows that a toggle changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.question import Hops, Question, check_width
from glasshouse.graph.rule.toggle.balls import Rings, draw_rings, target_ball
from glasshouse.graph.rule.toggle.batching import LayerStep, batch_layers, can_batch
from glasshouse.graph.rule.toggle.front import Front, growth_costs
from glasshouse.graph.rule.toggle.layers.base import Kept
from glasshouse.graph.rule.toggle.layers.sparse_maximum import for_features
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph, coalesce, mask_graph
from glasshouse.graph.rule.toggle.plan import WorkPlan, make_plan, target_costs
from glasshouse.graph.rule.toggle.registry import register_engine
from glasshouse.graph.rule.toggle.row_losses import row_losses
from glasshouse.graph.rule.toggle.segments import segment_sum, slices_within, starts_of

__all__ = ["Layered"]


@register_engine("layered", rank=10)
class Layered:
    """Our GNNs of any depth and architecture, on the CPU or a GPU.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> Layered().supports([build_gnn("gat", features=2, hidden=8, classes=2, layers=3)], None)
        True
    """

    def supports(self, models: Sequence[Model], question: Question) -> bool:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        return all(can_batch(model) for model in models)

    def signals(self, models: Sequence[Model], question: Question, *, memory: int) -> Tensor:
        """See :class:`~glasshouse.graph.rule.toggle.registry.Engine`."""
        first = _suited(batch_layers(models[:1]), question)
        dtype = _dtype(models[0])
        edges = coalesce(question.edge_index, question.size, dtype)
        plan = make_plan(first, question, models=len(models), memory=memory)
        parts = []
        for models_at in range(0, len(models), plan.models):
            stages = _suited(batch_layers(models[models_at : models_at + plan.models]), question)
            rows = []
            for masks_at in range(0, len(question.masks), plan.masks):
                graph = mask_graph(edges, question.masks[masks_at : masks_at + plan.masks])
                rows.append(_answer(stages, graph, question, dtype=dtype, plan=plan))
            parts.append(torch.cat(rows, dim=1))
        return torch.cat(parts)


def _suited(stages: Sequence[LayerStep], question: Question) -> list[LayerStep]:
    """The stages, with the first one in the form that suits the features."""
    first, *rest = stages
    return [replace(first, layer=for_features(first.layer, question.x, question.edge_index)), *rest]


def _dtype(model: Model) -> torch.dtype:
    """The type that a model computes in."""
    return next(cast("torch.nn.Module", model).parameters()).dtype


@dataclass(frozen=True, kw_only=True)
class _Step:
    """One stage under a group of masks: its state, and which balls it reads and writes."""

    stage: LayerStep
    kept: Kept
    inner: int
    outer: int


def reaches(stages: Sequence[LayerStep], hops: Hops) -> list[tuple[int, int]]:
    """For each stage, the ball whose inputs change and the ball whose outputs are wanted.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> stages = batch_layers([build_gnn("gcn", features=2, hidden=4, classes=2)])
        >>> reaches(stages, "model"), reaches(stages, "affected")
        ([(1, 2), (2, 2)], [(1, 2), (2, 3)])
    """
    steps, reach = [], 0
    radius = len(stages) if hops == "model" else None
    for stage in stages:
        inner = max(reach, 1) if stage.layer.divides_by_degree else reach  # a degree changes one hop away at once
        reach = inner + 1 if radius is None else min(inner + 1, radius)
        steps.append((inner, reach))
    return steps


def _answer(
    stages: Sequence[LayerStep], graph: MaskedGraph, question: Question, *, dtype: torch.dtype, plan: WorkPlan
) -> Tensor:
    """S under one group of masks, [models, masks, nodes]."""
    masks, count = len(graph.members) // graph.size, len(question.nodes)
    labels = question.labels.repeat(masks)
    steps: list[_Step] = []
    values = question.x.to(dtype).unsqueeze(1)
    spans = reaches(stages, question.hops)
    for stage, (inner, outer) in zip(stages, spans, strict=True):
        kept, values = stage.layer.keep(values, graph, limit=plan.temporary)
        values = values.relu_() if stage.relu else values
        steps.append(_Step(stage=stage, kept=kept, inner=inner, outer=outer))
    kept_loss = row_losses(check_width(values, question), _safe(labels, values))  # [N, models]
    targets = (torch.arange(masks, device=labels.device).unsqueeze(1) * graph.size + question.nodes).reshape(-1)
    ends = _Ends(labels=labels, kept_loss=kept_loss, classes=values.shape[-1])
    if all((step.inner, step.outer) == (place, place + 1) for place, step in enumerate(steps)):
        start = Front(targets=targets, removes=graph.members[targets], ball=target_ball(graph, targets), first=True)
        signal = _toggle_outward(steps, graph, start, None, ends, limit=plan.temporary)
    else:
        costs = target_costs(graph, targets, stages, spans, logits=values.shape[1] * values.shape[2])
        parts = [_toggle(steps, graph, targets[part], ends) for part in slices_within(costs, plan.temporary)]
        signal = torch.cat(parts)
    return signal.view(masks, count, -1).permute(2, 0, 1)


def _safe(labels: Tensor, logits: Tensor) -> Tensor:
    """Labels that index the logits; those of nodes that are never summed may be missing."""
    return labels.clamp(0, logits.shape[-1] - 1)


@dataclass(frozen=True, kw_only=True)
class _Ends:
    """What turns logits into signals: labels [N], kept losses [N, models] and the number of classes."""

    labels: Tensor
    kept_loss: Tensor
    classes: int

    def signals(self, logits: Tensor, rings: Rings, *, outer: int) -> Tensor:
        """Eq. (6) from the toggled logits [rows, models, classes] of the outermost ball, [targets, models]."""
        ball = rings.balls[outer]
        after = row_losses(logits, _safe(self.labels[ball.node], logits))
        removed = rings.removes.unsqueeze(1)
        own = torch.where(removed, self.kept_loss[rings.targets], after[ball.centre])  # loss_v(in)
        change = after - self.kept_loss[ball.node]
        change[ball.centre] = 0
        total = segment_sum(change, starts_of(ball.target, len(rings.targets)))
        return own + torch.where(removed, -total, total)


def _toggle(steps: Sequence[_Step], graph: MaskedGraph, targets: Tensor, ends: _Ends) -> Tensor:
    """S of a chunk of targets, [targets, models]."""
    last = steps[-1]
    rings = draw_rings(graph, targets, radius=last.outer, around=last.inner == last.outer)
    values: Tensor | None = None  # the features, which do not change
    for step in steps:
        changed = step.kept.toggle(values, rings, inner=step.inner, outer=step.outer).values
        values = changed.relu_() if step.stage.relu else changed
    return ends.signals(changed, rings, outer=last.outer)


def _toggle_outward(
    steps: Sequence[_Step], graph: MaskedGraph, front: Front, values: Tensor | None, ends: _Ends, *, limit: int
) -> Tensor:
    """S of the front's targets, [targets, models], ball by ball: rows that do not change are not followed further.

    Each ball is drawn, and the work split to fit into memory, only when the changed rows are known.

    Args:
        steps: the remaining layers.
        graph: the union of masks.
        front: targets, and the rows around them that have changed so far.
        values: new inputs of these rows [rows, models, width]; None for the features, which do not change.
        ends: what turns logits into signals.
        limit: bytes that temporary arrays may take.
    """
    step, *rest = steps
    logits = 0 if rest else ends.kept_loss.shape[1] * ends.classes
    costs = growth_costs(graph, front, step.stage, shared=values is None, logits=logits)
    signals = []
    for part in slices_within(costs, limit):
        some, rows = front.part(part, len(graph.members))
        rings = some.grown(graph)
        changed, alive = step.kept.toggle(None if values is None else values[rows], rings, inner=0, outer=1)
        if not rest:
            signals.append(ends.signals(changed, rings, outer=1))
            continue
        ball = rings.balls[1]
        if alive is not None and not any(later.stage.layer.counts_senders for later in rest):
            ball, changed = ball.only(alive), changed[alive]
        changed = changed.relu_() if step.stage.relu else changed
        onward = Front(targets=some.targets, removes=some.removes, ball=ball)
        signals.append(_toggle_outward(rest, graph, onward, changed, ends, limit=limit))
    return torch.cat(signals)
