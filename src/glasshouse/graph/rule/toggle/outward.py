"""Toggles of a chain of layers, ball by ball: rows that turn out not to change are not followed further."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from glasshouse.graph.rule.toggle.front import Front, growth_costs
from glasshouse.graph.rule.toggle.layers.base import Kept
from glasshouse.graph.rule.toggle.masked_graph import MaskedGraph
from glasshouse.graph.rule.toggle.segments import slices_within
from glasshouse.graph.rule.toggle.signals import Ends
from glasshouse.graph.rule.toggle.stages import LayerStep
from glasshouse.graph.rule.toggle.turns import in_turns

__all__ = ["toggle_outward"]


def toggle_outward(
    steps: Sequence[tuple[LayerStep, Kept]],
    graph: MaskedGraph,
    front: Front,
    ends: Ends,
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
