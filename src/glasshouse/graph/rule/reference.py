"""The signal of the paper's Theorem 1, eq. (6)-(7), as written: one node and one mask at a time, slow and simple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import AnyModel, Profiled, evaluation_mode, profile_models, raw_models
from glasshouse.graph.rule.question import Hops, Question, Toggles, ask, check_width, node_losses


def reference_losses(
    models: Sequence[AnyModel], data: Any, masks: Tensor, nodes: Tensor, *, hops: Hops = "model"
) -> Tensor:
    """S_L of every model, mask and node, float64 [models, masks, nodes], by two full forward passes each.

    ``S = loss_v(in) + sum over u in N_L(v), m_u = 1, of loss_u(in) - loss_u(out)``; *in* is the graph induced by the
    mask with v added, *out* the same without v.

    Args:
        models: modules or callables ``(x, edge_index) -> logits``; how far they see (L) is measured.
        data: ``torch_geometric.data.Data`` with ``x``, ``edge_index`` and ``y``.
        masks: bool [masks, n].
        nodes: target node ids [nodes].
        hops: ``"model"`` sums over N_L(v), ``"affected"`` over every member whose prediction changes.

    Example:
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> def flat(x, edge_index):
        ...     return torch.zeros(len(x), 2)
        >>> reference_losses([flat], data, torch.ones(1, 2, dtype=torch.bool), torch.tensor([0]))
        tensor([[[0.6931]]], dtype=torch.float64)
    """
    question = ask(data, masks, nodes, hops=hops, device=model_device(raw_models(models)))
    return reference_toggles(profile_models(models, question.graph(), labels=question.labels), question).signal


def reference_toggles(models: Sequence[Profiled], question: Question) -> Toggles:
    """Like `reference_losses`, with the own losses ``loss_v(in)`` too."""
    with evaluation_mode(models):
        rows = [
            [[toggle_of(model, question, mask, int(node)) for node in question.nodes] for mask in question.masks]
            for model in models
        ]
    answer = torch.tensor(rows, dtype=torch.float64, device=question.x.device)
    return Toggles(*answer.reshape(len(models), len(question.masks), len(question.nodes), 2).unbind(3))


def neighbourhood(node: int, edge_index: Tensor, *, hops: int, size: int) -> Tensor:
    """Bool [size]: the nodes that see ``node`` within this many hops along the edges, without the node itself."""
    reached = torch.zeros(size, dtype=torch.bool, device=edge_index.device)
    reached[node] = True
    for _ in range(hops):
        reached = reached.index_fill(0, edge_index[1, reached[edge_index[0]]], True)
    reached[node] = False
    return reached


def toggle_of(model: Profiled, question: Question, mask: Tensor, node: int) -> tuple[float, float]:
    """Eq. (6) and the own loss for one model, one mask [n] and one node."""
    with_node, without_node = mask.clone(), mask.clone()
    with_node[node], without_node[node] = True, False
    loss_in, edges_in = _losses_on(model, question, with_node)
    loss_out, _ = _losses_on(model, question, without_node)
    profile = model.profile
    if question.hops == "model" and not profile.everywhere:
        summed = neighbourhood(node, edges_in, hops=profile.hops, size=question.size) & without_node
    else:
        summed = without_node  # a member whose prediction does not change adds nothing
    return float(loss_in[node] + (loss_in - loss_out)[summed].sum()), float(loss_in[node])


def _losses_on(model: Profiled, question: Question, present: Tensor) -> tuple[Tensor, Tensor]:
    """Losses [n] and edges of the graph induced by the present nodes.

    Absent nodes stay as isolated nodes, which no answer depends on; if a model looks at the whole graph, they are
    removed and their losses are 0.
    """
    graph = question.graph(present[question.edge_index].all(0))
    if model.profile.everywhere:
        return induced_losses(model, question, present), graph.edge_index
    logits = check_width(model.logits(graph), question)
    return node_losses(logits, question.labels), graph.edge_index


def induced_losses(model: Profiled, question: Question, present: Tensor) -> Tensor:
    """Losses [n] on the graph that holds only the present nodes, with new numbers; 0 for the others."""
    logits = check_width(model.logits(question.induced(present)), question)
    found = torch.zeros(question.size, dtype=torch.float64, device=question.x.device)
    found[present] = node_losses(logits, question.labels[present])
    return found
