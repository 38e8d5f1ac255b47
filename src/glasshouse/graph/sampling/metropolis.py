"""Metropolis-Hastings sampling of who was a member, from the joint posterior of the paper's App. B.

A proposal flips a random set of nodes. Chains walk alone, or in step: then one forward pass of all models serves the
proposals of all chains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.compute import available_cores
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.progress import open_bar
from glasshouse.graph.models.profile import Profiled, evaluation_mode
from glasshouse.graph.rule.engines import by_shape
from glasshouse.graph.rule.incremental.engine import default_memory, make_plan
from glasshouse.graph.rule.incremental.graph import coalesced, mask_graph
from glasshouse.graph.rule.incremental.program import LossesToSignal, changed_balls, lower, program_logits
from glasshouse.graph.rule.question import check_width
from glasshouse.graph.rule.two_layers.graph import CSR, open_workers
from glasshouse.graph.rule.two_layers.kernels import kernel
from glasshouse.graph.sampling.chain_state import (
    Chain,
    ChainInfo,
    ChainStart,
    CompiledGroup,
    chain_maker,
    flip_one,
    whole_question,
)
from glasshouse.graph.sampling.posterior import Prior, log_odds, log_ratio

_WANTED = 0.3  # the middle of the acceptance rates 0.2 to 0.4
_LARGEST = 0.5


class Block(NamedTuple):
    """Several proposals, drawn in advance."""

    nodes: IntArray  # that the proposals flip, one set after the other
    ends: IntArray  # [steps], of each set
    log_uniform: FloatArray  # [steps], accepted if below the log ratio

    @property
    def flips(self) -> list[IntArray]:
        """The nodes that each proposal flips."""
        return np.split(self.nodes, self.ends)[:-1]


def draw_block(source: np.random.Generator, candidates: IntArray, *, share: float, steps: int) -> Block:
    """Draw proposals that flip each candidate with probability ``share``, and at least one of them.

    Their size is random on purpose: a fixed even size could never reach a mask with one more member.
    """
    least = min(1, len(candidates))
    sizes = np.maximum(source.binomial(len(candidates), share, steps), least)
    sets = [source.choice(candidates, size, replace=False, shuffle=False) for size in sizes]
    return Block(np.concatenate([candidates[:0], *sets]), np.cumsum(sizes), np.log1p(-source.random(steps)))


def tuned(share: float, acceptance_rate: float, *, smallest: float) -> float:
    """A larger share after many acceptances, a smaller one after few; between ``smallest`` and a half."""
    return float(np.clip(share * np.exp(2 * (acceptance_rate - _WANTED)), min(smallest, _LARGEST), _LARGEST))


class Walker(Protocol):
    """One or several chains that take blocks of proposals."""

    @property
    def masks(self) -> BoolArray:
        """The current configurations, bool [chains, n]."""

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        """Take the proposals of one block per chain in turn; how many each chain accepted, [chains]."""


@kernel
def propose_all(
    weights: Any,
    block: Block,
    prior_logit: FloatArray,
    every: BoolArray,  # [shadow models], all True
    graph: CSR,
    state: Any,
    scratch: Any,
    usable: BoolArray,
    totals: FloatArray,
) -> int:
    """The loop of `OneChain.steps` for models of one shape whose rows are kept; how many proposals were accepted."""
    taken, first, value = 0, 0, log_ratio(totals, every)
    for bar, end in zip(block.log_uniform, block.ends):  # noqa: B905 - numba knows no strict
        change = -value
        for i in range(first, end):
            v = block.nodes[i]
            change += -prior_logit[v] if graph.member[v] else prior_logit[v]
            flip_one(weights, v, graph, state, scratch, usable, totals)
        proposed = log_ratio(totals, every)
        if bar < change + proposed:
            value = proposed
            taken += 1
        else:
            for i in range(end - 1, first - 1, -1):
                flip_one(weights, block.nodes[i], graph, state, scratch, usable, totals)
        first = end
    return taken


@dataclass(frozen=True, kw_only=True)
class OneChain:
    """A chain that walks alone, on kept rows or with forward passes."""

    chain: Chain
    prior_logit: FloatArray  # [n]; infinite where a node is never flipped

    @property
    def masks(self) -> BoolArray:
        """The current configuration, bool [1, n]."""
        return self.chain.mask[None]

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        """Take the proposals of the one block in turn; how many were accepted, [1]."""
        (block,), chain = blocks, self.chain
        _, group = chain.groups[0]
        flips = int(np.diff(block.ends, prepend=0).max(initial=0))
        if len(chain.groups) == 1 and isinstance(group, CompiledGroup) and not group.passes(flips):
            every, kept = np.ones(group.stacked.models - 1, np.bool_), (group.graph, group.state, group.scratch)
            given = (block, self.prior_logit, every, *kept, group.usable, group.totals)
            taken = propose_all(group.stacked.weights, *given)
            chain.mask = group.graph.member.copy()
            return np.array([taken])
        taken, value = 0, chain.log_ratio()
        for nodes, bar in zip(block.flips, block.log_uniform, strict=True):
            logits = self.prior_logit[nodes]
            change = float(np.where(chain.mask[nodes], -logits, logits).sum()) - value
            chain.flip(nodes)
            proposed = chain.log_ratio()
            if bar < change + proposed:
                value = proposed
                taken += 1
            else:
                chain.undo(nodes)
        return np.array([taken])


MaskedLosses = Callable[[Tensor], Tensor]  # masks [chains, n] -> losses [chains, n, models]


def walk_in_step(models: Sequence[Profiled], data: Data) -> bool:
    """Whether forward passes of all chains at once are the way: for models with programs, on a GPU."""
    return bool(data.x.is_cuda) and all(model.profile.program is not None for model in models)


def masked_losses(models: Sequence[Profiled], data: Data) -> MaskedLosses:
    """A function from masks [chains, n] to losses [chains, n, models] of all nodes; only members' have a meaning."""
    groups = [(places, _of_one_shape([models[place] for place in places], data)) for places in by_shape(models)]

    def answer(masks: Tensor) -> Tensor:
        found = torch.empty(*masks.shape, len(models), dtype=torch.float64, device=masks.device)
        for places, losses in groups:
            found[..., places] = losses(masks)
        return found

    return answer


def _of_one_shape(models: Sequence[Profiled], data: Data) -> MaskedLosses:
    question = whole_question(data)
    placed = changed_balls(lower(models, question), radius=None)
    dtype = placed[-1].operation.result.sample.dtype
    edges = coalesced(question.edge_index, question.size, dtype)
    costs = [one.cost() for one in placed]  # of all models
    plan = make_plan(costs, question, models=1, memory=default_memory(question.x.device))

    def under(masks: Tensor) -> Tensor:
        logits = program_logits(placed, question.x, mask_graph(edges, masks), limit=plan.temporary)
        logits = check_width(logits, question).expand(-1, len(models), -1)
        losses = LossesToSignal.of(question.labels.repeat(len(masks)), logits).kept_loss
        return losses.reshape(*masks.shape, len(models)).double()

    return lambda masks: torch.cat([under(some) for some in masks.split(plan.masks)])


class ChainsInStep:
    """Several chains at their current masks; everything stays on the device of the models and the graph."""

    def __init__(self, start: ChainStart) -> None:
        self._answer = masked_losses(start.models, start.data)
        self._masks, self._prior_logit, usable = (
            torch.from_numpy(part).to(start.data.x.device) for part in (start.masks, start.prior_logit, start.usable)
        )
        self._usable = usable.T[:, None] if len(usable) else None  # [shadow models, 1, n]
        self._value = self._log_ratios(self._masks)

    @property
    def masks(self) -> BoolArray:
        """The current configurations, bool [chains, n]."""
        return np.asarray(self._masks.cpu().numpy())

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        """Take the proposals of one block per chain, side by side; how many each chain accepted."""
        device = self._masks.device
        taken = torch.zeros(len(blocks), dtype=torch.int64, device=device)
        bars = torch.from_numpy(np.stack([block.log_uniform for block in blocks])).to(device)
        for step, sets in enumerate(zip(*(block.flips for block in blocks), strict=True)):
            chain = torch.from_numpy(np.repeat(np.arange(len(sets)), [len(nodes) for nodes in sets])).to(device)
            node = torch.from_numpy(np.concatenate(sets)).to(device)
            leaves, logit = self._masks[chain, node], self._prior_logit[node]
            change = torch.zeros_like(self._value).index_add_(0, chain, torch.where(leaves, -logit, logit))
            proposed = self._masks.clone()
            proposed[chain, node] = ~leaves
            value = self._log_ratios(proposed)
            accepts = bars[:, step] < change + value - self._value
            self._masks = torch.where(accepts[:, None], proposed, self._masks)
            self._value = torch.where(accepts, value, self._value)
            taken += accepts
        return np.asarray(taken.cpu().numpy())

    def _log_ratios(self, masks: Tensor) -> Tensor:
        """Those of `Chain.log_ratio` for each chain at these masks, [chains]."""
        losses = self._answer(masks).movedim(-1, 0)  # [models, chains, n]
        if self._usable is not None:
            return log_odds(losses[0], losses[1:], self._usable).masked_fill(~masks, 0.0).sum(-1)
        totals = losses.masked_fill(~masks, 0.0).sum(-1)
        return log_odds(totals[0], totals[1:])


_ROUND = 50  # steps between two adjustments of the flip share


def metropolis_masks(
    models: Sequence[Any],  # the target first, then the shadow models
    data: Data,
    *,
    samples: int = 8,  # configurations wanted
    burn_in: int = 2000,  # steps before the first one is kept, in each chain
    thinning: int = 200,  # steps between two kept configurations
    flip_share: float = 0.01,  # ε at the start
    chains: int = 1,  # independent ones that share out the samples, one per thread
    prior: Prior = 0.5,  # λ, one number or one per node; nodes with 0 or 1 are never flipped
    seed: int = 0,  # the same seed gives the same masks on any number of threads
    usable_shadows: BoolArray | None = None,  # [shadow models, n], by which of them each node is judged; all by default
    threads: int | None = None,  # cores to use; all by default
) -> tuple[BoolArray, ChainInfo]:
    """Membership configurations M from ``P*(M) = exp(-L_target(M)) / mean of exp(-L_shadow(M)) * prior(M)``.

    L is a model's loss summed over the members, on the graph that they induce. A step proposes to flip a random set of
    indicators, on average a share ε of them; ε is tuned during burn-in until between 0.2 and 0.4 of the proposals
    are accepted, and fixed afterwards. For what reduces to two layers of GCN, GraphSAGE-max or GAT a step costs as
    much as the rows that it changes, or as a forward pass if that is less; for anything else a forward pass. Models of
    several shapes answer in groups, one per shape. On a GPU all chains walk in step, with one pass for all models.

    With ``usable_shadows``, a member's loss is compared with those of its own shadow models alone: P* is then the
    product over members of ``exp(-loss_target) / mean of exp(-loss_shadow)``, times the prior. No shadow model
    leaves out all members, so there is no sum over members that is offline for each of them.

    Returns:
        Masks, bool [samples, n], and how the run went.
    """
    began = time.perf_counter()
    n, cores, each = int(data.num_nodes), threads or available_cores(), -(-samples // chains)
    start = ChainStart.of(models, data, prior, usable=usable_shadows, chains=chains, seed=seed)
    candidates = np.flatnonzero(np.isfinite(start.prior_logit))
    walked = partial(run_chains, burn_in=burn_in, thinning=thinning, flip_share=flip_share, candidates=candidates)
    kept = np.zeros((each, chains, n), np.bool_)
    taken, shares = np.zeros(chains, np.int64), np.zeros(chains)
    steps = chains * (burn_in + each * thinning)
    # Evaluation mode is set here, once: a thread that ends it would switch dropout on for the others.
    with evaluation_mode(start.models), open_bar(total=steps, label="Metropolis-Hastings chains", unit="steps") as done:
        if walk_in_step(start.models, start.data):
            taken, shares = walked(ChainsInStep(start), start.sources, kept, done)
        else:
            new_chain, side_by_side = chain_maker(start.models, start.data, start.usable, threads=cores)

            def run(chain: Chain, number: int) -> None:
                chain.begin(start.masks[number])
                alone, own = OneChain(chain=chain, prior_logit=start.prior_logit), slice(number, number + 1)
                taken[own], shares[own] = walked(alone, start.sources[own], kept[:, own], done)

            with open_workers(min(cores, chains) if side_by_side else 1, new_chain) as workers:
                workers.each(run, range(chains))
    info = ChainInfo(
        acceptance_rate=float(taken.sum() / max(chains * each * thinning, 1)),
        flip_share=float(shares.mean()),
        seconds=time.perf_counter() - began,
    )
    return kept.reshape(-1, n)[:samples], info


def run_chains(
    walker: Walker,
    sources: Sequence[np.random.Generator],
    kept: BoolArray,
    done: Callable[[int], None],
    *,
    burn_in: int,
    thinning: int,
    flip_share: float,
    candidates: IntArray,  # that may be flipped
) -> tuple[IntArray, FloatArray]:
    """Burn in, then fill ``kept`` [samples, chains, n]; each chain's accepted proposals after that, and tuned share."""
    shares = np.full(len(sources), flip_share)

    def walk(steps: int) -> IntArray:
        pairs = zip(sources, shares, strict=True)
        blocks = [draw_block(source, candidates, share=share, steps=steps) for source, share in pairs]
        done(steps * len(blocks))
        return walker.steps(blocks)

    for first in range(0, burn_in, _ROUND):
        steps = min(_ROUND, burn_in - first)
        rates, smallest = walk(steps) / steps, 1 / max(len(candidates), 1)
        shares = np.array([tuned(share, rate, smallest=smallest) for share, rate in zip(shares, rates, strict=True)])
    taken = np.zeros(len(sources), np.int64)
    for masks in kept:
        taken += walk(thinning)
        masks[:] = walker.masks
    return taken, shares
