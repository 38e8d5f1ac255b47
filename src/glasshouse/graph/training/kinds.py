"""Graphs with kinds of nodes and edges (`HeteroData`): one kind is audited, and the others are context.

Such a graph is written as a plain one: the audited nodes first, then those of the other kinds, which have no label. The
first column of the features is the number of a node's kind, and ``edge_type`` is that of an edge, so that a model of
dicts is asked about any part of the graph like every black box: a node is toggled with all its edges of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing

from glasshouse.auditing.options import Attacker
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.data import as_ids, as_members
from glasshouse.graph.training.own_loss import NO_TRAINER, with_outcomes
from glasshouse.graph.training.trainer import GNNTrainer
from glasshouse.query.losses import Loss

_TRAINER = (
    "trainer: for kinds of nodes pass a function (data, members, seed) -> model, called as model(x_dict, "
    "edge_index_dict), that trains on data.subgraph({{{kind!r}: torch.from_numpy(members)}})."
)
EdgeKind = tuple[str, str, str]


class KindsModel(nn.Module):
    """A model of dicts, called with the plain form of the graph; it answers about the audited kind, 0 elsewhere."""

    def __init__(self, model: Any, kinds: list[str], widths: list[int], edge_kinds: list[EdgeKind]) -> None:
        super().__init__()
        self.model, self.kinds, self.widths, self.edge_kinds = model, kinds, widths, edge_kinds
        self.hops = int(getattr(model, "hops", 0) or _depth(model))

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        """Logits [n, C]."""
        of_node = x[:, 0].long()
        position, parts = torch.empty_like(of_node), {}
        for number, (name, width) in enumerate(zip(self.kinds, self.widths, strict=True)):
            chosen = of_node == number
            position[chosen] = torch.arange(int(chosen.sum()), device=x.device)
            parts[name] = x[chosen, 1 : 1 + width]
        edges = {}
        for number, (source, _, end) in enumerate(self.edge_kinds):
            # parts that are made up, to see how far a model looks, may hold edges between other kinds
            fits = (edge_type == number) & (of_node[edge_index[0]] == self.kinds.index(source))
            fits &= of_node[edge_index[1]] == self.kinds.index(end)
            edges[self.edge_kinds[number]] = position[edge_index[:, fits]]
        answer = self.model(parts, edges)
        answer = answer[self.kinds[0]] if isinstance(answer, Mapping) else answer
        found: Tensor = answer.new_zeros(len(x), *answer.shape[1:])
        found[of_node == 0] = answer
        return found


def _depth(model: Any) -> int:
    """An upper bound of how many steps a model of dicts looks along the edges: one per group of layers by kind."""
    if not isinstance(model, nn.Module):
        raise InputError("model: how far it looks along the edges is not known; give it an attribute hops, such as 2.")
    modules = list(model.modules())
    groups = [one for one in modules if isinstance(one, nn.ModuleDict)]
    grouped = [part for one in groups for part in one.values() if isinstance(part, MessagePassing)]
    layers = sum(isinstance(one, MessagePassing) for one in modules)
    return layers - len(grouped) + sum(any(isinstance(part, MessagePassing) for part in one.values()) for one in groups)


def audited_kind(data: HeteroData) -> str:
    """The kind of nodes that has labels: the only one."""
    named = [str(kind) for kind in data.node_types if getattr(data[kind], "y", None) is not None]
    if len(named) != 1:
        raise InputError(
            f"data: {len(named)} kinds of nodes have labels y ({', '.join(named) or 'none'}); one kind is audited at a "
            f"time: keep y of that kind alone, as by del data['author'].y."
        )
    return named[0]


def as_plain(data: HeteroData) -> tuple[Data, Callable[[Any], KindsModel]]:
    """A graph of kinds as a plain one, the audited nodes first, and what makes models of dicts answer about it."""
    first = audited_kind(data)
    kinds = [first, *(str(kind) for kind in data.node_types if kind != first)]
    if lost := [kind for kind in kinds if not isinstance(getattr(data[kind], "x", None), Tensor)]:
        raise InputError(
            f"data[{lost[0]!r}].x: is missing; give each kind of nodes features, such as torch.ones(n, 1)."
        )
    valued = [kind for kind in data.edge_types if {"edge_attr", "edge_weight"} & set(data[kind].keys())]
    if valued:
        raise InputError(
            f"data[{valued[0]}]: edges with values are not taken together with kinds. Delete edge_attr and edge_weight "
            f"if the model was trained without them."
        )
    widths, counts = ([int(data[kind].x.shape[axis]) for kind in kinds] for axis in (1, 0))
    start = dict(zip(kinds, np.concatenate([[0], np.cumsum(counts)[:-1]]).tolist(), strict=True))
    x = torch.zeros(sum(counts), 1 + max(widths))
    for number, (kind, width, count) in enumerate(zip(kinds, widths, counts, strict=True)):
        rows = slice(start[kind], start[kind] + count)
        x[rows, 0], x[rows, 1 : 1 + width] = number, data[kind].x.float()
    edge_kinds: list[EdgeKind] = list(data.edge_types)
    moved = [
        data[kind].edge_index + torch.tensor([[start[kind[0]]], [start[kind[2]]]], device=data[kind].edge_index.device)
        for kind in edge_kinds
    ]
    own = data[first].y.long() if data[first].y.dtype == torch.bool else data[first].y
    none = torch.nan if own.is_floating_point() else -1
    plain = Data(
        x=x,
        edge_index=torch.cat(moved, dim=1) if moved else torch.zeros(2, 0, dtype=torch.long),
        edge_type=torch.repeat_interleave(torch.arange(len(moved)), torch.tensor([one.shape[1] for one in moved])),
        y=torch.cat([own, own.new_full((sum(counts[1:]), *own.shape[1:]), none)]),
    )
    plain.about = f"A graph with the kinds of nodes {', '.join(kinds)}, of which {first} is audited."
    names = as_ids(getattr(data[first], "ids", None), counts[0], place="ids").tolist()
    plain.ids = names + [
        f"{kind} {at}" for kind, count in zip(kinds[1:], counts[1:], strict=True) for at in range(count)
    ]
    return plain, lambda model: KindsModel(model, kinds, widths, edge_kinds)


def plain_arguments(
    data: Data | HeteroData,
    *,
    loss: Loss | None,
    model: Any,
    members: ArrayLike | None,
    trainer: Any,
    attacker: Attacker,
) -> dict[str, Any]:
    """The arguments of an audit of a plain graph of classified nodes that mean the same.

    Of a graph of kinds, members [n] are of the audited kind.
    """
    mixed = isinstance(data, HeteroData)
    count = len(data[audited_kind(data)].x) if mixed else data.num_nodes
    if any(one is None or isinstance(one, GNNTrainer) for one in (trainer, attacker.trainer or trainer)):
        raise InputError(_TRAINER.format(kind=audited_kind(data)) if mixed else NO_TRAINER)
    if attacker.graph is not None:
        raise InputError("attacker.graph: is not taken together with kinds of nodes or with a loss of your own.")
    plain, wrapped = as_plain(data) if mixed else with_outcomes(data, cast("Loss", loss))

    def standing_in(trainer: Any) -> Any:
        """A trainer that is given the user's form of the graph."""

        def train(_: Data, chosen: BoolArray, seed: int) -> nn.Module:
            return wrapped(trainer(data, chosen[:count], seed))

        return train

    if mixed and members is not None:
        who, members = members, np.ones(int(plain.num_nodes), dtype=np.bool_)
        members[:count] = as_members(who, (count,), place="members", ids=np.array(plain.ids[:count]))
    return {
        "data": plain,
        "loss": loss if mixed else None,
        "model": None if model is None else wrapped(model),
        "members": members,
        "trainer": standing_in(trainer),
        "attacker": replace(attacker, trainer=attacker.trainer and standing_in(attacker.trainer)),
    }
