"""The chains as the paper writes them, for any model: the rule or a whole forward pass at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.data import Data

from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.sampling.chain_state import ForwardLosses, forward_losses, generators, starting_masks
from glasshouse.graph.sampling.metropolis import Block, run_chains
from glasshouse.graph.sampling.posterior import log_ratio, membership_probability, prior_logits

Signal = Callable[[BoolArray, int], FloatArray]  # (mask [n], v) -> S [models]


class Walked(NamedTuple):
    masks: BoolArray  # [chains or samples, n]
    share: float  # of visits that flipped, or of proposals that were taken


def plain_gibbs(
    signal: Signal,
    n: int,
    *,
    chains: int,
    passes: int = 1,
    prior: float = 0.5,
    seed: int,
    usable_shadows: BoolArray | None = None,
) -> Walked:
    sources, logits = generators(seed, chains), prior_logits(prior, n)
    masks, flips = starting_masks(prior, n, sources), 0
    for mask, source in zip(masks, sources, strict=True):
        for _ in range(passes):
            for v, chance in zip(source.permutation(n).tolist(), source.random(n), strict=True):
                answer = signal(mask, v)
                usable = np.ones(len(answer) - 1, np.bool_) if usable_shadows is None else usable_shadows[:, v].copy()
                joins = chance < membership_probability(answer, logits[v], usable)
                flips += joins != mask[v]
                mask[v] = joins
    return Walked(masks, flips / (chains * passes * n))


def joint_ratio(losses: FloatArray, mask: BoolArray, usable_shadows: BoolArray | None) -> float:
    """Log of the posterior of a mask [n] without its prior, from losses [models, n] and usable shadows [models, n]."""
    if usable_shadows is None:
        return log_ratio(losses[:, mask].sum(axis=1), np.ones(len(losses) - 1, np.bool_))
    total = 0.0
    for v in np.flatnonzero(mask):
        total += -losses[0, v] - np.log(np.mean(np.exp(-losses[1:, v][usable_shadows[:, v]])))
    return total


class PlainFlipper:
    def __init__(self, losses: ForwardLosses, prior_logit: FloatArray, usable_shadows: BoolArray | None) -> None:
        self.losses, self.prior_logit, self.usable = losses, prior_logit, usable_shadows

    def begin(self, mask: BoolArray) -> None:
        self.current, self.log_probability = mask.copy(), self.evaluate(mask)

    def evaluate(self, mask: BoolArray) -> float:
        free = mask & np.isfinite(self.prior_logit)  # a fixed node adds the same to every configuration
        return joint_ratio(self.losses(mask), mask, self.usable) + float(self.prior_logit[free].sum())

    def steps(self, blocks: Sequence[Block]) -> IntArray:
        (block,), taken = blocks, 0
        for nodes, bar in zip(block.flips, block.log_uniform, strict=True):
            proposed = self.current.copy()
            proposed[nodes] ^= True
            value = self.evaluate(proposed)
            if bar < value - self.log_probability:
                self.current, self.log_probability = proposed, value
                taken += 1
        return np.array([taken])

    @property
    def masks(self) -> BoolArray:
        return self.current[None]


def plain_metropolis(
    models: Sequence[Any],
    data: Data,
    *,
    samples: int,
    burn_in: int,
    thinning: int,
    prior: float | FloatArray,
    seed: int = 0,
    usable_shadows: BoolArray | None = None,
) -> Walked:
    """One chain."""
    n, sources = int(data.num_nodes), generators(seed, 1)
    logits = prior_logits(prior, n)
    free = np.flatnonzero(np.isfinite(logits))
    flipper = PlainFlipper(forward_losses(profile_models(models, data), data), logits, usable_shadows)
    flipper.begin(starting_masks(prior, n, sources)[0])
    kept = np.zeros((samples, 1, n), np.bool_)
    schedule: dict[str, Any] = {"burn_in": burn_in, "thinning": thinning, "flip_share": 0.01, "candidates": free}
    taken, _ = run_chains(flipper, sources, kept, lambda steps: None, **schedule)
    return Walked(kept[:, 0], taken[0] / (samples * thinning))
