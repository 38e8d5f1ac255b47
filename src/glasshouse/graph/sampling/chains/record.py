"""What a run of chains reports, and the random streams and masks that it starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.errors import InputError

__all__ = ["ChainInfo", "generators", "prior_logits", "speakers", "starting_masks"]

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


def speakers(asked: BoolArray, *, n: int, shadows: int) -> BoolArray:
    """Which shadow models may speak about each node, bool [n, shadows], from ``asked`` [shadows, n]; checked.

    Example:
        >>> speakers(np.array([[True, False], [True, True]]), n=2, shadows=2)
        array([[ True,  True],
               [False,  True]])
    """
    asked = np.asarray(asked)
    # numbers are refused: "not 1" is a number too, and true
    if asked.dtype != np.bool_ or asked.shape != (shadows, n) or not asked.any(axis=0).all():
        raise InputError(f"asked: each of {n} nodes needs a shadow model to speak about it. Pass bool [models, {n}].")
    return np.ascontiguousarray(asked.T)
