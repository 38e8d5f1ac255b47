"""Train on parts of a graph that is too large for one step: random parts, or sampled neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, IntArray
from glasshouse.core.errors import InputError, number_faults, raise_faults
from glasshouse.core.randomness import generator
from glasshouse.graph.data.population import part_of
from glasshouse.graph.models.calls import with_edges


class Part(NamedTuple):
    """A part of a graph, for one step of training."""

    nodes: IntArray  # [m] positions in the graph, ascending
    edges: IntArray  # [e] positions among its edges, ascending
    counted: BoolArray  # [m] whose loss counts


class Batches(Protocol):
    """How a graph is cut into parts, for one step of training each: `RandomNodes` or `Neighbors`."""

    def parts_of(self, edge_index: IntArray, counted: BoolArray) -> Callable[[np.random.Generator], Iterator[Part]]:
        """What draws the parts of one epoch.

        Args:
            edge_index: [2, E] edges, from where and to where.
            counted: [n] the nodes whose loss counts.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class RandomNodes:
    """Random parts of about equal size, drawn anew in each epoch, each with the edges inside it.

    As PyTorch Geometric's ``RandomNodeLoader``. In a step, a node sees about 1 / ``parts`` of its neighbours, so use as
    few parts as memory allows; one part is the whole graph. Memory falls faster than 1 / ``parts``, since edges between
    parts are left out.

    Args:
        parts: how many, and so the number of steps per epoch.

    Example:
        >>> edges, everyone = np.array([[0, 1, 2, 3], [1, 2, 3, 0]]), np.ones(4, dtype=bool)
        >>> draw = RandomNodes(parts=2).parts_of(edges, everyone)
        >>> first, second = draw(np.random.default_rng(0))
        >>> len(first.nodes), len(second.nodes)
        (2, 2)
    """

    parts: int = 8

    def __post_init__(self) -> None:
        raise_faults(number_faults(self, at_least={"parts": 1}))

    def parts_of(self, edge_index: IntArray, counted: BoolArray) -> Callable[[np.random.Generator], Iterator[Part]]:
        """What draws the parts of one epoch."""
        count = len(counted)
        if 2 * self.parts > max(2, count):
            raise InputError(f"parts: {self.parts} parts of {count} nodes; use {max(1, count // 2)} or fewer.")

        def draw(random: np.random.Generator) -> Iterator[Part]:
            part_of = np.empty(count, dtype=np.int64)
            part_of[random.permutation(count)] = np.arange(count) * self.parts // count
            inside = np.flatnonzero(part_of[edge_index[0]] == part_of[edge_index[1]])
            nodes = _grouped(np.arange(count), part_of, self.parts)
            edges = _grouped(inside, part_of[edge_index[0, inside]], self.parts)
            for some, between in zip(nodes, edges, strict=True):
                yield Part(some, between, counted[some])

        return draw


@dataclass(frozen=True, kw_only=True)
class Neighbors:
    """Some nodes per step, with sampled neighbours around them (GraphSAGE; Hamilton et al., 2017).

    As PyTorch Geometric's ``NeighborLoader``, but it needs neither pyg-lib nor torch-sparse, and the same seed gives
    the same parts on every machine. A node that is reached gets at most as many of its incoming edges as the hop
    allows, without replacement. The nodes of the last hop have no incoming edges, which changes the degrees that a GCN
    divides by; one more hop than the network has layers avoids it.

    Args:
        fanout: incoming edges per node at each hop; -1 for all of them. Give one hop per layer of the network.
        size: nodes per step whose loss counts.

    Example:
        >>> edges, first = np.array([[1, 2, 3], [0, 1, 2]]), np.array([True, False, False, False])
        >>> draw = Neighbors(fanout=(-1, -1)).parts_of(edges, first)
        >>> part = next(draw(np.random.default_rng(0)))
        >>> part.nodes, part.edges
        (array([0, 1, 2]), array([0, 1]))
    """

    fanout: tuple[int, ...] = (10, 10)
    size: int = 1024

    def __post_init__(self) -> None:
        object.__setattr__(self, "fanout", tuple(self.fanout))
        faults = []
        if not self.fanout or any(most != -1 and most < 1 for most in self.fanout):
            faults.append(f"fanout: {list(self.fanout)}; give 1 or more, or -1 for all neighbours, for each hop.")
        raise_faults([*faults, *number_faults(self, at_least={"size": 2})])

    def parts_of(self, edge_index: IntArray, counted: BoolArray) -> Callable[[np.random.Generator], Iterator[Part]]:
        """What draws the parts of one epoch."""
        by_target = np.argsort(edge_index[1], kind="stable")
        ends = np.cumsum(np.bincount(edge_index[1], minlength=len(counted)))
        starts = np.concatenate([[0], ends])

        def draw(random: np.random.Generator) -> Iterator[Part]:
            order = random.permutation(np.flatnonzero(counted))
            for start in range(0, len(order), self.size):
                centres = order[start : start + self.size]
                reached, taken, frontier = np.zeros(len(counted), dtype=np.bool_), [], np.sort(centres)
                reached[frontier] = True
                for most in self.fanout:
                    edges = by_target[_some_places(starts, frontier, most, random)]
                    taken.append(edges)
                    senders = np.unique(edge_index[0, edges])
                    frontier = senders[~reached[senders]]
                    reached[frontier] = True
                nodes = np.flatnonzero(reached)
                yield Part(nodes, np.sort(np.concatenate(taken)), np.isin(nodes, centres))

        return draw


class Step(NamedTuple):
    """What one step of training sees: a graph, its labels [m], and the nodes [m] whose loss counts."""

    graph: Data
    y: Tensor
    counted: Tensor


def training_steps(
    batches: Batches | None,
    graph: Data,  # what a model may be trained on
    counted: Tensor,  # [n] the nodes whose loss counts
    *,
    seed: int,  # of the training; each epoch has a random stream of its own
    device: torch.device,  # where a step is computed; the graph itself may be elsewhere
) -> Callable[[int], Iterator[Step]]:
    """The steps of an epoch, by its number; without ``batches`` the whole graph, each time.

    Parts without a node whose loss counts are left out.
    """
    if batches is None:
        whole = Step(with_edges(graph), graph.y, counted)
        return lambda _: iter([whole])
    draw = batches.parts_of(graph.edge_index.cpu().numpy(), counted.cpu().numpy())

    def steps(epoch: int) -> Iterator[Step]:
        for part in draw(generator(seed, "parts", epoch)):
            if part.counted.any():
                chosen = part_of(graph, torch.from_numpy(part.nodes), torch.from_numpy(part.edges), device=device)
                yield Step(with_edges(chosen), chosen.y, torch.from_numpy(part.counted).to(device))

    return steps


def _grouped(values: IntArray, group: IntArray, groups: int) -> list[IntArray]:
    """Values [V], ascending, divided by their groups [V]; ascending within each."""
    order = np.argsort(group, kind="stable")
    return np.split(values[order], np.cumsum(np.bincount(group, minlength=groups))[:-1])


def _some_places(starts: IntArray, nodes: IntArray, most: int, random: np.random.Generator) -> IntArray:
    """Places between ``starts[i]`` and ``starts[i + 1]`` of each node i, all of them or ``most`` random ones."""
    counts = starts[nodes + 1] - starts[nodes]
    before = np.cumsum(counts) - counts  # [nodes] places of the nodes before it
    number = np.arange(counts.sum()) - np.repeat(before, counts)  # of each place, within its node
    places: IntArray = np.repeat(starts[nodes], counts) + number
    if most == -1 or not len(places):
        return places
    owner = np.repeat(np.arange(len(nodes)), counts)
    mixed = np.lexsort((random.random(len(places)), owner))  # a random order within each node
    chosen: IntArray = places[mixed][number < most]
    return chosen
