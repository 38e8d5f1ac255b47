"""Ask a regressor about every record: predictions, and variances if it gives them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import check_finite
from glasshouse.core.outputs import array_of, of_tokens, unwrapped
from glasshouse.data import Population, select
from glasshouse.query.adapters import KeptAnswers, asker
from glasshouse.query.classify import QueryOptions

_TWO_NOTE = (
    "The model answers with two numbers per record; they are used as the mean and the logarithm of the variance of a "
    "Gaussian."
)


class Predictions(NamedTuple):
    """A regressor's answers about a population."""

    mean: FloatArray  # [N] predictions
    targets: FloatArray  # [N] the true values
    log_variance: FloatArray | None = None  # [N] logarithms of the variances; None if the model gives none
    notes: tuple[str, ...] = ()  # what was noticed about the answers, in sentences for a report

    @property
    def residual(self) -> FloatArray:
        """[N] true value minus prediction."""
        return self.targets - self.mean

    def figures(self, members: BoolArray) -> dict[str, float]:
        """Root mean squared error and R² on members [N] and on others; what has no value is left out."""
        found: dict[str, float] = {}
        for name, who in (("train", members), ("test", ~members)):
            if who.any():
                error = float((self.residual[who] ** 2).mean())
                found[f"{name}_rmse"] = error**0.5
                if (spread := float(self.targets[who].var())) > 0:
                    found[f"{name}_r2"] = 1 - error / spread
        return found


def predict(model: Any, population: Population, *, how: QueryOptions | None = None) -> Predictions:
    """What a regressor predicts for every record, float64, by a module, an estimator or a callable.

    One number per record is the prediction; two, [N, 2], are the mean and the logarithm of the variance.
    """
    how = how or QueryOptions()
    if how.labels_only:
        raise InputError("query: a regression has no labels to ask for; leave out LabelOnly.")
    if how.classes_only:
        raise InputError(f"query: a regression has no probabilities; leave out {type(how).__name__}.")
    answers = population_predictions(model, population, how)
    check_finite(answers, population.ids, place="model")
    mean = answers[:, 0]
    if answers.shape[1] == 1:
        return Predictions(mean, population.y)
    return Predictions(mean, population.y, answers[:, 1], (_TWO_NOTE,))


def population_predictions(model: Any, population: Population, how: QueryOptions) -> FloatArray:
    """Answers [N, 1] or [N, 2] about every record, as a pool keeps them of a model that it cannot store."""
    if isinstance(model, KeptAnswers):
        return model.population_logits
    ask = asker(model, population, device=how.device, what="predictions")
    batches = np.split(np.arange(len(population)), range(how.batch_size, len(population), how.batch_size))
    parts = [_columns(ask(select(population.x, rows)), len(rows)) for rows in batches]
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError("model: it answers some records with one number and others with two; give one of the two.")
    return np.concatenate(parts)


def _columns(answer: Any, records: int) -> FloatArray:
    """Answers about a batch, [B, 1] or [B, 2]."""
    if isinstance(answer, tuple | list) and len(answer) == 2 and all(hasattr(one, "shape") for one in answer):
        raise InputError(
            "model: it answers with two arrays. Give one, [N] with predictions, or [N, 2] with the mean and the "
            "logarithm of the variance."
        )
    values = np.asarray(array_of(unwrapped(answer)), dtype=np.float64)
    if values.size == records:
        return values.reshape(-1, 1)
    if values.shape == (records, 2):
        return values
    raise InputError(
        f"model: it answered {records} records with shape {values.shape}; a regression expects [{records}] "
        f"predictions, or [{records}, 2] with the mean and the logarithm of the variance.{of_tokens(values.shape)}"
    )
