"""Metropolis-Hastings sampling of who was a member, from the joint posterior of the paper's App. B.

A proposal flips a random set of nodes. Chains walk alone, or in step: then one forward pass of all models serves the
proposals of all chains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.compute import available_cores
from glasshouse.errors import InputError
from glasshouse.graph.models.profile import Profiled, evaluation_mode, profile_models
from glasshouse.graph.rule.engines import by_shape
from glasshouse.graph.rule.incremental.engine import default_memory, make_plan
from glasshouse.graph.rule.incremental.graph import coalesced, mask_graph
from glasshouse.graph.rule.incremental.program import LossesToSignal, changed_balls, lower, program_logits
from glasshouse.graph.rule.question import ask, check_width
from glasshouse.graph.rule.two_layers.engine import StackedModels, fill_state, stack_models, supports
from glasshouse.graph.rule.two_layers.graph import CSR, arrange, open_workers
from glasshouse.graph.rule.two_layers.kernels import kernel
from glasshouse.graph.sampling.chain_state import (
    ChainInfo,
    Groups,
    Prior,
    add_members,
    generators,
    groups_maker,
    log_ratio,
    move,
    prior_logits,
    starting_masks,
    summed_ratios,
    usable_shadows,
)
from glasshouse.progress import open_bar

_WANTED = 0.3  # the middle of the acceptance rates 0.2 to 0.4
_LARGEST = 0.5


class Block(NamedTuple):
    """Several proposals, drawn in advance; proposal i flips ``nodes[start[i]:start[i + 1]]``."""

    start: IntArray  # [steps + 1]
    nodes: IntArray
    log_uniform: FloatArray  # [steps], accepted if below the log ratio

    def steps(self) -> Iterator[tuple[IntArray, float]]:
        """The nodes of every proposal, and what its log ratio must exceed."""
        for first, last, bar in zip(self.start[:-1], self.start[1:], self.log_uniform, strict=True):
            yield self.nodes[first:last], float(bar)


def draw_block(source: np.random.Generator, candidates: IntArray, *, share: float, steps: int) -> Block:
    """Draw proposals that flip each candidate with probability ``share``, and at least one of them.

    Their size is random on purpose: a fixed even size could never reach a mask with one more member.

    Example:
        >>> draw_block(np.random.default_rng(0), np.arange(10), share=0.2, steps=3).start
        array([0, 2, 3, 4])
    """
    least = min(1, len(candidates))
    sizes = np.maximum(source.binomial(len(candidates), share, steps), least)
    sets = [source.choice(candidates, size, replace=False, shuffle=False) for size in sizes]
    return Block(
        start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        nodes=np.concatenate(sets).astype(np.int64) if sets else np.zeros(0, np.int64),
        log_uniform=np.log1p(-source.random(steps)),
    )


def changed_rows(block: Block, start: IntArray) -> float:
    """How many rows a proposal of this block changes if its flips are made one by one, on average.

    A flip changes the rows of all members within two steps. Where half of the nodes are members, that is about a
    quarter of the two-step paths of the whole graph; a node that two paths reach is counted twice.

    Args:
        block: proposals on n nodes.
        start: [n + 1], where the neighbours of each node begin in a list of all edges.

    Example:
        >>> ring = 2 * np.arange(11)
        >>> changed_rows(Block(np.array([0, 3]), np.array([0, 5, 7]), np.zeros(1)), ring)
        3.0
    """
    degree = np.diff(start).astype(np.float64)
    nodes, paths = max(len(degree), 1), float((degree**2).sum())
    return len(block.nodes) / max(len(block.log_uniform), 1) * min(paths / nodes / 4, nodes)


def tuned(share: float, acceptance_rate: float, *, smallest: float) -> float:
    """A larger share after many acceptances, a smaller one after few; between ``smallest`` and a half.

    Example:
        >>> tuned(0.1, 0.3, smallest=0.01)
        0.1
    """
    return float(np.clip(share * np.exp(2 * (acceptance_rate - _WANTED)), min(smallest, _LARGEST), _LARGEST))


@kernel
def propose_all(
    weights: Any,
    block: Block,
    prior_logit: FloatArray,
    asked: BoolArray,
    totals: FloatArray,
    graph: CSR,
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

    problem: StackedModels
    prior_logit: FloatArray
    asked: BoolArray = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    _graph: CSR = field(init=False)
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

    def _filled(self, mask: BoolArray, state: Any) -> tuple[CSR, FloatArray]:
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


MaskedLosses = Callable[[Tensor], Tensor]  # masks [chains, n] -> losses [chains, n, models]


def walk_in_step(models: Sequence[Profiled], data: Data) -> bool:
    """Whether forward passes of all chains at once are the way: for models with programs, on a GPU.

    Example:
        >>> walk_in_step([torch.nn.Linear(1, 1)], Data(x=torch.zeros(1, 1)))
        False
    """
    return bool(data.x.is_cuda) and all(model.profile.program is not None for model in models)


def masked_losses(models: Sequence[Profiled], data: Data) -> MaskedLosses:
    """A function from masks [chains, n] to losses [chains, n, models] of all nodes; only members' have a meaning.

    Example:
        >>> from glasshouse.graph.models.profile import profile_models
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = profile_models([build_gnn("gcn", features=2, hidden=4, classes=2) for _ in range(3)], pair)
        >>> masked_losses(models, pair)(torch.ones(5, 2, dtype=torch.bool)).shape
        torch.Size([5, 2, 3])
    """
    groups = [(places, _of_one_shape([models[place] for place in places], data)) for places in by_shape(models)]

    def answer(masks: Tensor) -> Tensor:
        found = torch.empty(*masks.shape, len(models), dtype=torch.float64, device=masks.device)
        for places, losses in groups:
            found[..., places] = losses(masks)
        return found

    return answer


def _of_one_shape(models: Sequence[Profiled], data: Data) -> MaskedLosses:
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))
    placed = changed_balls(lower(models, question), radius=None)
    dtype = placed[-1].operation.result.sample.dtype
    edges = coalesced(question.edge_index, question.size, dtype)
    x = question.x.to(dtype) if question.x.is_floating_point() else question.x  # whole numbers may be codes
    costs, memory = [one.cost() for one in placed], default_memory(question.x.device)
    plan = make_plan(costs, question, models=1, memory=memory)  # these are the costs of all models

    def under(masks: Tensor) -> Tensor:
        logits = program_logits(placed, x, mask_graph(edges, masks), limit=plan.temporary)
        logits = check_width(logits, question).expand(-1, len(models), -1)
        losses = LossesToSignal.of(question.labels.repeat(len(masks)), logits).kept_loss
        return losses.reshape(*masks.shape, len(models)).double()

    return lambda masks: torch.cat([under(some) for some in masks.split(plan.masks)])


@dataclass(kw_only=True)
class ChainsInStep:
    """Several chains at their current masks; everything stays on the models' device.

    Args:
        answer: losses under masks, the target's first.
        masks: where the chains are, bool [chains, n].
        prior_logit: [n]; infinite where a node is never flipped.
        asked: bool [n, shadow models], which of them may speak about which node; without rows: all about all.
    """

    answer: MaskedLosses
    masks: Tensor
    prior_logit: Tensor
    asked: Tensor

    def __post_init__(self) -> None:
        self.value = self._value(self.masks)

    @classmethod
    def begin(
        cls, answer: MaskedLosses, masks: BoolArray, *, logits: FloatArray, asked: BoolArray, on: torch.device
    ) -> ChainsInStep:
        """From arrays: masks [chains, n], logits [n], and asked [n, shadow models], or without rows."""
        begun, prior, heard = (torch.from_numpy(part).to(on) for part in (masks, logits, asked))
        return cls(answer=answer, masks=begun, prior_logit=prior, asked=heard)

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        """Take the proposals of one block per chain, side by side; how many each chain accepted."""
        device = self.masks.device
        taken = torch.zeros(len(blocks), dtype=torch.int64, device=device)
        bars = torch.from_numpy(np.stack([block.log_uniform for block in blocks])).to(device)
        for step in range(bars.shape[1]):
            sets = [block.nodes[block.start[step] : block.start[step + 1]] for block in blocks]
            chain = torch.from_numpy(np.repeat(np.arange(len(sets)), [len(nodes) for nodes in sets])).to(device)
            node = torch.from_numpy(np.concatenate(sets)).to(device)
            leaves, logit = self.masks[chain, node], self.prior_logit[node]
            change = torch.zeros_like(self.value).index_add_(0, chain, torch.where(leaves, -logit, logit))
            proposed = self.masks.clone()
            proposed[chain, node] = ~leaves
            value = self._value(proposed)
            accepts = bars[:, step] < change + value - self.value
            self.masks = torch.where(accepts[:, None], proposed, self.masks)
            self.value = torch.where(accepts, value, self.value)
            taken += accepts
        counts: IntArray = taken.cpu().numpy()
        return counts

    def _value(self, masks: Tensor) -> Tensor:
        """The log ratio of each chain at these masks, without the prior, [chains]."""
        losses = self.answer(masks)
        if len(self.asked):
            shadows = (-losses[..., 1:]).masked_fill(~self.asked, -torch.inf)
            ratios = -losses[..., 0] - shadows.logsumexp(-1) + self.asked.sum(-1).log()
            return ratios.masked_fill(~masks, 0.0).sum(-1)
        totals = losses.masked_fill(~masks[..., None], 0.0).sum(1)
        return -totals[:, 0] - (-totals[:, 1:]).logsumexp(-1) + float(np.log(totals.shape[1] - 1))


_ROUND = 50  # steps between two adjustments of the flip share


class Flipper(Protocol):
    """One chain: a configuration that can take a block of proposals."""

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""

    def steps(self, block: Block) -> int:
        """Propose every set of the block in turn; return how many were accepted."""

    def mask(self) -> BoolArray:
        """The current configuration [n], a copy."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long a chain walks before and between the configurations that are kept, and what it may flip."""

    samples: int
    burn_in: int
    thinning: int
    flip_share: float
    candidates: IntArray


def metropolis_masks(
    models: Sequence[Any],
    data: Data,
    *,
    samples: int = 8,
    burn_in: int = 2000,
    thinning: int = 200,
    flip_share: float = 0.01,
    chains: int = 1,
    prior: Prior = 0.5,
    seed: int = 0,
    asked: BoolArray | None = None,
    threads: int | None = None,
) -> tuple[BoolArray, ChainInfo]:
    """Membership configurations M from ``P*(M) = exp(-L_target(M)) / mean of exp(-L_shadow(M)) * prior(M)``.

    L is a model's loss summed over the members, on the graph that they induce. A step proposes to flip a random set of
    indicators, on average a share ε of them; ε is tuned during burn-in until between 0.2 and 0.4 of the proposals
    are accepted, and fixed afterwards. For what reduces to two layers of GCN, GraphSAGE-max or GAT a step costs as
    much as the rows that it changes, or as a forward pass if that is less; for anything else a forward pass. Models of
    several shapes answer in groups, one per shape. On a GPU all chains walk in step, with one pass for all models.

    With ``asked``, a member's loss is compared with those of its own shadow models alone: P* is then the product over
    members of ``exp(-loss_target) / mean of exp(-loss_shadow)``, times the prior. No shadow model leaves out all
    members, so there is no sum over members that is offline for each of them.

    Args:
        models: the target first, then the shadow models.
        data: the graph with ``x`` [n, features], ``edge_index`` [2, e] and ``y`` [n].
        samples: configurations wanted.
        burn_in: steps before the first one is kept, in each chain.
        thinning: steps between two kept configurations.
        flip_share: ε at the start.
        chains: independent chains that share out the samples, one per thread.
        prior: λ, one number or one per node; nodes with 0 or 1 are never flipped.
        seed: the same seed gives the same masks on any number of threads.
        asked: bool [shadow models, n], which shadow models may speak about which node; all by default.
        threads: cores to use; all by default.

    Returns:
        Masks, bool [samples, n], and how the run went.

    Example:
        >>> import torch
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn("gcn", features=2, hidden=4, classes=2) for _ in range(3)]
        >>> masks, info = metropolis_masks(models, pair, samples=5, burn_in=100, thinning=2)
        >>> masks.shape, 0 < info.acceptance_rate <= 1
        ((5, 2), True)
    """
    if len(models) < 2:
        raise InputError("models: the target and at least one shadow model are needed.")
    began = time.perf_counter()
    n, cores = int(data.num_nodes), threads or available_cores()
    logits, shadows = prior_logits(prior, n), len(models) - 1
    heard = np.zeros((0, shadows), np.bool_) if asked is None else usable_shadows(asked, n=n, shadows=shadows)
    sources = generators(seed, chains)
    masks = starting_masks(prior, n, sources)
    schedule = Schedule(
        samples=-(-samples // chains),
        burn_in=burn_in,
        thinning=thinning,
        flip_share=flip_share,
        candidates=np.flatnonzero(np.isfinite(logits)),
    )
    models = profile_models(models, data)
    kept = np.zeros((schedule.samples, chains, n), np.bool_)
    taken, shares = np.zeros(chains, np.int64), np.zeros(chains)
    steps = chains * (burn_in + schedule.samples * thinning)
    # Evaluation mode is set here, once: a thread that ends it would switch dropout on for the others.
    with evaluation_mode(models), open_bar(total=steps, label="Metropolis-Hastings chains", unit="steps") as done:
        if walk_in_step(models, data):
            crowd = ChainsInStep.begin(masked_losses(models, data), masks, logits=logits, asked=heard, on=data.x.device)
            taken, shares = run_in_step(crowd, schedule, sources, kept, done)
        else:
            new_flipper, side_by_side = _flipper_maker(models, data, logits, heard, threads=cores)

            def run(flipper: Flipper, chain: int) -> None:
                flipper.begin(masks[chain])
                taken[chain], shares[chain] = run_chain(flipper, schedule, sources[chain], kept[:, chain], done)

            with open_workers(min(cores, chains) if side_by_side else 1, new_flipper) as workers:
                workers.each(run, range(chains))
    info = ChainInfo(
        acceptance_rate=float(taken.sum() / max(chains * schedule.samples * thinning, 1)),
        flip_share=float(shares.mean()),
        seconds=time.perf_counter() - began,
    )
    return kept.reshape(-1, n)[:samples], info


def _flipper_maker(
    models: Sequence[Any], data: Data, logits: FloatArray, asked: BoolArray, *, threads: int
) -> tuple[Callable[[], Flipper], bool]:
    """A function that makes a chain's flipper, and whether several may run side by side."""
    if supports(models, data):
        problem = stack_models(models, data, threads=threads)
        return lambda: CompiledFlipper(problem=problem, prior_logit=logits, asked=asked), True
    new_groups, side_by_side = groups_maker(models, data, threads=threads)
    return lambda: GroupFlipper(groups=new_groups(), prior_logit=logits, asked=asked), side_by_side


def run_chain(
    flipper: Flipper, schedule: Schedule, source: np.random.Generator, kept: BoolArray, done: Callable[[int], None]
) -> tuple[int, float]:
    """Burn in, then fill ``kept`` [samples, n]; return how many proposals were accepted then, and the tuned share."""
    share, candidates = schedule.flip_share, schedule.candidates
    for first in range(0, schedule.burn_in, _ROUND):
        steps = min(_ROUND, schedule.burn_in - first)
        taken = flipper.steps(draw_block(source, candidates, share=share, steps=steps))
        share = tuned(share, taken / steps, smallest=1 / max(len(candidates), 1))
        done(steps)
    total = 0
    for sample in range(len(kept)):
        total += flipper.steps(draw_block(source, candidates, share=share, steps=schedule.thinning))
        kept[sample] = flipper.mask()
        done(schedule.thinning)
    return total, share


def run_in_step(
    crowd: ChainsInStep,
    schedule: Schedule,
    sources: Sequence[np.random.Generator],
    kept: BoolArray,
    done: Callable[[int], None],
) -> tuple[IntArray, FloatArray]:
    """`run_chain` for all chains at once, with the same random numbers; ``kept`` is [samples, chains, n]."""
    candidates = schedule.candidates
    shares = np.full(len(sources), schedule.flip_share)

    def walk(steps: int) -> IntArray:
        blocks = [
            draw_block(source, candidates, share=share, steps=steps)
            for source, share in zip(sources, shares, strict=True)
        ]
        done(steps * len(blocks))
        return crowd.steps(blocks)

    for first in range(0, schedule.burn_in, _ROUND):
        steps = min(_ROUND, schedule.burn_in - first)
        rates, smallest = walk(steps) / steps, 1 / max(len(candidates), 1)
        shares = np.array([tuned(share, rate, smallest=smallest) for share, rate in zip(shares, rates, strict=True)])
    taken = np.zeros(len(sources), np.int64)
    for masks in kept:
        taken += walk(schedule.thinning)
        masks[:] = crowd.masks.cpu().numpy()
    return taken, shares
