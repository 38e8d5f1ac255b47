"""One Metropolis-Hastings chain: propose, compare, keep or undo."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph.rule.jit import kernel
from glasshouse.graph.rule.toggle.compiled.commit import fill_state
from glasshouse.graph.rule.toggle.compiled.plan import Graph, arrange
from glasshouse.graph.rule.toggle.compiled.problem import Problem
from glasshouse.graph.sampling.chains.groups import Groups
from glasshouse.graph.sampling.chains.moving import add_members, move
from glasshouse.graph.sampling.chains.posterior import log_ratio, summed_ratios
from glasshouse.graph.sampling.chains.proposal import Block, changed_rows

__all__ = ["CompiledFlipper", "GroupFlipper"]


@kernel
def propose_all(
    weights: Any,
    block: Block,
    prior_logit: FloatArray,
    asked: BoolArray,
    totals: FloatArray,
    graph: Graph,
    state: Any,
    scratch: Any,
) -> int:
    """Accept or undo each proposal; ``totals`` [1 + K] as in `move`. Returns how many were accepted."""
    taken = 0
    for step in range(len(block.log_uniform)):
        first, last = block.start[step], block.start[step + 1]
        change = -log_ratio(totals)
        for i in range(first, last):
            v = block.nodes[i]
            change += -prior_logit[v] if graph.member[v] else prior_logit[v]
            move(weights, v, graph, state, scratch, asked, totals)
        change += log_ratio(totals)
        if block.log_uniform[step] < change:
            taken += 1
        else:
            # Flipping back refreshes the same rows, and leaves totals that agree with them to the last digit.
            for i in range(last - 1, first - 1, -1):
                move(weights, block.nodes[i], graph, state, scratch, asked, totals)
    return taken


@dataclass(kw_only=True)
class CompiledFlipper:
    """A chain on the kept rows of a compiled problem; a step costs as much as the rows that it changes.

    Steps that flip so many nodes that they would change more rows than there are take a forward pass each, into a
    second set of rows, which takes the place of the first if the step is accepted.

    Args:
        problem: the models on their graph, the target first.
        prior_logit: [n], as `prior_logits` gives it.
        asked: bool [n, shadow models], which of them may speak about which node; without rows: all about all.
    """

    problem: Problem
    prior_logit: FloatArray
    asked: BoolArray = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    _graph: Graph = field(init=False)
    totals: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self._state, self._scratch = self.problem.new_state(), self.problem.new_scratch()

    @cached_property
    def _spare(self) -> Any:
        return self.problem.new_state()

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._graph, self.totals = self._filled(mask, self._state)

    def steps(self, block: Block) -> int:
        """Propose every set of the block in turn; return how many were accepted."""
        if changed_rows(block, self.problem.graph.start) > len(self.prior_logit):
            return self._whole_steps(block)
        kept = (self._graph, self._state, self._scratch)
        return propose_all(self.problem.weights, block, self.prior_logit, self.asked, self.totals, *kept)

    def mask(self) -> BoolArray:
        """The current configuration [n], a copy."""
        return self._graph.member.copy()

    def _filled(self, mask: BoolArray, state: Any) -> tuple[Graph, FloatArray]:
        """A forward pass into ``state``; the graph under the mask, and the totals."""
        graph, totals = arrange(self.problem.graph, mask), np.zeros(self.problem.models)
        fill_state(self.problem.weights, graph, state, self._scratch)
        add_members(graph, state, self.asked, totals)
        return graph, totals

    def _whole_steps(self, block: Block) -> int:
        taken = 0
        for nodes, bar in block.steps():
            mask, logits = self.mask(), self.prior_logit[nodes]
            change = float(np.where(mask[nodes], -logits, logits).sum()) - log_ratio(self.totals)
            mask[nodes] ^= True
            graph, totals = self._filled(mask, self._spare)
            if bar < change + log_ratio(totals):
                self._state, self._spare = self._spare, self._state
                self._graph, self.totals = graph, totals
                taken += 1
        return taken


@dataclass(kw_only=True)
class GroupFlipper:
    """The same chain over models of several shapes, each group with its own kept rows or forward passes."""

    groups: Groups
    prior_logit: FloatArray
    asked: BoolArray = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    _mask: BoolArray = field(init=False)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._mask = mask.copy()
        self.groups.begin(mask)

    def steps(self, block: Block) -> int:
        """Propose every set of the block in turn; return how many were accepted."""
        taken, value = 0, self._value()
        for nodes, bar in block.steps():
            logits = self.prior_logit[nodes]
            change = float(np.where(self._mask[nodes], -logits, logits).sum()) - value
            self.groups.flip(nodes)
            self._mask[nodes] ^= True
            proposed = self._value()
            if bar < change + proposed:
                value = proposed
                taken += 1
            else:
                self.groups.undo(nodes)
                self._mask[nodes] ^= True
        return taken

    def mask(self) -> BoolArray:
        """The current configuration [n], a copy."""
        return self._mask.copy()

    def _value(self) -> float:
        """The log ratio at the current configuration, without the prior."""
        if len(self.asked):
            return summed_ratios(self.groups.losses(), self.asked[self._mask])
        return log_ratio(self.groups.totals())
