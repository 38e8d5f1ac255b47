"""Models of several shapes in one chain: one group per shape, their answers joined in the models' order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.models.asking import meet
from glasshouse.graph.models.model import Model
from glasshouse.graph.rule.toggle import toggle_losses
from glasshouse.graph.rule.toggle.batching import by_shape
from glasshouse.graph.rule.toggle.compiled.architecture import STAGES
from glasshouse.graph.rule.toggle.compiled.engine import fill_rows, toggle_all
from glasshouse.graph.rule.toggle.compiled.plan import Graph, arrange
from glasshouse.graph.rule.toggle.compiled.problem import Problem, build_problem, supports
from glasshouse.graph.sampling.chains.moving import move_all
from glasshouse.graph.sampling.chains.whole_losses import WholeLosses, forward_losses

__all__ = ["Groups", "groups_maker"]

_FIRST = np.zeros(1, np.int64)
_ALL_ASKED = np.zeros((0, 0), np.bool_)


class ModelGroup(Protocol):
    """Models of one shape at one configuration, which flips change."""

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models of the group]."""

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip, which was of these nodes."""

    def totals(self) -> FloatArray:
        """Losses summed over the members, [models of the group]."""

    def losses(self) -> FloatArray:
        """Losses of the members, [models of the group, members]."""


@dataclass(kw_only=True)
class CompiledGroup:
    """A group whose rows are kept; a flip costs as much as the rows that it changes."""

    problem: Problem
    _graph: Graph = field(init=False)
    _totals: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self._state, self._scratch = self.problem.new_state(), self.problem.new_scratch()
        self._answer = np.zeros((self.problem.models, 1))

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._graph = arrange(self.problem.graph, mask)
        everyone = (0, len(mask))
        for stage in range(STAGES):  # with the engine's own kernel, which is compiled for its signals anyway
            fill_rows(self.problem.weights, stage, self._graph, self._state, self._scratch, everyone)
        self._totals = self._state.loss[self._graph.member].sum(axis=0)

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models of the group]."""
        target, kept = np.array([v]), (self._graph, self._state, self._answer, self._scratch)
        toggle_all(self.problem.weights, False, target, *kept, _FIRST)
        return self._answer[:, 0]

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        move_all(self.problem.weights, nodes, self._graph, self._state, self._scratch, _ALL_ASKED, self._totals)

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip; the same rows are refreshed, and the totals agree with them to the last digit."""
        self.flip(nodes[::-1].copy())

    def totals(self) -> FloatArray:
        """Losses summed over the members, [models of the group]."""
        return self._totals

    def losses(self) -> FloatArray:
        """Losses of the members, [models of the group, members]."""
        found: FloatArray = self._state.loss[self._graph.member].T
        return found


@dataclass(kw_only=True)
class AskedGroup:
    """A group without kernels: `toggle_losses` answers for one node, a forward pass for a whole configuration."""

    models: Sequence[Model]
    data: Data
    answer: WholeLosses
    _mask: BoolArray = field(init=False)
    _losses: FloatArray | None = field(init=False, default=None)
    _before: FloatArray | None = field(init=False, default=None)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._mask, self._losses = mask.copy(), None

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models of the group]."""
        found = toggle_losses(self.models, self.data, torch.from_numpy(self._mask)[None], torch.tensor([v]))
        signals: FloatArray = found[:, 0, 0].cpu().numpy()
        return signals

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        self._mask[nodes] ^= True
        self._before, self._losses = self._losses, None

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip, which was of these nodes."""
        self._mask[nodes] ^= True
        self._losses = self._before

    def totals(self) -> FloatArray:
        """Losses summed over the members, [models of the group]."""
        found: FloatArray = self.losses().sum(axis=1)
        return found

    def losses(self) -> FloatArray:
        """Losses of the members, [models of the group, members]."""
        if self._losses is None:
            self._losses = self.answer(self._mask)[:, self._mask]
        return self._losses


@dataclass(kw_only=True)
class Groups:
    """All models of a chain at one configuration, in groups of one shape.

    Args:
        parts: the groups, each with the positions of its models among all.
        count: how many models there are in total.
    """

    parts: Sequence[tuple[IntArray, ModelGroup]]
    count: int

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        for _, group in self.parts:
            group.begin(mask)

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models]."""
        return self._joined(lambda group: group.signal(v))

    def totals(self) -> FloatArray:
        """Losses summed over the members, [models]."""
        return self._joined(lambda group: group.totals())

    def losses(self) -> FloatArray:
        """Losses of the members, [models, members]."""
        found = [(places, group.losses()) for places, group in self.parts]
        joined = np.empty((self.count, found[0][1].shape[1]))
        for places, losses in found:
            joined[places] = losses
        return joined

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        for _, group in self.parts:
            group.flip(nodes)

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip, which was of these nodes."""
        for _, group in self.parts:
            group.undo(nodes)

    def _joined(self, answer: Callable[[ModelGroup], FloatArray]) -> FloatArray:
        joined = np.empty(self.count)
        for places, group in self.parts:
            joined[places] = answer(group)
        return joined


def groups_maker(models: Sequence[Any], data: Data, *, threads: int) -> tuple[Callable[[], Groups], bool]:
    """A function that makes groups for one thread, and whether threads may run side by side.

    Threads share the stacked weights. If a group has no kernels, there is only one thread: a user's own model may not
    work when two threads call it at once.

    Example:
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn(name, features=2, hidden=4, classes=2) for name in ("gcn", "gat", "gat")]
        >>> make, side_by_side = groups_maker(models, pair, threads=1)
        >>> [places.tolist() for places, _ in make().parts], side_by_side
        ([[0], [1, 2]], True)
    """
    meet(models, data)
    makers: list[tuple[IntArray, Callable[[], ModelGroup]]] = []
    side_by_side = True
    for numbers in by_shape(models):
        group = [models[number] for number in numbers]
        compiled = supports(group, data)
        side_by_side &= compiled
        maker = _compiled_maker(group, data, threads=threads) if compiled else _asked_maker(group, data)
        makers.append((np.array(numbers), maker))
    count = len(models)
    return lambda: Groups(parts=[(places, make()) for places, make in makers], count=count), side_by_side


def _compiled_maker(models: Sequence[Any], data: Data, *, threads: int) -> Callable[[], ModelGroup]:
    problem = build_problem(models, data, threads=threads)
    return lambda: CompiledGroup(problem=problem)


def _asked_maker(models: Sequence[Any], data: Data) -> Callable[[], ModelGroup]:
    answer = forward_losses(models, data)
    return lambda: AskedGroup(models=models, data=data, answer=answer)
