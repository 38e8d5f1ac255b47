"""In-models and out-models of each record: their number, mean margin and spread around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import check_simulation, reference_rows, shared_rows
from glasshouse.numerics import loss_to_margin
from glasshouse.threads import over_records

__all__ = [
    "Moments",
    "SideMeans",
    "left_out",
    "moments",
    "moments_among",
    "simulated_means",
    "simulated_sets",
    "sums_among",
]

_SETS = 8  # sets of references whose means are in memory at once


class Moments(NamedTuple):
    """Number of models, mean of their margins, and summed squares around it, [N] each."""

    models: FloatArray
    mean: FloatArray
    squares: FloatArray


def moments(values: FloatArray, who: BoolArray) -> Moments:
    """Moments over the chosen entries of each column.

    Args:
        values: [K, N], such as margins of the shadow models.
        who: [K, N] which of them count; every column needs at least one.

    Example:
        >>> moments(np.array([[1.0], [3.0], [9.0]]), np.array([[True], [True], [False]]))
        Moments(models=array([2.]), mean=array([2.]), squares=array([2.]))
    """
    found = moments_among(values, who, [np.arange(len(values))[:, None]])
    return Moments(*(part[0] for part in found))


def moments_among(
    values: FloatArray, who: BoolArray, sets: Sequence[NDArray[np.intp]], *, spread: bool = True
) -> Moments:
    """The same with some of the models alone, for each of several sets of them: [sets, N] each.

    Args:
        values: [K, N], such as margins of the shadow models.
        who: [K, N] which of them count.
        sets: rows of the pool, [R, 1] the same for all records, or [R, N] record by record. Where none of the models of
            a set counts, moments are NaN.
        spread: whether the squares are wanted; they take most of the time.

    Example:
        >>> values, who = np.array([[1.0], [3.0], [9.0]]), np.array([[True], [True], [True]])
        >>> moments_among(values, who, [np.array([[0], [1]]), np.array([[1], [2]])]).mean
        array([[2.],
               [6.]])
    """
    count, mean, squares = np.full((3, len(sets), values.shape[1]), np.nan)
    without = [left_out(rows, len(values)) for rows in sets]

    def write(some: slice) -> None:
        block, chosen = values[:, some].copy(), who[:, some].astype(np.float64)  # near each other in memory
        apart = np.empty_like(block)
        with np.errstate(divide="ignore", invalid="ignore"):
            for number, rows in enumerate(sets):
                # entries times 0 or 1, added up model by model: the models that are left out change no bit of a sum
                used = _only(chosen, rows if rows.shape[1] == 1 else rows[:, some], without[number])
                models = used.sum(axis=0)
                centre = np.einsum("kn,kn->n", block, used) / models
                count[number, some], mean[number, some] = models, centre
                if spread:
                    np.subtract(block, centre, out=apart)
                    np.multiply(apart, apart, out=apart)
                    squares[number, some] = np.einsum("kn,kn->n", apart, used)

    over_records(write, values.shape[1], models=len(values))
    return Moments(count, mean, squares)


def left_out(rows: NDArray[np.intp], models: int) -> NDArray[np.intp] | None:
    """Which models of a pool are not in a set of rows, [R, 1]; None for a set that differs from record to record.

    Example:
        >>> left_out(np.array([[0], [2]]), 4)
        array([1, 3])
    """
    return np.delete(np.arange(models), rows[:, 0]) if rows.shape[1] == 1 else None


def sums_among(values: FloatArray, rows: NDArray[np.intp], without: NDArray[np.intp] | None) -> FloatArray:
    """Sums [N] of values [K, N] over a set of rows.

    Args:
        values: those of models that are left out are 0 for a moment, so another thread may not use them.
        rows: [R, 1] the same for all records, or [R, N] record by record.
        without: `left_out` of the rows.

    Example:
        >>> sums_among(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[0], [2]]), np.array([1]))
        array([6., 8.])
    """
    if without is None:
        return np.asarray(_only(values, rows, None).sum(axis=0))
    kept = values[without]
    values[without] = 0.0  # adding 0 changes no bit of a sum, and a copy of the others would take longer than adding
    total = values.sum(axis=0)
    values[without] = kept
    return np.asarray(total)


def _only(values: FloatArray, rows: NDArray[np.intp], without: NDArray[np.intp] | None) -> FloatArray:
    """Values [K, N] at these rows, and 0 elsewhere."""
    if without is not None:
        if not len(without):
            return values
        kept = values.copy()
        kept[without] = 0.0
        return kept
    columns = np.arange(values.shape[1])
    kept = np.zeros_like(values)
    kept[rows, columns] = values[rows, columns]
    return kept


class SideMeans(NamedTuple):
    """A simulated target: mean margins of its references [N, sides], its own margins [N] and its members [N]."""

    means: FloatArray
    margins: FloatArray
    members: BoolArray


def simulated_means(
    evidence: Evidence, sides: Sequence[bool], *, statistic: FloatArray | None = None
) -> Iterator[SideMeans]:
    """Each simulated target with the mean margins over in-models (True) or out-models (False) of its references.

    These are the means of `Evidence.simulated`, without a copy of the pool for every target: margins are computed once,
    and a model and its complement, which have the same references, share their sums.

    Args:
        evidence: the pool; the target's own losses are not used.
        sides: which sides are wanted, in this order.
        statistic: [K, N] what is averaged; by default the margins of the losses.

    Example:
        >>> members = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=bool)
        >>> loss = np.log1p(np.exp([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]))
        >>> evidence = Evidence(target_loss=loss[0], shadow_loss=loss, shadow_members=members)
        >>> first = next(simulated_means(evidence, [True, False]))
        >>> first.means.round(6), first.margins.round(6)
        (array([[-5., -7.],
               [-8., -6.]]), array([-1., -2.]))
    """
    members = evidence.shadow_members
    margins = loss_to_margin(evidence.shadow_loss) if statistic is None else statistic  # [K, N]
    for targets, sets in simulated_sets(members, most=_SETS):
        means = np.empty((len(sets), evidence.records, len(sides)))
        for place, inside in enumerate(sides):
            count, means[:, :, place], _ = moments_among(margins, members == inside, sets, spread=False)
            for number in np.flatnonzero(~count.all(axis=1))[:1].tolist():
                evidence.among(sets[number]).require_side(inside=inside)
        for k, number in targets:
            yield SideMeans(means[number], margins[k], members[k])


def simulated_sets(
    members: BoolArray, *, most: int | None = None
) -> Iterator[tuple[list[tuple[int, int]], list[NDArray[np.intp]]]]:
    """Simulated targets, in their order, with the sets of references that judge them; several sets at a time.

    References that differ from record to record are as large as the pool, so they are made one set at a time.

    Args:
        members: [K, N] members of each shadow model.
        most: how many sets at a time, at most; all by default.

    Yields:
        Pairs of a target and the number of its set, and the sets: [R, 1] or [R, N] each.

    Example:
        >>> members = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]], dtype=bool)
        >>> [(targets, len(sets)) for targets, sets in simulated_sets(members)]
        [([(0, 0), (1, 0), (2, 1), (3, 1)], 2)]
    """
    check_simulation(len(members))
    shared = shared_rows(members)
    if shared is None:
        for k in range(len(members)):
            yield [(k, 0)], [reference_rows(members, k)]
        return
    targets: list[tuple[int, int]] = []
    sets: dict[bytes, NDArray[np.intp]] = {}
    for k, rows in enumerate(shared):
        if most is not None and len(sets) == most and rows.tobytes() not in sets:
            yield targets, list(sets.values())
            targets, sets = [], {}
        sets.setdefault(rows.tobytes(), rows)
        targets.append((k, list(sets).index(rows.tobytes())))
    yield targets, list(sets.values())
