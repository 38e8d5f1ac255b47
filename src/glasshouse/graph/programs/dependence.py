"""Which edges, beside those of the senders, a node's answer depends on: found by adding edges to a small graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Dependence", "dependence_of"]

Ask = Callable[[Tensor, Tensor], Tensor]  # (x [n, features], edge_index [2, edges]) -> answers [n, width]

_TRIALS = 8
_NODES = 12
_BASE = ((1, 0), (3, 0), (5, 1))  # node 0 is asked; 1, 3 and 5 send to it
_SENDERS = ((2, 1),)  # one more sender of a sender
_LEAVING = ((1, 6), (0, 4), (5, 6))  # edges that no answer of a layer's senders needs
_APART = ((7, 8), (7, 9), (7, 10), (7, 11), (8, 7), (9, 7), (10, 7), (11, 7))  # a star that nothing joins to node 0
_ROUNDING = {torch.float64: 1e-9}  # of the largest answer; a smaller change does not count
_ROUNDING_ELSE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """What a node's answer depends on beside the nodes and edges that lead to it in its number of hops.

    Args:
        senders: on who sends to the outermost senders, as GCN's does on their number.
        leaving: on edges that lead away from the node or its senders, as through out-degrees.
        everywhere: on edges that are not connected to it.

    Example:
        >>> Dependence(senders=True, leaving=False, everywhere=False).senders
        True
    """

    senders: bool
    leaving: bool
    everywhere: bool


def dependence_of(ask: Ask, rows: Tensor, *, seed: int = 0) -> Dependence:
    """What the answers of a layer or a model depend on, on graphs of 12 nodes.

    Args:
        ask: the layer or the model.
        rows: [n, features] to make the features of; noise is added to numbers that are not whole.
        seed: of the choice of rows.

    Example:
        >>> from torch_geometric.nn import ChebConv, GCNConv
        >>> gcn, cheb = GCNConv(3, 2), ChebConv(3, 2, K=2)
        >>> dependence_of(lambda x, edges: gcn(x, edges).detach(), torch.randn(9, 3))
        Dependence(senders=True, leaving=False, everywhere=False)
        >>> dependence_of(lambda x, edges: cheb(x, edges).detach(), torch.randn(9, 3)).leaving
        True
    """
    source = torch.Generator().manual_seed(seed)
    found = dict.fromkeys((_SENDERS, _LEAVING, _APART), False)
    for _ in range(_TRIALS):
        x = rows[torch.randint(len(rows), (_NODES,), generator=source).to(rows.device)]
        if x.is_floating_point():
            x = x + x.std() * torch.randn(x.shape, generator=source, dtype=torch.float64).to(x)
        before = ask(x, _edges(_BASE, x))
        limit = _ROUNDING.get(before.dtype, _ROUNDING_ELSE) * max(float(before.abs().max()), 1e-12)
        for added, seen in found.items():
            if not seen:
                after = ask(x, _edges(_BASE + added, x))
                found[added] = float((after - before)[0].abs().max()) > limit
    return Dependence(senders=found[_SENDERS], leaving=found[_LEAVING], everywhere=found[_APART])


def _edges(pairs: tuple[tuple[int, int], ...], x: Tensor) -> Tensor:
    return torch.tensor(pairs, device=x.device).T.contiguous()
