"""What is asked of the rule, and what is answered: a graph, sampled masks and target nodes, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.outputs import tensor_losses
from glasshouse.graph.data.checking import CheckedGraph, graph_faults
from glasshouse.graph.models.calls import edge_values, with_edges
from glasshouse.graph.models.tensor_cache import on_device

Hops = Literal["model", "affected"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A checked request: everything on one device, ready for any engine.

    Args:
        x: node features [n, features].
        edge_index: edges [2, edges], source first, as in PyTorch Geometric.
        edge_weight: weights of the edges [edges], if the graph has any.
        edge_attr: features of the edges [edges] or [edges, d], if the graph has any.
        edge_type: numbers of the kinds of the edges [edges], if the graph has any.
        labels: class of every node [n]; below 0 for one without a label, which is no target and has no loss.
        masks: sampled members, bool [masks, n].
        nodes: the target nodes, int64 [targets].
        hops: ``"model"`` sums over N_L(v), ``"affected"`` over every member whose prediction changes.

    Example:
        >>> data = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> ask(data, torch.ones(1, 3, dtype=torch.bool), torch.tensor([2])).size
        3
    """

    x: Tensor
    edge_index: Tensor
    labels: Tensor
    masks: Tensor
    nodes: Tensor
    hops: Hops = "model"
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    edge_type: Tensor | None = None

    def graph(self, edges: Tensor | None = None) -> Data:
        """All nodes, and all edges or those that are chosen (bool [edges] or positions), with their values."""
        return with_edges(self, edges)

    def edge_values(self) -> dict[str, Tensor]:
        """The values of the edges by name, [edges, ...]; without those that the graph does not have."""
        return edge_values(self)

    def induced(self, present: Tensor) -> Data:
        """The graph that holds only the present nodes, bool [n], with new numbers, and the edges between them."""
        part = self.graph(present[self.edge_index].all(0))
        position = present.long().cumsum(0) - 1
        part.x, part.edge_index = part.x[present], position[part.edge_index]
        return part

    @property
    def size(self) -> int:
        """n, the number of nodes."""
        return int(self.x.shape[0])


def ask(
    data: Any, masks: Tensor, nodes: Tensor, *, hops: Hops = "model", device: torch.device | None = None
) -> Question:
    """Check a request and put it on one device; `InputError` lists all faults at once.

    Args:
        data: ``torch_geometric.data.Data`` with ``x``, ``edge_index`` and ``y``.
        masks: bool [masks, n] (or one mask [n]).
        nodes: target node ids [targets], or bool [n].
        hops: see :class:`Question`.
        device: where to work; by default where ``data.x`` is.

    Example:
        >>> data = Data(x=torch.ones(3, 2), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.tensor([0, 1, 0]))
        >>> ask(data, torch.ones(1, 4, dtype=torch.bool), torch.tensor([0]))
        Traceback (most recent call last):
        glasshouse.InputError: masks: each has 4 entries but the graph has 3 nodes. Pass bool [masks, 3].
    """
    masks = torch.as_tensor(masks)
    masks = masks.unsqueeze(0) if masks.dim() == 1 else masks
    nodes = torch.as_tensor(nodes)
    faults = [] if hops in ("model", "affected") else [f'hops: {hops!r} is not known. Use "model" or "affected".']
    faults += [] if isinstance(data, CheckedGraph) else graph_faults(data)
    x = getattr(data, "x", None)
    faults += _faults(masks, nodes, len(x)) if isinstance(x, Tensor) and x.ndim else []
    if faults:
        raise_faults(faults)
    if nodes.dtype == torch.bool:
        nodes = nodes.nonzero().squeeze(1)
    device = device or data.x.device
    masks, nodes, labels = masks.bool().to(device), nodes.long().reshape(-1).to(device), on_device(data.y, device)
    missing = ~(labels >= 0)  # NaN, in float labels, is not >= 0 either
    if lost := int(missing[nodes].sum()):
        raise InputError(f"data.y: {lost} target nodes have no label. Leave them out of nodes; in masks they may stay.")
    values = {name: on_device(value, device) for name, value in edge_values(data).items()}
    return Question(
        x=on_device(data.x, device),
        edge_index=on_device(data.edge_index, device).long(),
        labels=labels.masked_fill(missing, -1).long(),
        masks=masks,
        nodes=nodes,
        hops=hops,
        edge_weight=values.get("edge_weight"),
        edge_attr=values.get("edge_attr"),
        edge_type=values.get("edge_type"),
    )


def _faults(masks: Tensor, nodes: Tensor, n: int) -> list[str]:
    """Everything wrong with masks and nodes, one line each."""
    faults = []
    if masks.dim() != 2 or masks.shape[1] != n:
        faults.append(f"masks: each has {masks.shape[-1]} entries but the graph has {n} nodes. Pass bool [masks, {n}].")
    if nodes.dtype == torch.bool:
        if nodes.numel() != n:
            faults.append(f"nodes: a bool mask of {nodes.numel()} for {n} nodes. Pass node ids or bool [{n}].")
    elif nodes.is_floating_point():
        faults.append(f"nodes: have type {nodes.dtype}. Pass whole numbers.")
    elif nodes.numel() and not (int(nodes.min()) >= 0 and int(nodes.max()) < n):
        faults.append(f"nodes: ids outside 0 ... {n - 1}. Pass nodes of this graph.")
    return faults


def check_width(logits: Tensor, question: Question) -> Tensor:
    """The logits [..., classes], after a check that they have a column for every label in use."""
    needed = question.masks.any(0)
    needed[question.nodes] = True
    classes = int(question.labels[needed].max()) + 1 if bool(needed.any()) else 0
    if logits.shape[-1] < classes:
        raise InputError(
            f"models: logits have {logits.shape[-1]} columns for {classes} classes. Pass models of these labels."
        )
    return logits


def node_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Losses float64 [...] of logits [..., classes] and labels [...]; 0 for a node without a label, below 0."""
    return tensor_losses(logits, labels.clamp(0, logits.shape[-1] - 1)).masked_fill(labels < 0, 0.0)


class Toggles(NamedTuple):
    """Answers for every model, mask and node, float64 [models, masks, nodes] each.

    Args:
        signal: S of the paper's eq. (6).
        own: its first part, the node's own loss in the graph of the mask with the node added.

    Example:
        >>> import torch
        >>> found = Toggles(signal=torch.tensor([[[2.0]]]), own=torch.tensor([[[1.5]]]))
        >>> found.signal - found.own  # what the node's presence changes for its neighbours
        tensor([[[0.5000]]])
    """

    signal: Tensor
    own: Tensor
