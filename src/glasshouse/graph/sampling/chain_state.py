"""What the Markov chains share: their models at one configuration, which flips change, and what a run reports.

Models of several shapes are one group per shape, and their answers are joined in the models' order.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.graph.models.networks import model_device
from glasshouse.graph.models.profile import Profiled, evaluation_mode, profile_models, raw_models
from glasshouse.graph.models.tensor_cache import Memory
from glasshouse.graph.rule.engines import by_shape
from glasshouse.graph.rule.question import Question, ask, node_losses
from glasshouse.graph.rule.reference import induced_losses
from glasshouse.graph.rule.toggling import answer_question
from glasshouse.graph.rule.two_layers.engine import (
    StackedModels,
    commit,
    extra_hops,
    fill_state,
    stack_models,
    supports,
    toggle_all,
)
from glasshouse.graph.rule.two_layers.graph import CSR, arrange, find_two_hops, grow
from glasshouse.graph.rule.two_layers.kernels import inner_kernel, kernel
from glasshouse.graph.sampling.posterior import Prior, log_odds, log_ratio, prior_logits

NO_ROWS = np.zeros((0, 0), np.bool_)


@dataclass(frozen=True, kw_only=True)
class ChainInfo:
    """How a run of Markov chains went."""

    acceptance_rate: float  # share of proposals accepted (after burn-in). A Gibbs draw is always accepted: 1
    flip_share: float  # of indicators that a proposal flips, tuned, mean over chains; Gibbs: of visits that flipped one
    seconds: float  # of wall-clock time


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainStart:
    """What a run of chains begins with, checked; graph and models are on one device."""

    models: list[Profiled]  # the target first
    data: Data
    prior_logit: FloatArray  # [n]; infinite where a node is never flipped
    usable: BoolArray  # [n, shadow models], which of them each node is judged by; without rows: all by all
    sources: list[np.random.Generator]  # one per chain
    masks: BoolArray  # [chains, n] drawn from the prior

    @classmethod
    def of(
        cls,
        models: Sequence[Any],
        data: Data,
        prior: Prior,
        *,
        usable: BoolArray | None,
        chains: int,
        seed: int,
        on_cpu: bool = False,
    ) -> ChainStart:
        """From the arguments of `gibbs_masks` and `metropolis_masks`; all is brought to the models or the CPU."""
        if len(models) < 2:
            raise InputError("models: the target and at least one shadow model are needed.")
        n = int(data.num_nodes)
        logits, used = prior_logits(prior, n), NO_ROWS
        if usable is not None:
            given = np.asarray(usable)
            # numbers are refused: "not 1" is a number too, and true
            if given.dtype != np.bool_ or given.shape != (len(models) - 1, n) or not given.any(axis=0).all():
                raise InputError(
                    f"usable_shadows: each of {n} nodes needs a shadow model that it can be judged by. "
                    f"Pass bool [models, {n}]."
                )
            used = np.ascontiguousarray(given.T)
        sources, profiled = generators(seed, chains), profile_models(models, data)
        device = None if on_cpu else model_device(raw_models(models))
        return cls(
            models=[_on_cpu(one) for one in profiled] if on_cpu else profiled,
            data=copy.copy(data).to(str(device or "cpu")),
            prior_logit=logits,
            usable=used,
            sources=sources,
            masks=starting_masks(prior, n, sources),
        )


def _on_cpu(one: Profiled) -> Profiled:
    """A module on another device is copied; black boxes stay as they are."""
    device = model_device([one.model])
    if device is None or device.type == "cpu":
        return one
    return Profiled(copy.deepcopy(cast("nn.Module", one.model)).cpu(), one.profile)


def generators(seed: int, chains: int) -> list[np.random.Generator]:
    """One generator per chain, so that a chain does not depend on the number of threads."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]


def starting_masks(prior: Prior, n: int, sources: list[np.random.Generator]) -> BoolArray:
    """Where chains begin, bool [chains, n]: draws from the prior."""
    share = np.broadcast_to(np.asarray(prior, dtype=np.float64), (n,))
    return np.stack([source.random(n) < share for source in sources])


def whole_question(data: Data) -> Question:
    """The question about a graph of which every node is a member, without target nodes."""
    return ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))


ForwardLosses = Callable[[BoolArray], FloatArray]  # mask [n] -> losses [models, n]


def forward_losses(models: Sequence[Profiled], data: Data) -> ForwardLosses:
    """A function from a mask [n] to the losses [models, n] of any models; only members' have a meaning."""
    question = whole_question(data)

    def losses_under(mask: BoolArray) -> FloatArray:
        members = torch.from_numpy(mask).to(question.edge_index.device)
        graph = question.graph(members[question.edge_index].all(0))
        with evaluation_mode(models):
            found = [
                induced_losses(model, question, members)
                if model.profile.everywhere
                else node_losses(model.logits(graph), question.labels)
                for model in models
            ]
        return torch.stack(found).cpu().numpy()

    return losses_under


@inner_kernel
def _add(u: int, sign: int, state: Any, usable: BoolArray, totals: FloatArray) -> None:
    """Add (or take away) the losses of member u; where ``usable`` has rows, its own ratio, with its sign turned."""
    if len(usable) > 0:
        totals[0] -= sign * log_ratio(state.loss[u], usable[u])
    else:
        for m in range(len(totals)):
            totals[m] += sign * state.loss[u, m]


@kernel
def _add_members(graph: CSR, state: Any, usable: BoolArray, totals: FloatArray) -> None:
    for u in range(len(graph.member)):
        if graph.member[u]:
            _add(u, 1, state, usable, totals)


@inner_kernel
def _add_around(v: int, sign: int, graph: CSR, state: Any, reach: Any, usable: BoolArray, totals: FloatArray) -> None:
    if graph.member[v]:
        _add(v, sign, state, usable, totals)
    for i in range(reach.size[2]):
        _add(reach.nodes[i], sign, state, usable, totals)


@inner_kernel
def flip_one(weights: Any, v: int, graph: CSR, state: Any, scratch: Any, usable: BoolArray, totals: FloatArray) -> None:
    """Flip node v, and keep ``totals`` up to date (see `CompiledGroup`)."""
    reach = scratch.reach
    find_two_hops(v, graph, reach)
    if extra_hops(weights):
        grow(2, graph, reach)
    _add_around(v, -1, graph, state, reach, usable, totals)
    commit(weights, v, graph, state, scratch)
    # The list is still there after its release; only the slots were cleared.
    _add_around(v, 1, graph, state, reach, usable, totals)


@kernel
def flip_all(
    weights: Any, nodes: IntArray, graph: CSR, state: Any, scratch: Any, usable: BoolArray, totals: FloatArray
) -> None:
    """Flip these nodes in turn."""
    for v in nodes:
        flip_one(weights, v, graph, state, scratch, usable, totals)


_FIRST = np.zeros(1, np.int64)


@dataclass(kw_only=True)
class CompiledGroup:
    """Models of one shape whose rows are kept: a flip costs as much as the rows that it changes.

    Flips of so many nodes that they would change more rows than there are take a forward pass, into a second set of
    rows; the first is still there to undo them.

    ``totals`` are losses summed over the members, [models]; if ``usable`` has rows, the members' summed `log_ratio`
    with its sign turned, and then zeros: `log_ratio` of the totals is in both cases that of the configuration.
    """

    stacked: StackedModels
    usable: BoolArray  # [n, shadow models], if the group has all models of the chain; without rows otherwise, or online
    graph: CSR = field(init=False)
    totals: FloatArray = field(init=False)
    _before: tuple[CSR, Any, FloatArray] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.state, self.scratch = self.stacked.new_state(), self.stacked.new_scratch()
        self._spare: Any = None
        self._signal = np.zeros((self.stacked.models, 1))
        degree = np.diff(self.stacked.graph.start).astype(np.float64)
        # Where half of the nodes are members, about a quarter of the two-step paths of the whole graph lead to rows
        # that a flip changes; a node that two paths reach is counted twice.
        nodes = max(len(degree), 1)
        self._rows_per_flip = min(float((degree**2).sum()) / nodes / 4, nodes)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]: a forward pass."""
        self.graph, self.totals = arrange(self.stacked.graph, mask), np.zeros(self.stacked.models)
        fill_state(self.stacked.weights, self.graph, self.state, self.scratch)
        _add_members(self.graph, self.state, self.usable, self.totals)

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models]."""
        rows = (self.graph, self.state, self._signal, self.scratch)
        toggle_all(self.stacked.weights, False, np.array([v]), *rows, _FIRST)
        return self._signal[:, 0]

    def passes(self, flips: int) -> bool:
        """Whether so many flips take a forward pass."""
        return flips * self._rows_per_flip > len(self.graph.member)

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        self._before = None
        if self.passes(len(nodes)):
            self._before = self.graph, self.state, self.totals
            self.state = self.stacked.new_state() if self._spare is None else self._spare
            mask = self.graph.member.copy()
            mask[nodes] ^= True
            self.begin(mask)
            self._spare = self._before[1]
            return
        rows = (self.graph, self.state, self.scratch)
        flip_all(self.stacked.weights, nodes, *rows, self.usable, self.totals)

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip; the same rows are refreshed, and the totals agree with them to the last digit."""
        if self._before is None:
            self.flip(nodes[::-1].copy())
        else:
            self._spare = self.state
            self.graph, self.state, self.totals = self._before

    def losses(self) -> FloatArray:
        """Losses of the members, [models, members]."""
        return np.asarray(self.state.loss[self.graph.member].T)


@dataclass(kw_only=True)
class ForwardGroup:
    """Models of one shape without kernels: an engine answers for one node, a forward pass for a configuration."""

    models: Sequence[Profiled]
    data: Data
    _memory: Memory = field(init=False, default_factory=Memory)
    _mask: BoolArray = field(init=False)
    _losses: FloatArray | None = field(init=False, default=None)
    _before: FloatArray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._forward, self._question = forward_losses(self.models, self.data), whole_question(self.data)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._mask, self._losses = mask.copy(), None

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models]."""
        device = self._question.masks.device
        masks, nodes = torch.from_numpy(self._mask)[None].to(device), torch.tensor([v], device=device)
        with self._memory.open():
            found = answer_question(self.models, replace(self._question, masks=masks, nodes=nodes)).signal
        return np.asarray(found[:, 0, 0].cpu().numpy())

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        self._mask[nodes] ^= True
        self._before, self._losses = self._losses, None

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip, which was of these nodes."""
        self._mask[nodes] ^= True
        self._losses = self._before

    @property
    def totals(self) -> FloatArray:
        """Losses summed over the members, [models]."""
        return np.asarray(self.losses().sum(axis=1))

    def losses(self) -> FloatArray:
        """Losses of the members, [models, members]."""
        if self._losses is None:
            self._losses = self._forward(self._mask)[:, self._mask]
        return self._losses


@dataclass(kw_only=True)
class Chain:
    """All models of a chain at one configuration, in groups of one shape."""

    groups: Sequence[tuple[IntArray, CompiledGroup | ForwardGroup]]  # with the places of its models; the target is 0
    usable: BoolArray  # [n, shadow models]; without rows if each node is judged by all, or if the only group has it
    mask: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self._models = sum(len(places) for places, _ in self.groups)
        self._all = np.ones(self._models - 1, np.bool_)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self.mask = mask.copy()
        for _, group in self.groups:
            group.begin(mask)

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models]."""
        joined = np.empty(self._models)
        for places, group in self.groups:
            joined[places] = group.signal(v)
        return joined

    def flip(self, nodes: IntArray) -> None:
        """Flip the membership of each of these nodes."""
        self.mask[nodes] ^= True
        for _, group in self.groups:
            group.flip(nodes)

    def undo(self, nodes: IntArray) -> None:
        """Undo the last flip, which was of these nodes."""
        self.mask[nodes] ^= True
        for _, group in self.groups:
            group.undo(nodes)

    def log_ratio(self) -> float:
        """Log of ``exp(-L_target) / mean of exp(-L_shadow)``, L summed over members; or this of each member, summed."""
        if len(self.usable):
            losses = np.empty((self._models, int(self.mask.sum())))
            for places, group in self.groups:
                losses[places] = group.losses()
            return float(log_odds(losses[0], losses[1:], self.usable[self.mask].T).sum())
        totals = np.empty(self._models)
        for places, group in self.groups:
            totals[places] = group.totals
        return log_ratio(totals, self._all)


def chain_maker(
    models: Sequence[Profiled], data: Data, usable: BoolArray, *, threads: int
) -> tuple[Callable[[], Chain], bool]:
    """A function that makes a chain for one thread, and whether threads may run side by side.

    The target is the first model; ``usable`` is [n, shadow models] or has no rows. Threads share the stacked weights.
    If a group has no kernels, there is only one thread: a user's own model may not work when two threads call it at
    once.
    """
    whole = supports(models, data)  # also modules that are written differently
    makers: list[tuple[IntArray, partial[CompiledGroup] | partial[ForwardGroup]]] = []
    for places in [list(range(len(models)))] if whole else by_shape(models):
        group = [models[place] for place in places]
        maker: partial[CompiledGroup] | partial[ForwardGroup] = partial(ForwardGroup, models=group, data=data)
        if whole or supports(group, data):
            stacked = stack_models(group, data, threads=threads)
            maker = partial(CompiledGroup, stacked=stacked, usable=usable if whole else NO_ROWS)
        makers.append((np.array(places), maker))
    side_by_side = all(maker.func is CompiledGroup for _, maker in makers)
    rest = NO_ROWS if whole else usable
    return lambda: Chain(groups=[(places, make()) for places, make in makers], usable=rest), side_by_side
