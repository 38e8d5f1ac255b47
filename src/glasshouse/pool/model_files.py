"""Models as files, in our own formats: weights of modules that the trainer builds itself, answers of all other models.

Nothing else is ever read. A stored estimator could hold code, or numbers that compiled code follows without looking, so
of an estimator or a function a pool keeps what it answered about the records.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError
from glasshouse.core.optional import is_module
from glasshouse.data import AnyPopulation
from glasshouse.io.guarded import guarded
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import QueryOptions, query
from glasshouse.query.regress import population_predictions, predict

KINDS = ("torch", "answers")
_AGAIN = "Delete this model's files to train it again."


class StoredModel(NamedTuple):
    """A model as bytes: what kind it is, its content, and figures of its training."""

    kind: str
    content: bytes
    metrics: dict[str, float]


def kind_of(trainer: Any, population: AnyPopulation) -> str:
    """How a trainer's models are kept: ``"torch"`` weights if it can rebuild them (``restore``), else ``"answers"``."""
    if hasattr(trainer, "restore"):
        return "torch"
    if population.independent:
        return "answers"
    raise InputError(
        "pool: a model of your own trainer cannot be rebuilt from its weights, and an audit of a graph queries it "
        "again. Give the trainer a method restore(data, tensors), or leave out the pool."
    )


def stored(
    model: Any, trainer: Any, population: AnyPopulation, *, members: BoolArray, how: QueryOptions | None = None
) -> StoredModel:
    """A trained model as bytes, the same for the same weights; or its answers. With figures of its training."""
    if kind_of(trainer, population) == "answers":
        data, how = population.training_data, how or QueryOptions()
        if data.regression:
            kept = KeptAnswers(population_predictions(model, data, QueryOptions()))
        else:
            kept = how.kept(model, data)
        metrics = _metrics(kept, trainer, population, members, how)
        return StoredModel("answers", safetensors.numpy.save(kept.arrays()), metrics)
    if not is_module(model):
        raise InputError(
            f"pool: the trainer has a method restore, but made a {type(model).__name__} and not a torch module. "
            f"Return a module, or remove restore."
        )
    from safetensors.torch import save

    # copies, since tensors that share memory are written out one by one
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}
    return StoredModel("torch", save(tensors), _metrics(model, trainer, population, members, QueryOptions()))


def _metrics(
    model: Any, trainer: Any, population: AnyPopulation, members: BoolArray, how: QueryOptions
) -> dict[str, float]:
    """How well a model does on members and others; a trainer may have its own figures."""
    data = population.training_data
    if hasattr(trainer, "metrics"):
        return dict(trainer.metrics(data, members, model))
    if not population.independent:
        return {}
    if data.regression:
        return predict(model, data).figures(members)
    answers = query(model, data, how=how)
    figures = answers.figures(members)
    if not how.labels_only:
        figures["train_loss"] = float(answers.loss[members].mean())
    return {name: value for name, value in figures.items() if np.isfinite(value)}


def restored(kind: str, content: bytes, trainer: Any, population: AnyPopulation) -> Any:
    """The model again, or its answers; a kind that this trainer never makes is refused before it is read."""
    if kind != (wanted := kind_of(trainer, population)):
        raise InputError(
            f'is of kind "{kind}", but models of this trainer are of kind "{wanted}". It was not read: the pool was '
            f"changed. {_AGAIN}"
        )
    with guarded("its .safetensors file", what=f"a stored model of kind {kind}", advice=_AGAIN):
        if kind == "torch":
            from safetensors.torch import load

            return trainer.restore(population.training_data, load(content))
        return _answers(safetensors.numpy.load(content), len(population))


def _answers(arrays: dict[str, NDArray[Any]], records: int) -> KeptAnswers:
    """Kept answers [N, C], checked to be numbers about this population."""
    logits, correct = arrays["logits"], arrays.get("correct")
    fits = logits.dtype == np.float64 and logits.ndim == 2 and len(logits) == records and bool((logits < np.inf).all())
    if not fits or (correct is not None and (correct.dtype != np.bool_ or correct.shape != (records,))):
        raise InputError(f"does not hold answers about {records} records. {_AGAIN}")
    return KeptAnswers(logits, correct)
