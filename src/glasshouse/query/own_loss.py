"""A loss of the user's own in place of the likelihood of a class: any model that gives one, or one per part.

A part of a record is one token of a text, one label of several, or one output. The loss of a record is the sum of its
parts, which is the logarithm of a joint likelihood where each part is predicted from those before it, or parts are
independent given the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import as_array
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.numerics import not_finite, refuse_not_finite
from glasshouse.core.outputs import differing
from glasshouse.data import Population, select
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import ASKED_TWICE, UNSTEADY, Answers, QueryOptions

_ROUNDING = 1e-5  # a loss in float32 may be so far below 0
_ABOUT_LOSSES = "A model with NaN among its weights gives NaN; of a record without any part there is nothing to audit."


class Batch(NamedTuple):
    """Some records, as a loss is given them.

    Args:
        x: [B, ...] their features, in the form that the population holds.
        y: [B, ...] their outcomes or labels; [B, 0] if the population has none.
        ids: [B] their names.
    """

    x: Any
    y: NDArray[Any]
    ids: NDArray[Any]


Loss = Callable[[Any, Batch], Any]


@dataclass(frozen=True, kw_only=True)
class OwnLoss(QueryOptions):
    """Ask the target and all shadow models for a loss of the user's own.

    Args:
        loss: ``(model, batch) -> losses`` [B], or [B, T] of the parts of each record, with NaN where a record has no
            such part, as a short text among long ones; or a dict with "loss" and, of the same shape, more about each
            part. Losses are negative logarithms of likelihoods: small where a model fits well. An attribute ``density``
            that is True says that they may be negative, as of densities; an attribute ``whole``, that it needs all
            records in one batch.

    Example:
        >>> population = Population.for_loss([[1.0], [2.0]], [[0, 1], [1, 1]])
        >>> def loss(model, batch):  # a model that gives the probability of each of two labels
        ...     chance = model(batch.x)
        ...     return -np.log(np.where(batch.y == 1, chance, 1 - chance))
        >>> OwnLoss(loss=loss).answers(lambda x: np.full((len(x), 2), 0.5), population).loss.round(3)
        array([1.386, 1.386])
    """

    own: ClassVar[bool] = True

    loss: Loss

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.loss) or isinstance(self.loss, type):
            raise InputError("loss: give a function (model, batch) -> losses, one per record or [records, parts].")
        if self.temperature != 1.0:
            raise InputError("temperature: a loss of your own has none; leave it out.")

    def answers(self, model: Any, population: Population) -> Answers:
        """Losses of one model, and of their parts; whether its answers are right is not known."""
        if isinstance(model, KeptAnswers):
            parts = {"loss": np.where(np.isneginf(model.population_logits), np.nan, model.population_logits)}
        else:
            parts = self._parts(model, population)
        loss = np.nansum(parts["loss"], axis=1)
        return Answers(
            loss=loss,
            correct=np.empty(0, dtype=np.bool_),
            logits=None,
            notes=getattr(self.loss, "notes", ()),
            parts=parts if parts["loss"].shape[1] > 1 else None,
        )

    def kept(self, model: Any, population: Population) -> KeptAnswers:
        """The losses of all records and their parts, [N, T]; see `QueryOptions.kept`."""
        losses = self._parts(model, population)["loss"]
        return KeptAnswers(np.where(np.isnan(losses), -np.inf, losses).astype(np.float64))

    def _parts(self, model: Any, population: Population) -> dict[str, NDArray[Any]]:
        """[N, T] what the loss says about the parts of all records, by name."""
        size = len(population) if getattr(self.loss, "whole", False) else self.batch_size
        rows = np.split(np.arange(len(population)), range(size, len(population), size))
        loss = self.loss
        if len(rows) > 1 and (settled := getattr(loss, "settled", None)) is not None:
            loss = settled(model, _batch(population, rows[0]))
        found = [asked_losses(loss, model, _batch(population, part)) for part in rows]
        width = max(one["loss"].shape[1] for one in found)
        parts = {}
        for name, first in found[0].items():
            parts[name] = np.full((len(population), width), np.nan, dtype=first.dtype)
            for at, one in zip(rows, found, strict=True):
                parts[name][at, : one[name].shape[1]] = one[name]
        return parts

    def check(self, model: Any, population: Population) -> tuple[str, ...]:
        """Refuse a loss that fails on this model, before any shadow model is trained; warnings about the target."""
        if getattr(self.loss, "whole", False):
            return ()
        count = min(2 * ASKED_TWICE, len(population))
        batches = (_batch(population, np.arange(min(some, count))) for some in (count, ASKED_TWICE))
        asked = [asked_losses(self.loss, model, one) for one in batches]
        first, again = (np.nansum(one["loss"], axis=1) for one in asked)
        return (UNSTEADY,) if differing(first[: len(again)], again).any() else ()


def _batch(population: Population, rows: NDArray[np.intp]) -> Batch:
    return Batch(select(population.x, rows), population.y[rows], population.ids[rows])


def asked_losses(loss: Loss, model: Any, batch: Batch) -> dict[str, NDArray[Any]]:
    """[B, T] what a loss says about the parts of some records, by name; NaN where a record has no such part."""
    ids = batch.ids
    try:
        given = loss(model, batch)
    except InputError:
        raise
    except Exception as error:  # whatever the user's function raises
        raise InputError(f"loss: the function failed: {first_line(error).rstrip('.')}.") from error
    told = {name: as_array(one) for name, one in (given if isinstance(given, Mapping) else {"loss": given}).items()}
    losses, count = told.get("loss", np.empty(0)), len(ids)
    if losses.dtype.kind not in "iuf" or losses.ndim not in (1, 2) or len(losses) != count:
        raise InputError(
            f"loss: it answered {count} records with shape {losses.shape}, type {losses.dtype}; expected one "
            f"number per record, [{count}], or [{count}, T] with one per part and NaN where there is none."
        )
    for name, one in told.items():
        if one.shape != losses.shape:
            raise InputError(f"loss: {name!r} has shape {one.shape}, and the losses {losses.shape}; give both alike.")
    wide = {name: one.reshape(count, -1) for name, one in told.items()}
    absent = np.isnan(wide["loss"]) & (losses.ndim == 2)
    wrong = not_finite(np.where(absent, 0.0, wide["loss"])) | absent.all(axis=1)
    if wrong.any():
        refuse_not_finite(wrong, ids, place="loss", advice=_ABOUT_LOSSES)
    negative = (wide["loss"] < -_ROUNDING).any(axis=1)
    if negative.any() and not getattr(loss, "density", False):
        raise InputError(
            f"loss: negative for {int(negative.sum())} of {count} records, first {str(ids[negative][0])!r}. It is the "
            f"negative logarithm of a likelihood; if that is a density, which may exceed 1, give the function an "
            f"attribute density = True."
        )
    return wide | {"loss": wide["loss"].astype(np.float64)}


def with_own_loss(how: QueryOptions | None, loss: Loss | None, population: Population) -> QueryOptions | None:
    """How an attacker asks if a loss of the user's own is given: in the same batches and on the same device."""
    if loss is None:
        if population.own_loss:
            raise InputError(
                "population: it was made by Population.for_loss, and no loss was given; pass audit(…, loss=…), or make "
                "Population(x, y) with one label per record."
            )
        return how
    how = how or QueryOptions()
    if type(how) is not QueryOptions:
        raise InputError(f"loss: {type(how).__name__} asks for something else; leave out one of the two.")
    if population.regression:
        raise InputError("loss: a regression has its own likelihood; make Population.for_loss(x, y) for another one.")
    return OwnLoss(loss=loss, batch_size=how.batch_size, device=how.device, temperature=how.temperature)
