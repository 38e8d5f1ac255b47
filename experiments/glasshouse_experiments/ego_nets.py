"""The rule by a loop over ego-nets, the way the paper's program works: the baseline of `wall-clock`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SGConv
from torch_geometric.utils import k_hop_subgraph

from glasshouse.graph.models.networks import Model, model_device
from glasshouse.graph.models.profile import Profiled, evaluation_mode, profile_models
from glasshouse.graph.rule.question import Hops, Question, ask
from glasshouse.graph.rule.reference import toggle_of

__all__ = ["ego_losses"]


def ego_losses(
    models: Sequence[Model],
    data: Any,
    masks: Tensor,
    nodes: Tensor,
    *,
    hops: Hops = "model",
    radius: int | None = None,
) -> Tensor:
    """The same numbers from a loop over ego-nets, [models, masks, nodes]: the way the paper's program works.

    Each ego-net is just large enough to be exact: L hops to the nodes that are summed over, L more to what those
    see, and one more if a layer divides by degrees. With ``radius`` L it is cheaper but not exact near its border.

    Example:
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> def flat(x, edge_index):
        ...     return torch.zeros(len(x), 2)
        >>> ego_losses([flat], data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
        tensor([[[0.6931]]], dtype=torch.float64)
    """
    question = ask(data, masks, nodes, hops=hops, device=model_device(models))
    profiled = profile_models(models, question.graph())
    shape = (len(models), len(question.masks), len(question.nodes))
    answer = torch.empty(shape, dtype=torch.float64, device=question.x.device)
    if radius is None:
        radius = max((_radius(model, hops) for model in profiled), default=0)
    both_ways = torch.cat(
        [question.edge_index, question.edge_index.flip(0)], dim=1
    )  # the net has sources and receivers
    with evaluation_mode(models):
        for j, node in enumerate(question.nodes.tolist()):
            for i, mask in enumerate(question.masks):
                present = mask.clone()
                present[node] = True
                around = both_ways[:, present[both_ways].all(0)]
                kept = k_hop_subgraph(node, radius, around, num_nodes=question.size)[0]
                part, place = _part(question, kept, node)
                for k, model in enumerate(profiled):
                    answer[k, i, j] = toggle_of(model, part, mask[kept], place)[0]
    return answer


def _part(question: Question, kept: Tensor, node: int) -> tuple[Question, int]:
    """The question on the subgraph of the kept nodes, and the node's position in it."""
    position = torch.full((question.size,), -1, dtype=torch.long, device=kept.device)
    position[kept] = torch.arange(len(kept), device=kept.device)
    edges = position[question.edge_index]
    inside = (edges >= 0).all(0)
    place = int(position[node])
    part = Question(
        x=question.x[kept],
        edge_index=edges[:, inside],
        edge_weight=None if question.edge_weight is None else question.edge_weight[inside],
        edge_attr=None if question.edge_attr is None else question.edge_attr[inside],
        labels=question.labels[kept],
        masks=question.masks[:, kept],
        nodes=torch.tensor([place], device=kept.device),
        hops=question.hops,
    )
    return part, place


def _radius(one: Profiled, hops: Hops) -> int:
    """How far from v an ego-net must reach so that every summed loss equals that on the full graph."""
    reach = one.profile.hops
    modules = list(one.model.modules()) if isinstance(one.model, nn.Module) else []
    divides_by_degree = not modules or any(isinstance(module, GCNConv | SGConv) for module in modules)
    summed = reach + int(divides_by_degree and hops == "affected")
    return summed + reach + int(divides_by_degree)
