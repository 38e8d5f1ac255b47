"""The loss trace: losses of a model on every record while it is trained, recorded by its owner."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.core.arrays import FloatArray, TextArray
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import check_finite
from glasshouse.data import Population, select
from glasshouse.query.classify import QueryOptions, query

_STAGES = 32  # of a boosted model, at most; more tell little


class LossTrace:
    """Losses of one model on every record at several moments of its training, [T, N].

    Call `record` after every epoch, from any training loop: it changes neither the weights nor the random numbers.
    `TorchTrainer` takes it as ``after_epoch=trace.record``; a boosted scikit-learn model has its stages,
    ``trace.record_stages(model)``.

    Args:
        population: the records, members and others.
        how: batch size and device of the queries.

    Example:
        >>> population = Population(np.array([[2.0], [-1.0]]), [1, 0])
        >>> trace = LossTrace(population)
        >>> for weight in (0.0, 1.0, 3.0):  # a training loop
        ...     trace.record(lambda x, weight=weight: weight * x[:, 0])
        >>> trace.losses.shape
        (3, 2)
        >>> trace.falls().round(2)  # both records were learned
        array([0.69, 0.64])
    """

    def __init__(self, population: Population, *, how: QueryOptions | None = None) -> None:
        self.population = population
        self.how = how
        self._rows: list[FloatArray] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"LossTrace({len(self)} moments, {len(self.population)} records)"

    def record(self, model: Any) -> None:
        """Ask the model, as it is now, about every record; a torch module is left in the mode it was in."""
        training = getattr(model, "training", None)
        self._rows.append(query(model, self.population, how=self.how).loss)
        if training is True:
            model.train()

    def record_stages(self, model: Any) -> None:
        """Record a boosted model after several of its rounds, by its ``staged_predict_proba``."""
        stages = getattr(model, "staged_predict_proba", None)
        if stages is None:
            raise InputError(
                f"trace: {type(model).__name__} has no staged_predict_proba. Call record(model) after every epoch or "
                f"partial_fit instead."
            )
        how = replace(self.how or QueryOptions(), batch_size=len(self.population))  # a stage answers about all at once
        # memory holds one stage: each is asked when its turn comes, and only some are kept
        count = sum(1 for _ in stages(select(self.population.x, np.arange(1))))
        kept = set(np.linspace(0, count - 1, min(count, _STAGES)).round().astype(int).tolist())
        for number, answer in enumerate(stages(self.population.x)):
            if number in kept:
                stage = SimpleNamespace(classes_=model.classes_, predict_proba=lambda _, answer=answer: answer)
                self._rows.append(query(stage, self.population, how=how).loss)

    @property
    def losses(self) -> FloatArray:
        """[T, N]; at least two moments."""
        if len(self._rows) < 2:
            raise InputError(
                f"trace: {len(self._rows)} moments were recorded; call record(model) after every epoch, two or more."
            )
        return np.stack(self._rows)

    def falls(self) -> FloatArray:
        """[N] how far the loss fell: mean over the first quarter of the trace minus mean over the last quarter."""
        return loss_falls(self.losses)

    def ranges(self) -> FloatArray:
        """[N] interquartile ranges of the losses over time (LT-IQR; Pollock et al., 2024).

        It orders *members*: one whose loss fell late and far is more likely to be found by attacks. It does not tell
        members from others, since the loss of a non-member may rise as far.
        """
        low, high = np.quantile(self.losses, [0.25, 0.75], axis=0)
        return np.asarray(high - low)


def loss_falls(losses: FloatArray) -> FloatArray:
    """[N] mean of the first quarter of the rows [T, N] minus mean of the last quarter."""
    quarter = max(1, len(losses) // 4)
    return np.asarray(losses[:quarter].mean(axis=0) - losses[-quarter:].mean(axis=0))


def traced_losses(
    trace: LossTrace | ArrayLike | None, records: int, *, ids: TextArray | None = None
) -> FloatArray | None:
    """[T, N] losses of a trace in any form; refused if they are about other records."""
    if trace is None:
        return None
    losses = trace.losses if isinstance(trace, LossTrace) else np.asarray(trace, dtype=np.float64)
    if losses.ndim != 2 or losses.shape[1] != records or len(losses) < 2:
        raise InputError(
            f"trace: shape {losses.shape} does not fit {records} records; expected [T, {records}], one row per "
            f"recorded moment, two or more. Record the trace with the population that is audited."
        )
    check_finite(losses.T, np.arange(records).astype(str) if ids is None else ids, place="trace")
    if (losses < 0).any():
        raise InputError("trace: it holds losses that are negative; check the model's answers there.")
    return losses
