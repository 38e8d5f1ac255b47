"""The most exposed records, by shadow models alone: left out or counted less, and what that does to the others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.data import Population
from glasshouse.evaluation.roc import SortedScores, checked
from glasshouse.evidence import Evidence
from glasshouse.query.classify import query
from glasshouse.training.sklearn import SklearnTrainer


def most_exposed(evidence: Evidence, share: float = 0.1) -> BoolArray:
    """[N] the records on which shadow models differ most by whether they were trained on them.

    The target and its members do not count. A record's exposure is the difference of the two means of its margin (for a
    regression, of its residual) over its standard deviation; the variance is the mean of its own and that of all
    records, since few models say little about one record.

    Args:
        evidence: with at least one shadow model inside and one outside of each record.
        share: of the records.

    Example:
        >>> losses, members = [[0.1, 1.0], [2.0, 1.1]], [[1, 0], [0, 1]]
        >>> evidence = Evidence(target_loss=[1.0, 1.0], shadow_loss=losses, shadow_members=members)
        >>> most_exposed(evidence, 0.5)
        array([ True, False])
    """
    if not 0 < share < 1:
        raise InputError(f"share: {share:g} is not a share of the records between 0 and 1.")
    for inside in (True, False):
        evidence.require_side(inside=inside)
    margins, members = evidence.shadow_statistic, evidence.shadow_members
    sides = [np.where(side, margins, np.nan) for side in (members, ~members)]  # [K, N] each
    inner, outer = (np.nanmean(side, axis=0) for side in sides)
    variance = np.mean([np.nanvar(side, axis=0) for side in sides], axis=0)
    gap = np.abs(inner - outer) if evidence.regression else inner - outer
    exposure = gap / np.sqrt((variance + variance.mean()) / 2 + np.finfo(float).tiny)
    found = np.zeros(evidence.records, dtype=np.bool_)
    found[np.argsort(-exposure, kind="stable")[: max(1, round(share * len(found)))]] = True
    return found


def counting_less(trainer: Any, exposed: BoolArray, weight: float) -> SklearnTrainer:
    """The same trainer, for which some records [N] count as a part of a record."""
    if not isinstance(trainer, SklearnTrainer):
        raise InputError("trainer: only an estimator takes weights of records.")
    before = np.ones(len(exposed)) if trainer.weights is None else np.asarray(trainer.weights, dtype=np.float64)
    return dataclasses.replace(trainer, weights=np.where(exposed, weight * before, before))


def accuracy_on(model: Any, population: Population, others: BoolArray) -> float:
    """The accuracy of a model on the records ``others``, [N]: also on those that were left out of an audit."""
    return float(query(model, population.at(others)).correct.mean())


def effect(
    before: FloatArray, after: FloatArray, *, members: BoolArray, exposed: BoolArray, fpr: float, weight: float
) -> str:
    """What became of the exposed records and of the others, in words, at one false-positive rate.

    ``before`` and ``after`` are the scores [N] of two targets with the same members. Records that nobody trains on any
    more (weight 0) are not judged: what is said is about the others, and by their own threshold before and after.
    """
    judged = np.ones_like(exposed) if weight else ~exposed
    cuts = [SortedScores.of(*checked(scores[judged], members[judged])).cut_at(fpr) for scores in (before, after)]
    found = [scores >= cut for scores, cut in zip((before, after), cuts, strict=True)]
    rest = members & ~exposed
    was, now = (flags & rest for flags in found)
    new = int((now & ~was).sum())
    told = f"{int(exposed.sum())} records ({100 * exposed.mean():.0f} %), the most exposed by shadow models, "
    if weight:
        inside = members & exposed
        told += (
            f"count {weight:g} times: of their {int(inside.sum())} members {int((found[0] & inside).sum())} were found "
            f"before and {int((found[1] & inside).sum())} are now."
        )
    else:
        told += "train no model and are not judged; accuracy is on all non-members."
    told += f" Of the {int(rest.sum())} other members {int(was.sum())} were found before and {int(now.sum())} are now"
    if new:
        told += f"; {new} of these were not found before: a new training moves some by chance, and "
        told += "where the most exposed are gone, others become so (Carlini et al. 2022)"
    return f"{told}."
