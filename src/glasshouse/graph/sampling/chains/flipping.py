"""One Metropolis-Hastings chain: propose, compare, keep or undo."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph.rule.jit import kernel
from glasshouse.graph.rule.toggle.compiled.commit import fill_state, move
from glasshouse.graph.rule.toggle.compiled.plan import Graph, arrange
from glasshouse.graph.rule.toggle.compiled.problem import Problem
from glasshouse.graph.sampling.chains.groups import Groups
from glasshouse.graph.sampling.chains.posterior import log_ratio
from glasshouse.graph.sampling.chains.proposal import Block

__all__ = ["CompiledFlipper", "GroupFlipper"]


@kernel
def propose_all(
    weights: Any, block: Block, prior_logit: FloatArray, totals: FloatArray, graph: Graph, state: Any, scratch: Any
) -> int:
    """Accept or undo each proposal; ``totals`` [K] are the members' summed losses. Returns how many were accepted."""
    taken = 0
    for step in range(len(block.log_uniform)):
        first, last = block.start[step], block.start[step + 1]
        change = -log_ratio(totals)
        for i in range(first, last):
            v = block.nodes[i]
            change += -prior_logit[v] if graph.member[v] else prior_logit[v]
            move(weights, v, graph, state, scratch, totals)
        change += log_ratio(totals)
        if block.log_uniform[step] < change:
            taken += 1
        else:
            # Flipping back refreshes the same rows, and leaves totals that agree with them to the last digit.
            for i in range(last - 1, first - 1, -1):
                move(weights, block.nodes[i], graph, state, scratch, totals)
    return taken


@dataclass(kw_only=True)
class CompiledFlipper:
    """A chain on the kept rows of a compiled problem; a step costs as much as the rows that it changes."""

    problem: Problem
    prior_logit: FloatArray
    _graph: Graph = field(init=False)
    totals: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self._state, self._scratch = self.problem.new_state(), self.problem.new_scratch()

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._graph = arrange(self.problem.graph, mask)
        fill_state(self.problem.weights, self._graph, self._state, self._scratch)
        self.totals = self._state.loss[self._graph.member].sum(axis=0)

    def steps(self, block: Block) -> int:
        """Propose every set of the block in turn; return how many were accepted."""
        kept = (self._graph, self._state, self._scratch)
        return propose_all(self.problem.weights, block, self.prior_logit, self.totals, *kept)

    def mask(self) -> BoolArray:
        """The current configuration [n], a copy."""
        return self._graph.member.copy()


@dataclass(kw_only=True)
class GroupFlipper:
    """The same chain over models of several shapes, each group with its own kept rows or forward passes."""

    groups: Groups
    prior_logit: FloatArray
    _mask: BoolArray = field(init=False)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._mask = mask.copy()
        self.groups.begin(mask)

    def steps(self, block: Block) -> int:
        """Propose every set of the block in turn; return how many were accepted."""
        taken, value = 0, log_ratio(self.groups.totals())
        for first, last, bar in zip(block.start[:-1], block.start[1:], block.log_uniform, strict=True):
            nodes = block.nodes[first:last]
            logits = self.prior_logit[nodes]
            self.groups.flip(nodes)
            proposed = log_ratio(self.groups.totals())
            if bar < proposed - value + float(np.where(self._mask[nodes], -logits, logits).sum()):
                self._mask[nodes] ^= True
                value = proposed
                taken += 1
            else:
                self.groups.undo(nodes)
        return taken

    def mask(self) -> BoolArray:
        """The current configuration [n], a copy."""
        return self._mask.copy()
