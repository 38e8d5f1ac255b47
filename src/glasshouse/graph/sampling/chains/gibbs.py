"""Gibbs sampling of the members: each indicator is drawn from the Bayes-optimal rule, given all others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch_geometric.data import Data

from glasshouse.errors import InputError
from glasshouse.graph.models.asking import quiet
from glasshouse.graph.rule.jit import kernel
from glasshouse.graph.rule.toggle.compiled.architecture import toggle
from glasshouse.graph.rule.toggle.compiled.commit import commit, fill_state
from glasshouse.graph.rule.toggle.compiled.plan import Graph, arrange
from glasshouse.graph.rule.toggle.compiled.problem import build_problem, supports
from glasshouse.graph.rule.toggle.compiled.reach import release
from glasshouse.graph.rule.toggle.compiled.workers import available_cores, open_workers
from glasshouse.graph.sampling.chains.groups import Groups, groups_maker
from glasshouse.graph.sampling.chains.posterior import membership_probability
from glasshouse.graph.sampling.chains.record import ChainInfo, Prior, generators, prior_logits, starting_masks
from glasshouse.progress import open_bar

__all__ = ["Signal", "gibbs_masks"]

Signal = Callable[[npt.NDArray[np.bool_], int], npt.NDArray[np.float64]]  # (mask [n], v) -> S [models]
Done = Callable[[int], None]  # counts visits, for a bar


def gibbs_masks(
    models: Sequence[Any],
    data: Data,
    *,
    chains: int = 8,
    passes: int = 1,
    prior: Prior = 0.5,
    seed: int = 0,
    start: npt.NDArray[np.bool_] | Tensor | None = None,
    signal: Signal | None = None,
    asked: npt.NDArray[np.bool_] | None = None,
    threads: int | None = None,
) -> tuple[npt.NDArray[np.bool_], ChainInfo]:
    """Membership configurations from Gibbs chains whose conditionals are exact at every step.

    A pass visits all nodes in random order and draws each from
    ``sigmoid(-S_target - log mean exp(-S_shadow) + log(λ / (1 - λ)))`` at the current configuration. Models of several
    shapes answer in groups, one per shape. Two-layer GCN, GraphSAGE-max and GAT run compiled, one chain per thread;
    any other group is asked through `toggle_losses`, node by node.

    Args:
        models: the target first, then the shadow models.
        data: the graph with ``x`` [n, features], ``edge_index`` [2, e] and ``y`` [n].
        chains: how many; each gives one configuration.
        passes: how often every node is visited.
        prior: λ, one number or one per node.
        seed: the same seed gives the same masks on any number of threads.
        start: bool [n] or [chains, n]; by default drawn from the prior.
        signal: ``(mask, node) -> S [models]`` to use instead of the kernels.
        asked: bool [shadow models, n], which shadow models are used for which node; all by default.
        threads: cores to use; all by default.

    Returns:
        Masks, bool [chains, n], and how the run went.

    Example:
        >>> import torch
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> pair = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
        >>> models = [build_gnn("gcn", features=2, hidden=4, classes=2) for _ in range(3)]
        >>> masks, info = gibbs_masks(models, pair, chains=4, passes=2)
        >>> masks.shape, info.acceptance_rate
        ((4, 2), 1.0)
    """
    if len(models) < 2:
        raise InputError("models: the target and at least one shadow model are needed.")
    began = time.perf_counter()
    n = int(data.num_nodes)
    logits = prior_logits(prior, n)
    sources = generators(seed, chains)
    masks = starting_masks(start, prior, n, sources)
    everyone = np.ones((n, len(models) - 1), np.bool_)
    heard = everyone if asked is None else np.ascontiguousarray(asked.T)
    if heard.shape != everyone.shape or not heard.any(axis=1).all():
        raise InputError(f"asked: each of {n} nodes needs at least one shadow model. Pass bool [models, {n}].")
    cores = threads or available_cores()
    with open_bar(total=chains * passes * n, label="Gibbs chains", unit="visits") as done:
        rest = (masks, sources, logits, heard, done)
        if signal is not None:
            flips = sum(_plain(signal, *rest, chain, passes=passes) for chain in range(chains))
        elif supports(models, data):
            flips = _compiled(models, data, *rest, passes=passes, threads=cores)
        else:
            flips = _grouped(models, data, *rest, passes=passes, threads=cores)
    visits = max(chains * passes * n, 1)
    seconds = time.perf_counter() - began
    return masks, ChainInfo(acceptance_rate=1.0, flip_share=flips / visits, seconds=seconds)


@kernel
def sweep(
    weights: Any,
    order: npt.NDArray[np.int64],
    uniform: npt.NDArray[np.float64],
    prior_logit: npt.NDArray[np.float64],
    asked: npt.NDArray[np.bool_],
    graph: Graph,
    state: Any,
    scratch: Any,
) -> int:
    """Visit the nodes in ``order`` [n] with one uniform number each; return how many flipped."""
    flips = 0
    for i in range(len(order)):
        v = order[i]
        toggle(weights, v, False, graph, state, scratch)
        joins = uniform[i] < membership_probability(scratch.signal, prior_logit[v], asked[v])
        if joins != graph.member[v]:
            commit(weights, v, graph, state, scratch)
            flips += 1
        else:
            release(v, scratch.reach)
    return flips


def _compiled(
    models: Sequence[Any],
    data: Data,
    masks: npt.NDArray[np.bool_],
    sources: list[np.random.Generator],
    logits: npt.NDArray[np.float64],
    asked: npt.NDArray[np.bool_],
    done: Done,
    *,
    passes: int,
    threads: int,
) -> int:
    """Run every chain in place on its row of ``masks``; a thread keeps one state for all chains it takes."""
    problem = build_problem(models, data, threads=threads)
    flips = np.zeros(len(masks), np.int64)

    def run(space: tuple[Any, Any], chain: int) -> None:
        graph, source = arrange(problem.graph, masks[chain]), sources[chain]
        fill_state(problem.weights, graph, *space)
        for _ in range(passes):
            order, uniform = source.permutation(len(logits)), source.random(len(logits))
            flips[chain] += sweep(problem.weights, order, uniform, logits, asked, graph, *space)
            done(len(order))
        masks[chain] = graph.member

    with open_workers(min(threads, len(masks)), lambda: (problem.new_state(), problem.new_scratch())) as workers:
        workers.each(run, range(len(masks)))
    return int(flips.sum())


def _grouped(
    models: Sequence[Any],
    data: Data,
    masks: npt.NDArray[np.bool_],
    sources: list[np.random.Generator],
    logits: npt.NDArray[np.float64],
    asked: npt.NDArray[np.bool_],
    done: Done,
    *,
    passes: int,
    threads: int,
) -> int:
    """The same chains over models of several shapes, or of one shape that has no kernels."""
    new_groups, side_by_side = groups_maker(models, data, threads=threads)
    flips = np.zeros(len(masks), np.int64)

    def run(groups: Groups, chain: int) -> None:
        groups.begin(masks[chain])

        def signal(mask: npt.NDArray[np.bool_], v: int) -> npt.NDArray[np.float64]:
            return groups.signal(v)

        flips[chain] = _plain(signal, masks, sources, logits, asked, done, chain, passes=passes, flip=groups.flip)

    # Evaluation mode is set here, once: a thread that ends it would switch dropout on for the others.
    with quiet(models), open_workers(min(threads, len(masks)) if side_by_side else 1, new_groups) as workers:
        workers.each(run, range(len(masks)))
    return int(flips.sum())


def _plain(
    signal: Signal,
    masks: npt.NDArray[np.bool_],
    sources: list[np.random.Generator],
    logits: npt.NDArray[np.float64],
    asked: npt.NDArray[np.bool_],
    done: Done,
    chain: int,
    *,
    passes: int,
    flip: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> int:
    """The passes of one chain in Python, for any models, with the same numbers in the same order as the kernel."""
    flips, mask, source = 0, masks[chain], sources[chain]
    for _ in range(passes):
        order, uniform = source.permutation(len(logits)), source.random(len(logits))
        for place, (v, chance) in enumerate(zip(order.tolist(), uniform, strict=True)):
            joins = bool(chance < membership_probability(signal(mask, v), logits[v], asked[v]))
            if joins != mask[v]:
                flips += 1
                mask[v] = joins
                if flip is not None:
                    flip(order[place : place + 1])
            done(1)
    return flips
