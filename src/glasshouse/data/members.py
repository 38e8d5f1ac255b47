"""Which records trained a model: a mask or ids, checked; draws of halves (Algorithm 1), random shares, snowballs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.core.arrays import BoolArray, IntArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.data.features import check_order
from glasshouse.data.labels import is_frame, is_missing, listed
from glasshouse.data.units import Units

_YES = ("true", "yes", "train", "1", "1.0", "member")
_NO = ("false", "no", "test", "0", "0.0", "holdout")


def as_members(
    members: ArrayLike | set[str] | frozenset[str], shape: tuple[int, ...], *, place: str, ids: TextArray | None = None
) -> BoolArray:
    """A mask of the wanted shape, [N] or [K, N] for K models: of booleans, of 0 and 1, or of members' ids as text.

    Whole numbers other than a mask are refused: they could be positions or ids.
    """
    if isinstance(members, str) or is_frame(members) or isinstance(members, Mapping):
        kind = "the text " + repr(members) if isinstance(members, str) else f"a {type(members).__name__}"
        raise InputError(
            f"{place}: {kind} is neither a mask nor a list of ids; give the column itself, such as frame['member'], or "
            f"join two tables with Population.from_parts(train, holdout)."
        )
    mask = listed(members)
    if mask.dtype == object and mask.ndim == 1:
        mask = _plain(mask, place)
    if mask.dtype.kind == "U" and ids is not None and mask.ndim == 1:
        return _from_ids(mask, ids, place)
    if mask.shape != shape:
        numbers = mask.ndim == 1 == len(shape) and mask.dtype.kind in "iu"
        advice = f" From record numbers, make a mask with np.isin(np.arange({shape[0]}), numbers)." if numbers else ""
        if numbers and ids is not None:
            advice += " If they are ids, give them as text: [str(number) for number in numbers]."
        raise InputError(f"{place}: shape {mask.shape} does not fit; expected {shape}, one entry per record.{advice}")
    if mask.dtype != np.bool_:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise InputError(f"{place}: a membership mask holds only true and false (or 1 and 0).")
        mask = mask.astype(np.bool_)
    return mask


def check_members_fit(x: Any, members: BoolArray, *, given: Any = None) -> None:
    """Refuse a table with the mask of the members [N] as one of its features, and members given in another order."""
    check_order(given, x, place="members")
    names = list(x.columns) if is_frame(x) else list(x) if isinstance(x, Mapping) else []
    for name in names:
        column = listed(x[name])
        if column.shape != members.shape or column.dtype.kind not in "biuf":
            continue
        if np.array_equal(column, members) or np.array_equal(column, ~members):
            raise InputError(
                f"members: the column {name!r} of the features says who is a member, and models would learn from it. "
                f"Leave it out: Population(…, leave_out=[{name!r}])."
            )


def _plain(given: NDArray[Any], place: str) -> NDArray[Any]:
    """Objects [M] as truth values, numbers or text, if all of them are; an empty cell is refused."""
    missing = np.array([is_missing(value) for value in given], dtype=np.bool_)
    if missing.any():
        raise InputError(
            f"{place}: entry {int(np.flatnonzero(missing)[0])} is empty; say of every record whether it is a member."
        )
    values = given.tolist()
    if any(isinstance(value, str) for value in values) and not all(isinstance(value, str) for value in values):
        raise InputError(f"{place}: holds text and other values; give a mask of True and False, or ids as text.")
    return np.asarray(values)


def _from_ids(given: NDArray[np.str_], ids: TextArray, place: str) -> BoolArray:
    unknown = given[~np.isin(given, ids)]
    if len(unknown):
        kinds = np.unique(given).tolist()
        if all(one.lower() in (*_YES, *_NO) for one in kinds):
            word = next((one for one in kinds if one.lower() in _YES), kinds[0])
            raise InputError(
                f"{place}: holds the text {kinds[0]!r}; a mask holds True and False. If {word!r} marks members, use "
                f"column == {word!r}."
            )
        raise InputError(
            f"{place}: {len(unknown)} of {len(given)} ids are not in the population, such as {str(unknown[0])!r}; its "
            f"ids are like {str(ids[0])!r}. Name the column of the ids: Population(…, ids=…)."
        )
    return np.isin(ids, given)


def complementary_halves(count: int, *, models: int, seed: int, units: Units | None = None) -> BoolArray:
    """Which records train which shadow model, [models, count] (paper, Algorithm 1); ``units`` are drawn whole.

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
    if units is not None:
        return complementary_halves(len(units), models=models, seed=seed)[:, units.rows]
    members = np.zeros((models, count), dtype=np.bool_)
    for pair in range(models // 2):
        order = generator(seed, "halves", pair).permutation(count)
        members[2 * pair, order[: count // 2]] = True
        members[2 * pair + 1] = ~members[2 * pair]
    return members


def random_subsets(
    count: int, *, models: int, fraction: float, seed: int, stream: str = "subset", units: Units | None = None
) -> BoolArray:
    """Independent random training sets of a given share, [models, count].

    For targets, and for shadows that are meant to differ from Algorithm 1 (the paper's mismatched adversary trains
    its target on 35 %). A larger number of models does not change the first ones. Targets and shadows of one seed use
    random streams of different names, or shadow 0 would train on the target's members. ``units`` are drawn whole, a
    share of them.

    Example:
        >>> random_subsets(100, models=2, fraction=0.35, seed=0).sum(axis=1)
        array([35, 35])
    """
    if models < 0:
        raise InputError(f"shadows: {models} is below 0.")
    if units is not None:
        return random_subsets(len(units), models=models, fraction=fraction, seed=seed, stream=stream)[:, units.rows]
    size = share_size(fraction, count)
    members = np.zeros((models, count), dtype=np.bool_)
    for model in range(models):
        members[model, generator(seed, stream, model).permutation(count)[:size]] = True
    return members


def both_ways(edges: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Ends of the edges [2, E] of so many nodes in both directions, once each, in the order of the first."""
    keys = np.unique(np.concatenate([edges[0] * count + edges[1], edges[1] * count + edges[0]]))
    return np.divmod(keys, count)


def snowball(
    ends: tuple[IntArray, IntArray], count: int, wanted: int, *, random: np.random.Generator, branching: int | None
) -> BoolArray:
    """[count] so many nodes, wave by wave along the edges of `both_ways`; `snowball_subset` of a graph has the rule."""
    sources, targets = ends
    inside = np.zeros(count, dtype=np.bool_)
    wave = np.zeros(0, dtype=np.int64)
    size = 0
    while size < wanted:
        if not len(wave):
            wave = random.choice(np.flatnonzero(~inside), size=1)
        else:
            in_wave = np.zeros(count, dtype=np.bool_)
            in_wave[wave] = True
            new = np.flatnonzero(in_wave[sources] & ~inside[targets])  # edges that lead out
            if branching is not None:
                new = random.permutation(new)
                new = new[np.argsort(sources[new], kind="stable")]  # grouped by source, in random order within a group
                starts = np.searchsorted(sources[new], sources[new])
                new = new[np.arange(len(new)) - starts < branching]
            wave = np.unique(targets[new])  # each node outside once
        wave = random.permutation(wave)[: wanted - size]
        inside[wave] = True
        size += len(wave)
    return inside


def share_size(fraction: float, count: int, *, of: str = "records") -> int:
    """How many a share of the records is, where that leaves some inside and some outside."""
    if not 0.0 < fraction < 1.0:
        raise InputError(f"fraction: {fraction} is not a share of the {of}; use a number between 0 and 1, such as 0.5.")
    size = round(fraction * count)
    if not 0 < size < count:
        raise InputError(f"fraction: {fraction} of {count} {of} leaves none of them inside or none outside.")
    return size
