"""Attack-R (Ye et al., CCS 2022): the rank of the target's loss among models without the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from glasshouse.arrays import BoolArray, FloatArray, IntArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.registry import register
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import check_simulation, left_out_models, rows_without
from glasshouse.numerics import loss_to_margin
from glasshouse.threads import over_records

__all__ = ["AttackR"]

_WIDEST = 710.0  # margins of losses that float64 can resolve are within this


@register("attack-r")
@dataclass(frozen=True, kw_only=True)
class AttackR(Attack):
    """Share of out-models with a larger loss than the target's, ties count half. It has no online form.

    1 minus the share estimates the false-positive rate at which a record is called a member. With few out-models it
    takes few values: with four, all members of an overfitted model and a fifth of the others have the highest value.
    So records with the same share are ordered by the target's loss, which adds less than half a step between shares.

    Example:
        >>> evidence = Evidence(
        ...     target_loss=[0.6, 2.0], shadow_loss=[[0.5, 1.0], [0.7, 1.2]], shadow_members=[[0, 0], [0, 1]]
        ... )
        >>> AttackR().score(evidence).round(2)
        array([0.56, 0.12])
    """

    quick_simulation: ClassVar[bool] = True

    def score(self, evidence: Evidence) -> FloatArray:
        """Shares, [N], each with less than half a step added by the margin of the target."""
        outside = evidence.references("offline")
        larger = (evidence.shadow_loss > evidence.target_loss).sum(axis=0, where=outside)
        equal = (evidence.shadow_loss == evidence.target_loss).sum(axis=0, where=outside)
        return _shares(evidence.target_loss, larger, equal, outside.sum(axis=0))

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members of each simulated target: all models are ranked once, and a few are taken off again."""
        check_simulation(evidence.models)
        loss, outside = evidence.shadow_loss, ~evidence.shadow_members
        ranks, total = _ranks(loss, outside), outside.sum(axis=0)
        for k, left in enumerate(left_out_models(evidence.shadow_members)):
            at = (left, np.arange(evidence.records))
            gone, away = outside[at], loss[at]
            count = total - gone.sum(axis=0)
            if not count.all():
                evidence.among(rows_without(left, evidence.models)).require_side(inside=False)
            larger = ranks[0, k] - (gone & (away > loss[k])).sum(axis=0)
            equal = ranks[1, k] - (gone & (away == loss[k])).sum(axis=0)
            yield _shares(loss[k], larger, equal, count), evidence.shadow_members[k]

    def queries(self, evidence: Evidence) -> QueryCount:
        """The target and the out-models."""
        return QueryCount(1 + float((~evidence.shadow_members).sum(axis=0).mean()))


def _shares(loss: FloatArray, larger: IntArray, equal: IntArray, count: IntArray) -> FloatArray:
    """Scores [N] from the target's losses and the numbers of out-models: with a larger loss, with the same, and all."""
    margin = np.clip(loss_to_margin(loss), -_WIDEST, _WIDEST)
    within = 0.5 + 0.499 * margin / _WIDEST  # in (0, 1), linear, so that different margins stay different
    return np.asarray(larger / count + equal / count / 2 + within / (4 * count))


def _ranks(loss: FloatArray, outside: BoolArray) -> IntArray:
    """[2, K, N] how many out-models of a record have a larger loss than model k, and how many the same.

    Example:
        >>> _ranks(np.array([[1.0], [2.0], [2.0]]), np.array([[True], [True], [False]])).tolist()
        [[[1], [0], [0]], [[1], [1], [1]]]
    """
    found = np.empty((2, *loss.shape), dtype=np.int64)

    def write(some: slice) -> None:
        order = np.argsort(loss[:, some], axis=0)
        ranked = np.take_along_axis(loss[:, some], order, axis=0)
        upto = np.cumsum(np.take_along_axis(outside[:, some], order, axis=0), axis=0)  # out-models, from the smallest
        new = np.pad(ranked[1:] != ranked[:-1], ((1, 1), (0, 0)), constant_values=True)  # where other losses begin
        places = np.arange(len(loss))[:, None]
        first = np.maximum.accumulate(np.where(new[:-1], places, 0), axis=0)
        last = np.minimum.accumulate(np.where(new[1:], places, len(loss))[::-1], axis=0)[::-1]
        top = np.take_along_axis(upto, last, axis=0)
        same: IntArray = top - np.take_along_axis(np.pad(upto, ((1, 0), (0, 0))), first, axis=0)
        for part, values in zip(found, (upto[-1] - top, same), strict=True):
            np.put_along_axis(part[:, some], order, values, axis=0)

    over_records(write, loss.shape[1], models=len(loss))
    return found
