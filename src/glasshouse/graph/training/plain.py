"""Graphs with kinds of nodes (`HeteroData`), and losses of the user's own: both audited as a plain graph of classes.

Of several kinds one is audited, and the others are context. The audited nodes are first, then those of the other kinds,
which have no label. The first column of the features is the number of a node's kind, and ``edge_type`` is that of an
edge, so that a model of dicts is asked about any part of the graph like every black box: a node is toggled with all its
edges of all kinds.

A model with a loss of the user's own, of several labels per node, a regression, or anything else that nodes have, is
asked as a classifier of two classes whose first has just this loss, so that every attack and engine can ask it. The
nodes' outcomes are the last columns of the features: any part of a graph holds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import MessagePassing

from glasshouse.auditing.options import Attacker
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.numerics import loss_to_margin
from glasshouse.core.outputs import unwrapped
from glasshouse.data import as_ids, as_members
from glasshouse.graph.data.checking import CheckedGraph, graph_faults
from glasshouse.graph.models.calls import bind_arguments, held_values
from glasshouse.graph.models.profile import evaluation_mode
from glasshouse.graph.training.trainer import GNNTrainer
from glasshouse.query.losses import Batch, Loss, asked_losses

_NO_FUNCTION_OF_KINDS = (
    "trainer: for kinds of nodes pass a function (data, members, seed) -> model, called as model(x_dict, "
    "edge_index_dict), that trains on data.subgraph({{{kind!r}: torch.from_numpy(members)}})."
)
_NO_FUNCTION = "trainer: with a loss of your own pass a function (data, members, seed) -> model."
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


_LEAST = 1e-6  # added to all losses, which changes no S: near 0 a margin would magnify what float32 rounds


class _Answer(NamedTuple):
    """What a model answered about the nodes of a graph."""

    value: Any


def _told(x: Any) -> Any:
    """The model that a loss asks about ``batch.x``."""
    if not isinstance(x, _Answer):
        raise InputError("loss: on a graph a model answers about its nodes as they are; ask model(batch.x).")
    return x.value


class LossHead(nn.Module):
    """From answers about nodes and their outcomes to logits of two classes, of which the first has the loss."""

    def __init__(self, loss: Loss, shape: tuple[int, ...], kind: torch.dtype) -> None:
        super().__init__()
        self.loss, self.shape, self.kind = loss, shape, kind

    def forward(self, answer: Any, outcomes: Tensor) -> Tensor:
        """[n, 2] from an answer about n nodes and outcomes [n, columns]."""
        if not len(outcomes):
            return outcomes.new_zeros(0, 2)
        told = np.nansum(asked_losses(self.loss, _told, self.batch(answer, outcomes))["loss"], axis=1)
        if told.min() < -_LEAST:
            raise InputError("loss: a node's must not be negative; add a constant, which changes no attack on graphs.")
        margin = torch.from_numpy(loss_to_margin(told.clip(min=0.0) + _LEAST)).to(outcomes.device, outcomes.dtype)
        return torch.stack([margin / 2, -margin / 2], dim=1)

    def batch(self, answer: Any, outcomes: Tensor) -> Batch:
        """What a loss is given: in place of features the answer, which `_told` takes out."""
        y = outcomes.reshape(len(outcomes), *self.shape).to(self.kind).cpu().numpy()
        return Batch(_Answer(unwrapped(answer)), y, np.arange(len(y)).astype(str))


class LossModel(nn.Module):
    """A model of the user's with a loss, called with a graph whose features end with the outcomes."""

    def __init__(self, model: Any, head: LossHead, graph: Data, own: Tensor) -> None:
        super().__init__()
        self.model, self.head = model, head
        self.columns, self.kind = own.shape[1], own.dtype
        self.arguments = bind_arguments(model, held_values(graph))
        self.hops = getattr(model, "hops", None)
        if hasattr(head.loss, "settled"):
            with evaluation_mode([self]):
                batch = head.batch(self.answer(graph), graph.x[:, self.columns :])
            self.head = LossHead(head.loss.settled(_told, batch), head.shape, head.kind)

    def forward(self, data: Data) -> Tensor:
        """Logits [n, 2]."""
        answer: Tensor = self.head(self.answer(data), data.x[:, self.columns :])
        return answer

    def answer(self, data: Data) -> Any:
        """What the model answers about the nodes of a graph."""
        x = data.x[:, : self.columns]
        x = x if self.kind == torch.float32 else x.to(self.kind)
        values = {name: data[name] for name, _ in self.arguments.held}
        if self.arguments.takes_data:
            return self.model(Data(x=x, edge_index=data.edge_index, **values))
        return self.model(x, data.edge_index, **{place: values[name] for place, name in self.arguments.bound})


def with_outcomes(data: Data, loss: Loss) -> tuple[CheckedGraph, Callable[[Any], LossModel]]:
    """A graph with its outcomes among the features, and what makes models answer about it; see the module.

    A node whose outcomes are all NaN, or whole numbers below 0, has none, and is context.
    """
    if getattr(loss, "whole", False):
        raise InputError("loss: it needs all records in one batch, and on a graph each node must have its own.")
    graph: CheckedGraph = CheckedGraph.from_dict({**data.to_dict(), "y": torch.zeros(data.num_nodes or 0)})
    raise_faults(graph_faults(graph))
    y = getattr(data, "y", None)
    if not isinstance(y, Tensor) or y.shape[:1] != graph.x.shape[:1]:
        raise InputError("data.y: give the outcomes of every node as a tensor, [n] or [n, L].")
    outcomes = y.reshape(len(y), -1)
    absent = outcomes.isnan() if y.is_floating_point() else outcomes < 0
    lacking = absent.all(dim=1)
    if bool(lacking.all()) or (y.is_floating_point() and bool((absent.any(dim=1) & ~lacking).any())):
        raise InputError("data.y: give each node all of its outcomes, or NaN for all of one that has none.")
    some = torch.where(lacking[:, None], outcomes[~lacking][:1], outcomes)  # losses of the lacking ones are not used
    graph.x = torch.cat([data.x.float(), some.to(data.x.device).float()], dim=1)
    graph.y = torch.where(lacking, -1, 0)
    head = LossHead(loss, tuple(y.shape[1:]), y.dtype)
    return graph, lambda model: LossModel(model, head, graph, data.x)


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
        raise InputError(_NO_FUNCTION_OF_KINDS.format(kind=audited_kind(data)) if mixed else _NO_FUNCTION)
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
