"""Metropolis-Hastings sampling of who was a member, from the joint posterior of the paper's App. B."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.errors import InputError
from glasshouse.graph.models.asking import meet, quiet
from glasshouse.graph.rule.toggle.compiled.problem import build_problem, supports
from glasshouse.graph.rule.toggle.compiled.workers import available_cores, open_workers
from glasshouse.graph.sampling.chains.flipping import CompiledFlipper, GroupFlipper
from glasshouse.graph.sampling.chains.groups import groups_maker
from glasshouse.graph.sampling.chains.proposal import Block, draw_block, tuned
from glasshouse.graph.sampling.chains.record import ChainInfo, Prior, generators, prior_logits, speakers, starting_masks
from glasshouse.graph.sampling.chains.together import Crowd, masked_losses, walk_in_step
from glasshouse.progress import open_bar

__all__ = ["Flipper", "Schedule", "metropolis_masks", "run_chain", "run_in_step"]

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
        >>> from glasshouse.graph.models.gnn import build_gnn
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
    heard = np.zeros((0, shadows), np.bool_) if asked is None else speakers(asked, n=n, shadows=shadows)
    sources = generators(seed, chains)
    masks = starting_masks(prior, n, sources)
    schedule = Schedule(
        samples=-(-samples // chains),
        burn_in=burn_in,
        thinning=thinning,
        flip_share=flip_share,
        candidates=np.flatnonzero(np.isfinite(logits)),
    )
    meet(models, data)
    kept = np.zeros((schedule.samples, chains, n), np.bool_)
    taken, shares = np.zeros(chains, np.int64), np.zeros(chains)
    steps = chains * (burn_in + schedule.samples * thinning)
    # Evaluation mode is set here, once: a thread that ends it would switch dropout on for the others.
    with quiet(models), open_bar(total=steps, label="Metropolis-Hastings chains", unit="steps") as done:
        if walk_in_step(models, data):
            crowd = Crowd.begin(masked_losses(models, data), masks, logits=logits, asked=heard, on=data.x.device)
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
        problem = build_problem(models, data, threads=threads)
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
    crowd: Crowd,
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
