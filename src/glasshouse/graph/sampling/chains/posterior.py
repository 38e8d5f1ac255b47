"""The log ratio and the conditional probability that the chains use, from losses summed over members."""

from __future__ import annotations

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.graph.rule.jit import kernel

__all__ = ["asked_ratio", "log_ratio", "membership_probability", "summed_ratios"]


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
