"""What the Markov chains share: the state of their models, the posterior's log ratio, and what a run reports.

Models of several shapes are one group per shape, and their answers are joined in the models' order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.errors import InputError
from glasshouse.graph.models.profile import Profiled, evaluation_mode, profile_models
from glasshouse.graph.models.tensor_cache import Memory
from glasshouse.graph.rule.engines import by_shape
from glasshouse.graph.rule.question import Question, ask
from glasshouse.graph.rule.reference import induced_losses
from glasshouse.graph.rule.toggling import answer_question
from glasshouse.graph.rule.two_layers.engine import (
    STAGES,
    StackedModels,
    commit,
    extra_hops,
    fill_rows,
    stack_models,
    supports,
    toggle_all,
)
from glasshouse.graph.rule.two_layers.graph import CSR, arrange, find_two_hops, grow
from glasshouse.graph.rule.two_layers.kernels import inner_kernel, kernel
from glasshouse.losses import tensor_losses


@kernel
def log_ratio(losses: FloatArray) -> float:
    """-losses[0] - log of the mean of exp(-losses[k]) over the shadow models k >= 1; losses [1 + K].

    Example:
        >>> log_ratio(np.array([1.0, 2.0, 2.0]))
        1.0
    """
    shadows = len(losses) - 1
    lowest = losses[1]
    for k in range(2, shadows + 1):
        lowest = min(lowest, losses[k])
    total = 0.0
    for k in range(1, shadows + 1):
        total += np.exp(lowest - losses[k])
    return float(lowest - losses[0] - np.log(total / shadows))


@kernel
def asked_ratio(losses: FloatArray, asked: BoolArray) -> float:
    """The same of the shadow models k with ``asked`` [K] alone; losses [1 + K] of the target and of all of them.

    Example:
        >>> asked_ratio(np.array([1.0, 2.0, 9.0]), np.array([True, False]))
        1.0
    """
    lowest = np.inf
    count = 0
    for k in range(len(asked)):
        if asked[k]:
            lowest = min(lowest, losses[k + 1])
            count += 1
    total = 0.0
    for k in range(len(asked)):
        if asked[k]:
            total += np.exp(lowest - losses[k + 1])
    return float(lowest - losses[0] - np.log(total / count))


@kernel
def membership_probability(signal: FloatArray, prior_logit: float, asked: BoolArray) -> float:
    """The conditional of one indicator given all others, from S of the target and of the shadow models [1 + K].

    ``asked`` [K] marks the shadow models that are used: all of them online, those not trained on the node offline.

    Example:
        >>> membership_probability(np.array([0.7, 0.7, 9.0]), 0.0, np.array([True, False]))
        0.5
    """
    return float(1.0 / (1.0 + np.exp(-asked_ratio(signal, asked) - prior_logit)))


def summed_ratios(losses: FloatArray, asked: BoolArray) -> float:
    """`asked_ratio` summed over members; losses [1 + K, members] and ``asked`` [members, K].

    Example:
        >>> summed_ratios(np.array([[1.0, 1.0], [2.0, 9.0], [9.0, 2.0]]), np.array([[True, False], [False, True]]))
        2.0
    """
    shadows = np.where(asked, -losses[1:].T, -np.inf)
    highest = shadows.max(axis=1, initial=-np.inf)
    means = np.exp(shadows - highest[:, None]).sum(axis=1) / asked.sum(axis=1)
    return float((-losses[0] - highest - np.log(means)).sum())


@inner_kernel
def _add(u: int, sign: int, state: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Add (or take away) the losses of member u; where ``asked`` has rows, its own ratio, with its sign turned."""
    if len(asked) > 0:
        totals[0] -= sign * asked_ratio(state.loss[u], asked[u])
    else:
        for m in range(len(totals)):
            totals[m] += sign * state.loss[u, m]


@kernel
def add_members(graph: CSR, state: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Add every member to ``totals`` [1 + K]."""
    for u in range(len(graph.member)):
        if graph.member[u]:
            _add(u, 1, state, asked, totals)


@inner_kernel
def _add_around(v: int, sign: int, graph: CSR, state: Any, reach: Any, asked: BoolArray, totals: FloatArray) -> None:
    if graph.member[v]:
        _add(v, sign, state, asked, totals)
    for i in range(reach.size[2]):
        _add(reach.nodes[i], sign, state, asked, totals)


@inner_kernel
def move(weights: Any, v: int, graph: CSR, state: Any, scratch: Any, asked: BoolArray, totals: FloatArray) -> None:
    """Flip v and keep ``totals`` [1 + K] up to date: summed losses of all members.

    If ``asked`` [n, K] has rows, ``totals[0]`` is the members' summed ratio with its sign turned, and the others stay
    zero, so that `log_ratio` of the totals is that sum.
    """
    reach = scratch.reach
    find_two_hops(v, graph, reach)
    if extra_hops(weights):
        grow(2, graph, reach)
    _add_around(v, -1, graph, state, reach, asked, totals)
    commit(weights, v, graph, state, scratch)
    # The list is still there after its release; only the slots were cleared.
    _add_around(v, 1, graph, state, reach, asked, totals)


@kernel
def move_all(
    weights: Any, nodes: IntArray, graph: CSR, state: Any, scratch: Any, asked: BoolArray, totals: FloatArray
) -> None:
    """Flip these nodes in turn, and keep ``totals`` up to date."""
    for i in range(len(nodes)):
        move(weights, nodes[i], graph, state, scratch, asked, totals)


Prior = float | FloatArray | Tensor


@dataclass(frozen=True, kw_only=True)
class ChainInfo:
    """How a run of Markov chains went.

    Attributes:
        acceptance_rate: share of proposals accepted (after burn-in). A Gibbs draw is always accepted: 1.
        flip_share: Metropolis-Hastings: the tuned share of indicators that a proposal flips, mean over chains.
            Gibbs: the share of visits that changed an indicator.
        seconds: wall-clock time.
    """

    acceptance_rate: float
    flip_share: float
    seconds: float


def prior_logits(prior: Prior, n: int) -> FloatArray:
    """log(λ / (1 - λ)) of each node, [n], from one λ or one per node.

    Example:
        >>> prior_logits(0.5, 3)
        array([0., 0., 0.])
    """
    share = np.broadcast_to(np.asarray(prior, dtype=np.float64), (n,))
    if not ((share >= 0) & (share <= 1)).all():
        raise InputError("prior: a share of members lies between 0 and 1.")
    with np.errstate(divide="ignore"):
        return np.log(share) - np.log1p(-share)


def generators(seed: int, chains: int) -> list[np.random.Generator]:
    """One generator per chain, so that a chain does not depend on the number of threads."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(chains)]


def starting_masks(prior: Prior, n: int, sources: list[np.random.Generator]) -> BoolArray:
    """Where chains begin, bool [chains, n]: the given masks (one, or one per chain), or draws from the prior."""
    share = np.broadcast_to(np.asarray(prior, dtype=np.float64), (n,))
    return np.stack([source.random(n) < share for source in sources])


def usable_shadows(asked: BoolArray, *, n: int, shadows: int) -> BoolArray:
    """Which shadow models may speak about each node, bool [n, shadows], from ``asked`` [shadows, n]; checked.

    Example:
        >>> usable_shadows(np.array([[True, False], [True, True]]), n=2, shadows=2)
        array([[ True,  True],
               [False,  True]])
    """
    asked = np.asarray(asked)
    # numbers are refused: "not 1" is a number too, and true
    if asked.dtype != np.bool_ or asked.shape != (shadows, n) or not asked.any(axis=0).all():
        raise InputError(f"asked: each of {n} nodes needs a shadow model to speak about it. Pass bool [models, {n}].")
    return np.ascontiguousarray(asked.T)


WholeLosses = Callable[[BoolArray], FloatArray]  # mask [n] -> losses [models, n]


def forward_losses(models: Sequence[Profiled], data: Data) -> WholeLosses:
    """A function from a mask [n] to the losses [models, n] of any models.

    Losses of nodes outside the mask have no meaning.

    Example:
        >>> import numpy as np
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> forward_losses(profile_models([lambda x, edge_index: x * 0], pair), pair)(np.array([True, True])).round(4)
        array([[0.6931, 0.6931]])
    """
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))

    def asked(mask: BoolArray) -> FloatArray:
        members = torch.from_numpy(mask).to(question.edge_index.device)
        graph = question.graph(members[question.edge_index].all(0))
        with evaluation_mode(models):
            found = [
                induced_losses(model, question, members)
                if model.profile.everywhere
                else tensor_losses(model.logits(graph), data.y)
                for model in models
            ]
        return torch.stack(found).cpu().numpy()

    return asked


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

    problem: StackedModels
    _graph: CSR = field(init=False)
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
    """A group without kernels: an engine answers for one node, a forward pass for a whole configuration.

    Args:
        models: of one shape.
        question: about their graph; its masks and nodes are not used.
        answer: the forward pass.
    """

    models: Sequence[Profiled]
    question: Question
    answer: WholeLosses
    _memory: Memory = field(init=False, default_factory=Memory)
    _mask: BoolArray = field(init=False)
    _losses: FloatArray | None = field(init=False, default=None)
    _before: FloatArray | None = field(init=False, default=None)

    def begin(self, mask: BoolArray) -> None:
        """Start from a configuration [n]."""
        self._mask, self._losses = mask.copy(), None

    def signal(self, v: int) -> FloatArray:
        """S of node v at the current configuration, [models of the group]."""
        device = self.question.masks.device
        masks, nodes = torch.from_numpy(self._mask)[None].to(device), torch.tensor([v], device=device)
        with self._memory.open():
            found = answer_question(self.models, replace(self.question, masks=masks, nodes=nodes)).signal
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
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn(name, features=2, hidden=4, classes=2) for name in ("gcn", "gat", "gat")]
        >>> make, side_by_side = groups_maker(models, pair, threads=1)
        >>> [places.tolist() for places, _ in make().parts], side_by_side
        ([[0], [1, 2]], True)
    """
    models = profile_models(models, data)
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
    problem = stack_models(models, data, threads=threads)
    return lambda: CompiledGroup(problem=problem)


def _asked_maker(models: Sequence[Any], data: Data) -> Callable[[], ModelGroup]:
    answer = forward_losses(models, data)
    question = ask(data, torch.ones(1, int(data.num_nodes), dtype=torch.bool), torch.arange(0))
    return lambda: AskedGroup(models=models, question=question, answer=answer)
