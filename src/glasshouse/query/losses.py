"""A loss of the user's own in place of the likelihood of a class, for ``audit(…, loss=…)``, and ready-made ones.

A part of a record is one token of a text, one label of several, or one output. The loss of a record is the sum of its
parts, which is the logarithm of a joint likelihood where each part is predicted from those before it, or parts are
independent given the record.

Each ready-made one is the negative logarithm of the likelihood that a model gives to what happened, in parts where a
record has several outcomes. A loss is called with a model of any kind and a batch: it asks the model and reads its
answer.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, log_expit, log_softmax, xlogy

from glasshouse.core.arrays import FloatArray, as_array
from glasshouse.core.errors import InputError, first_line
from glasshouse.core.numerics import not_finite, refuse_not_finite
from glasshouse.core.optional import is_module
from glasshouse.core.outputs import differing, looks_like_probabilities, unwrapped
from glasshouse.data import Population, select
from glasshouse.query.adapters import KeptAnswers, module_asker
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


_TINY = 1e-12  # a probability of 0 of what happened: a loss of 28, not infinity


@dataclass(frozen=True, kw_only=True)
class OutputLoss(abc.ABC):
    """A loss that a model's answer and the outcomes determine; a subclass says how."""

    density: ClassVar[bool] = False  # whether losses may be negative
    whole: ClassVar[bool] = False  # whether it needs all records in one batch

    def __call__(self, model: Any, batch: Batch) -> FloatArray:
        """Losses [B] or [B, T]."""
        return self.of_answer(_answer(model, batch), batch.y)

    @abc.abstractmethod
    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B] or [B, T] from what the model answered about the records, and their outcomes [B, ...]."""


def _answer(model: Any, batch: Batch) -> Any:
    """What a model of any kind answers about a batch: its ``predict_proba`` if it has one, else its ``predict``."""
    if is_module(model):
        asked: Any = batch  # of which it looks at the features alone
        return unwrapped(module_asker(model, asked)(batch.x))
    for method in ("predict_proba", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(batch.x)
    return model(batch.x)


def _fitting(answer: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    """An answer as numbers of this shape; another one is refused."""
    values = as_array(answer).astype(np.float64)
    if values.size != np.prod(shape) or values.shape[:1] != shape[:1]:
        raise InputError(f"loss: the model answered with shape {values.shape}; expected {what}, {list(shape)}.")
    return values.reshape(shape)


@dataclass(frozen=True, kw_only=True)
class BinaryLoss(OutputLoss):
    """A loss of things that happened or not, each with a logit or a probability.

    Args:
        probabilities: whether the model gives probabilities. None: it does if all its answers lie between 0 and 1.
    """

    probabilities: bool | None = None

    def settled(self, model: Any, batch: Batch) -> BinaryLoss:
        """The same loss after a look at many answers: a few logits may lie between 0 and 1 by chance."""
        if self.probabilities is not None:
            return self
        return replace(self, probabilities=_are_shares(_of_labels(_answer(model, batch))))

    def of_values(self, values: FloatArray, happened: NDArray[Any]) -> FloatArray:
        """Losses of what happened or not, [B, L], from logits or probabilities [B, L]."""
        if _are_shares(values) if self.probabilities is None else self.probabilities:
            return np.asarray(-np.log(np.maximum(np.where(happened, values, 1 - values), _TINY)))
        return np.asarray(-log_expit(np.where(happened, values, -values)))


def _are_shares(values: FloatArray) -> bool:
    return bool(values.min() >= 0 and values.max() <= 1)


def _of_labels(answer: Any) -> FloatArray:
    """An answer about labels as numbers [B, L]; of scikit-learn's list of L arrays [B, 2], the second columns."""
    if isinstance(answer, list):
        if any(np.shape(one)[1:] != (2,) for one in answer):
            raise InputError("loss: a label has only one value among the members; leave it out of the outcomes.")
        return np.stack([np.asarray(one)[:, 1] for one in answer], axis=1).astype(np.float64)
    return as_array(answer).astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class MultiLabelLoss(BinaryLoss):
    """Each of several labels is there or not: the binary cross-entropy of every label.

    The model gives logits [B, L] (a torch module), probabilities [B, L], or as scikit-learn a list of L arrays [B, 2].
    Outcomes are 0 and 1, [N, L].

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([[1, 0]]), np.array(["a"]))
        >>> MultiLabelLoss()(lambda x: np.array([[0.5, 0.25]]), batch).round(3)
        array([[0.693, 0.288]])
    """

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B, L] of the labels."""
        return self.of_values(_fitting(_of_labels(answer), y.shape, "one number per label"), y == 1)


@dataclass(frozen=True, kw_only=True)
class MultiOutputLoss(OutputLoss):
    """Several classes are predicted for each record: the cross-entropy of every output.

    The model gives a list of O arrays [B, C_o] (logits or probabilities), or one array [B, O, C]. Outcomes are columns
    0..C_o - 1, [N, O].

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([[0, 2]]), np.array(["a"]))
        >>> answer = [np.array([[0.5, 0.5]]), np.array([[0.25, 0.25, 0.5]])]
        >>> MultiOutputLoss()(lambda x: answer, batch).round(3)
        array([[0.693, 0.693]])
    """

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B, O] of the outputs."""
        parts = list(answer) if isinstance(answer, list | tuple) else list(np.moveaxis(as_array(answer), 1, 0))
        if len(parts) != y.shape[1]:
            raise InputError(f"loss: the model answers about {len(parts)} outputs, and there are {y.shape[1]}.")
        return np.stack([_cross_entropy(as_array(one), y[:, at]) for at, one in enumerate(parts)], axis=1)


def _cross_entropy(answer: NDArray[Any], y: NDArray[Any]) -> FloatArray:
    if answer.ndim != 2 or y.max(initial=0) >= answer.shape[1]:
        raise InputError(f"loss: shape {answer.shape} of one output; expected a column for each of its classes.")
    likely = looks_like_probabilities(answer)
    known = np.log(np.maximum(answer, _TINY)) if likely else log_softmax(answer.astype(np.float64), axis=1)
    return np.asarray(-known[np.arange(len(y)), y.astype(np.intp)])


@dataclass(frozen=True, kw_only=True)
class GaussianLoss(OutputLoss):
    """Several real numbers are predicted: Gaussian with a known standard deviation for each.

    Args:
        scale: the standard deviation of what models get wrong on records that they were not trained on: one number,
            or one per output. The smaller it is, the more a small error says.

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([[1.0, 4.0]]), np.array(["a"]))
        >>> GaussianLoss(scale=2.0)(lambda x: np.array([[1.0, 0.0]]), batch)
        array([[0., 2.]])
    """

    scale: float | Sequence[float]

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B, O], from the highest density on."""
        error = (_fitting(answer, y.shape, "one number per output") - y) / _positive(self.scale, "scale")
        return np.asarray(0.5 * error**2)


@dataclass(frozen=True, kw_only=True)
class PoissonLoss(OutputLoss):
    """Counts with a predicted mean.

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([2]), np.array(["a"]))
        >>> PoissonLoss()(lambda x: np.array([2.0]), batch).round(3)
        array([1.307])
    """

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses of the counts, [B, ...]."""
        mean = np.maximum(_fitting(answer, y.shape, "one mean per count"), _TINY)
        return np.asarray(mean - xlogy(y, mean) + gammaln(y + 1.0))


@dataclass(frozen=True, kw_only=True)
class QuantileLoss(OutputLoss):
    """Quantiles of a real number are predicted: the pinball loss of each, an asymmetric Laplace likelihood.

    Args:
        quantiles: their levels, in the order of the model's outputs.
        scale: what the loss is divided by: its mean on records that a model was not trained on.

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([3.0]), np.array(["a"]))
        >>> QuantileLoss(quantiles=[0.1, 0.9])(lambda x: np.array([[1.0, 5.0]]), batch).round(3)
        array([[0.2, 0.2]])
    """

    quantiles: Sequence[float]
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not len(self.quantiles) or not all(0 < one < 1 for one in self.quantiles):
            raise InputError(f"quantiles: give levels between 0 and 1, not {list(self.quantiles)}.")

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B, Q] of the quantiles."""
        levels = np.asarray(self.quantiles, dtype=np.float64)
        error = y.reshape(-1, 1) - _fitting(answer, (len(y), len(levels)), "one number per quantile")
        return np.asarray(np.maximum(levels * error, (levels - 1) * error) / _positive(self.scale, "scale"))


@dataclass(frozen=True, kw_only=True)
class CoxLoss(OutputLoss):
    """A proportional-hazards model: the term of each record in Cox's partial likelihood, among all records.

    The model gives a log-risk per record. Outcomes are [N, 2]: the time, and 1 for an event or 0 for the end of
    observation; or a structured array with one field of truth values and one of times. A record without an event has no
    term of its own, so its loss is what its presence adds to the risk at the events before it (Breslow).

    Example:
        >>> batch = Batch(np.zeros((2, 1)), np.array([[1.0, 1.0], [2.0, 0.0]]), np.array(["a", "b"]))
        >>> CoxLoss()(lambda x: np.zeros(2), batch).round(3)
        array([1.193, 0.5  ])
    """

    whole: ClassVar[bool] = True

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [N]: cumulative hazard, and for an event minus the logarithm of its hazard."""
        time, event = _survival(y)
        risk = _fitting(answer, time.shape, "one log-risk per record")
        risk = risk - risk.max()
        order = np.argsort(-time, kind="stable")
        at_risk = np.empty(len(time))
        at_risk[order] = np.cumsum(np.exp(risk[order]))
        last = np.searchsorted(-time[order], -time, side="right") - 1  # ties are at risk together
        at_risk = at_risk[order][last]
        hazard = event / at_risk
        before = np.argsort(time, kind="stable")
        summed = np.cumsum(hazard[before])[np.searchsorted(time[before], time, side="right") - 1]
        return np.asarray(np.exp(risk) * summed - event * (risk - np.log(at_risk)))


@dataclass(frozen=True, kw_only=True)
class DiscreteSurvivalLoss(BinaryLoss):
    """A survival model over intervals: the chance of the event in each interval that a record reached.

    The model gives logits [B, T], or probabilities. Outcomes are [N, 2]: in which interval, from 0, the event happened
    or the observation ended; and 1 for an event.

    Example:
        >>> batch = Batch(np.zeros((1, 1)), np.array([[1, 1]]), np.array(["a"]))
        >>> DiscreteSurvivalLoss()(lambda x: np.array([[0.5, 0.25, 0.9]]), batch).round(3)
        array([[0.693, 1.386,   nan]])
    """

    def of_answer(self, answer: Any, y: NDArray[Any]) -> FloatArray:
        """Losses [B, T] of the intervals; NaN after the last one that a record reached."""
        last, event = _survival(y)
        values = as_array(answer).astype(np.float64)
        if values.ndim != 2 or len(values) != len(y) or last.max() >= values.shape[1] or (last < 0).any():
            raise InputError(f"loss: shape {values.shape} does not fit; expected a column for each interval of y.")
        at = np.arange(values.shape[1])
        happened = (at == last[:, None]) & (event[:, None] == 1)
        return np.where(at <= last[:, None], self.of_values(values, happened), np.nan)


def _survival(y: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Times and events, [B] each."""
    if y.dtype.names:
        events = [name for name in y.dtype.names if y.dtype[name].kind == "b"]
        times = [name for name in y.dtype.names if name not in events]
        if len(events) == 1 and len(times) == 1:
            return y[times[0]].astype(np.float64), y[events[0]].astype(np.float64)
    if y.ndim != 2 or y.shape[1] != 2 or not np.isin(y[:, 1], (0, 1)).all():
        raise InputError("loss: outcomes of a survival model are [N, 2]: the time, and 1 for an event or 0.")
    return y[:, 0].astype(np.float64), y[:, 1].astype(np.float64)


def _positive(values: ArrayLike, name: str) -> FloatArray:
    found = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(found) & (found > 0)).all():
        raise InputError(f"{name}: {found.tolist()} is not positive.")
    return found
