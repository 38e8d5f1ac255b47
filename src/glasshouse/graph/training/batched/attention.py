"""Attention over neighbours for several models at once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.utils import add_self_loops, remove_self_loops, softmax

from glasshouse.graph.training.batched.graphs import BatchedGraph

__all__ = ["AttentionEdges", "attended", "attention_edges"]


class AttentionEdges(NamedTuple):
    """The edges of all graphs, model by model, so that each model draws its own dropout of them."""

    source: Tensor  # [E]
    target: Tensor  # [E]
    counts: list[int]  # [K] edges per model


def attention_edges(graph: BatchedGraph, *, loops: bool) -> AttentionEdges:
    """The edges that carry attention; with ``loops``, one self-loop per node in place of those of the graph.

    Example:
        >>> from glasshouse.graph.data.induced import InducedGraph
        >>> one = InducedGraph(torch.eye(2), torch.tensor([[0, 1], [1, 1]]), torch.tensor([0, 1]))
        >>> attention_edges(BatchedGraph.of([one, one]), loops=True).counts
        [65, 65]
    """

    def make() -> AttentionEdges:
        edges = graph.edge_index
        if loops:
            edges = add_self_loops(remove_self_loops(edges)[0], num_nodes=graph.nodes)[0]
            edges = edges[:, (edges[0] // graph.size).argsort(stable=True)]
        owner = edges[0] // graph.size
        return AttentionEdges(edges[0], edges[1], torch.bincount(owner, minlength=graph.count).tolist())

    return graph.kept(("attention", loops), make)


def attended(graph: BatchedGraph, edges: AttentionEdges, fit: Tensor, values: Tensor, *, dropout: float) -> Tensor:
    """Values of the senders, weighted by the softmax of ``fit`` over each receiver's edges: [K, m, heads, c].

    Args:
        graph: the models' graphs.
        edges: their edges.
        fit: [E, heads] how much a receiver wants what a sender has.
        values: [K, m, heads, c] of the senders.
        dropout: share of the weights that is dropped.
    """
    share = softmax(fit, edges.target, num_nodes=graph.nodes)
    if dropout:
        share = graph.drop_edges(share, edges.counts, dropout)
    flat = values.flatten(0, 1)  # [K m, heads, c]
    return graph.by_graph(torch.zeros_like(flat).index_add(0, edges.target, share[:, :, None] * flat[edges.source]))
