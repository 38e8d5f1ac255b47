"""The draws of the records that train a model: complementary halves (Algorithm 1) and random shares."""

from __future__ import annotations

import numpy as np

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.randomness import generator

__all__ = ["complementary_halves", "random_subsets", "share_size"]


def complementary_halves(count: int, *, models: int, seed: int) -> BoolArray:
    """Which records train which shadow model, [models, count] (paper, Algorithm 1).

    Models 2k and 2k + 1 take a random half and its complement, so every record is in exactly half of the models. Each
    pair has its own random stream, so more models can be added later without changing the first ones.

    Example:
        >>> members = complementary_halves(5, models=4, seed=0)
        >>> members.sum(axis=0)
        array([2, 2, 2, 2, 2])
    """
    if isinstance(models, bool) or not isinstance(models, int | np.integer):
        raise InputError(f"shadows: {models!r} is not a whole number; give one, such as 8.")
    if models < 2 or models % 2:
        raise InputError(
            f"shadows: {models} is not a positive even number; models are trained in complementary pairs. "
            f"Use {max(2, models - models % 2)} or {max(2, models - models % 2) + 2}."
        )
    members = np.zeros((models, count), dtype=np.bool_)
    for pair in range(models // 2):
        order = generator(seed, "halves", pair).permutation(count)
        members[2 * pair, order[: count // 2]] = True
        members[2 * pair + 1] = ~members[2 * pair]
    return members


def random_subsets(count: int, *, models: int, fraction: float, seed: int, stream: str = "subset") -> BoolArray:
    """Independent random training sets of a given share, [models, count].

    For targets, and for shadows that are meant to differ from Algorithm 1 (the paper's mismatched adversary trains
    its target on 35 %).

    Args:
        count: number of records.
        models: number of training sets.
        fraction: share of the records in each.
        seed: of the draws; a larger number of models does not change the first ones.
        stream: name of the random stream. Targets and shadows of one seed use different streams, or shadow 0 would
            train on the target's members.

    Example:
        >>> random_subsets(100, models=2, fraction=0.35, seed=0).sum(axis=1)
        array([35, 35])
    """
    if models < 0:
        raise InputError(f"shadows: {models} is below 0.")
    size = share_size(fraction, count)
    members = np.zeros((models, count), dtype=np.bool_)
    for model in range(models):
        members[model, generator(seed, stream, model).permutation(count)[:size]] = True
    return members


def share_size(fraction: float, count: int, *, of: str = "records") -> int:
    """How many a share of the records is, where that leaves some inside and some outside.

    Example:
        >>> share_size(0.35, 100)
        35
    """
    if not 0.0 < fraction < 1.0:
        raise InputError(f"fraction: {fraction} is not a share of the {of}; use a number between 0 and 1, such as 0.5.")
    size = round(fraction * count)
    if not 0 < size < count:
        raise InputError(f"fraction: {fraction} of {count} {of} leaves none of them inside or none outside.")
    return size
