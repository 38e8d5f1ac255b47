"""In-models and out-models of each record: their number, mean margin and spread around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import check_simulation, reference_rows
from glasshouse.numerics import loss_to_margin

__all__ = ["Moments", "SideMeans", "moments", "reference_sums", "simulated_means"]

Number = TypeVar("Number", bound=np.generic)
_BLOCK = 2048  # records that are handled at once: 64 models' values of them stay in the cache


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
    count = who.sum(axis=0).astype(np.float64)
    mean, squares = np.empty(len(count)), np.empty(len(count))
    for start in range(0, len(count), _BLOCK):
        some = slice(start, start + _BLOCK)
        mean[some] = (values[:, some] * who[:, some]).sum(axis=0) / count[some]
        squares[some] = ((values[:, some] - mean[some]) ** 2 * who[:, some]).sum(axis=0)
    return Moments(count, mean, squares)


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
    check_simulation(evidence.models)
    members = evidence.shadow_members
    margins = loss_to_margin(evidence.shadow_loss) if statistic is None else statistic  # [K, N]
    parts = {inside: np.where(members == inside, margins, 0.0) for inside in sides}
    counted = members.astype(np.int32)
    known: tuple[bytes, FloatArray] = (b"", np.empty(0))
    for k in range(evidence.models):
        rows = reference_rows(members, k)
        if rows.tobytes() != known[0]:
            means = np.empty((evidence.records, len(sides)))
            inside_models = reference_sums(counted, rows)
            for number, inside in enumerate(sides):
                count = inside_models if inside else len(rows) - inside_models
                if not count.all():
                    evidence.among(rows, model=k).require_side(inside=inside)
                means[:, number] = reference_sums(parts[inside], rows) / count.astype(np.float64)
            known = (rows.tobytes(), means)
        yield SideMeans(known[1], margins[k], members[k])


def reference_sums(values: NDArray[Number], rows: NDArray[np.intp]) -> NDArray[Number]:
    """Sums [N] of values [K, N] over rows of the pool: [R, 1] the same for all records, or [R, N] record by record.

    Example:
        >>> reference_sums(np.array([[1, 2], [3, 4], [5, 6]]), np.array([[0], [2]]))
        array([6, 8])
    """
    if rows.shape[1] > 1:
        return np.asarray(values[rows, np.arange(values.shape[1])].sum(axis=0))
    total = values[rows[0, 0]].copy()
    for row in rows[1:, 0].tolist():  # added up in the same order as by numpy, and no copy of the rows is made
        total += values[row]
    return np.asarray(total)
