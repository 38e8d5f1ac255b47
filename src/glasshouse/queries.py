"""Ask a model about every record: logits and losses, batched, on the model's own device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from glasshouse.errors import InputError
from glasshouse.numerics import FloatArray, logits_from_probabilities, losses_from_logits
from glasshouse.population import BoolArray, Population, select
from glasshouse.training.batches import tensor_of

__all__ = ["Answers", "Query", "accuracy", "model_logits", "query"]


@dataclass(frozen=True, kw_only=True)
class Query:
    """How a model is asked.

    Args:
        batch_size: records at once.
        temperature: logits are divided by it before the loss is taken; 1 leaves them as they are.
        device: where a torch module answers; where its weights are, by default.
        keep_logits: whether all classes are kept, for attacks that look at more than the loss.

    Example:
        >>> Query(temperature=2.0).batch_size
        1024
    """

    batch_size: int = 1024
    temperature: float = 1.0
    device: str | None = None
    keep_logits: bool = False

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"temperature: {self.temperature} is not positive; 1 leaves the logits as they are.")


class Answers(NamedTuple):
    """A model's answers about a population: losses [N], whether right [N], and logits [N, C] where kept."""

    loss: FloatArray
    correct: BoolArray
    logits: NDArray[np.float32] | None


def query(model: Any, population: Population, *, how: Query | None = None) -> Answers:
    """Losses of one model on every record, float64.

    Args:
        model: a torch module giving logits, an estimator with ``predict_proba``, or a callable ``x -> logits``. One
            logit a record means a binary model.
        population: the records to ask about.
        how: batches, temperature and device.

    Example:
        >>> population = Population(np.array([[2.0], [-1.0]]), [1, 0])
        >>> query(lambda x: x[:, 0], population).loss.round(4)  # one logit
        array([0.1269, 0.3133])
    """
    how = how or Query()
    loss = np.empty(len(population))
    correct = np.empty(len(population), dtype=np.bool_)
    kept = np.empty((len(population), len(population.classes)), dtype=np.float32) if how.keep_logits else None
    for rows, logits in model_logits(model, population, how=how):
        labels = population.y[rows]
        loss[rows] = losses_from_logits(logits, labels, temperature=how.temperature)
        correct[rows] = logits.argmax(axis=1) == labels
        if kept is not None:
            kept[rows] = logits / how.temperature
    return Answers(loss, correct, kept)


def accuracy(answers: Answers, who: BoolArray) -> float:
    """Share of right answers among the records of a mask; NaN where the mask is empty.

    Example:
        >>> accuracy(Answers(np.zeros(2), np.array([True, False]), None), np.array([True, True]))
        0.5
    """
    return float(answers.correct[who].mean()) if who.any() else float("nan")


def model_logits(model: Any, population: Population, *, how: Query) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
    """Rows and their logits [rows, C], batch by batch, columns in the order of ``population.classes``."""
    kept = getattr(model, "population_logits", None)  # of a model whose answers were kept, and nothing else
    ask = None if kept is not None else _asker(model, population, how)
    for start in range(0, len(population), how.batch_size):
        rows = np.arange(start, min(start + how.batch_size, len(population)))
        if ask is None:
            yield rows, _widened(np.asarray(kept)[rows], len(rows), len(population.classes))
            continue
        yield rows, _widened(ask(select(population.x, rows)), len(rows), len(population.classes))


def _asker(model: Any, population: Population, how: Query) -> Callable[[Any], Any]:
    """How to put a batch of records to a model of this kind."""
    if isinstance(model, nn.Module):
        weights = next(model.parameters(), None)
        device = torch.device(how.device or (weights.device if weights is not None else "cpu"))
        model = model.to(device).eval()

        def ask_module(x: Any) -> FloatArray:
            with torch.inference_mode():
                return model(tensor_of(x).to(device)).double().cpu().numpy()  # type: ignore[no-any-return]

        return ask_module
    if hasattr(model, "predict_proba"):
        columns = _columns(model, population)

        def ask_estimator(x: Any) -> FloatArray:
            known = model.predict_proba(x)
            everyone = np.zeros((len(known), len(population.classes)), dtype=known.dtype)
            everyone[:, columns] = known
            return logits_from_probabilities(everyone)

        return ask_estimator
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise InputError(
        f"model: {type(model).__name__} cannot be asked. Give a torch module, an estimator with predict_proba, "
        f"or a callable x -> logits."
    )


def _columns(model: Any, population: Population) -> NDArray[np.int64]:
    """Where the estimator's classes stand among the population's; one that it never saw has probability 0."""
    known = np.asarray(model.classes_)
    outside = ~np.isin(known, population.classes)
    if outside.any():
        raise InputError(
            f"model: it knows the class {known[outside].tolist()[0]!r}, which is not among the population's classes "
            f"{population.classes.tolist()}. Give the population all classes: Population(x, y, classes=...)."
        )
    return np.searchsorted(population.classes, known).astype(np.int64)


def _widened(answer: Any, records: int, classes: int) -> FloatArray:
    """Logits as [records, classes] in float64; a single logit z becomes [0, z]."""
    if isinstance(answer, torch.Tensor):
        answer = answer.detach().double().cpu().numpy()
    logits = np.asarray(answer, dtype=np.float64)
    if classes == 2 and logits.size == records:
        return np.stack([np.zeros(records), logits.reshape(records)], axis=1)
    if logits.shape != (records, classes):
        raise InputError(
            f"model: it answered {records} records with shape {logits.shape}; expected [{records}, {classes}], one "
            f"logit for each of the population's {classes} classes."
        )
    return logits
