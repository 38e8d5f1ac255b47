r"""Evidence from a target and a shadow pool: each model is asked once and then released.

Of a regression: a Gaussian likelihood in place of the cross-entropy.

A regressor that predicts f(x) is read as the Gaussian :math:`p(y \mid x, \theta) = N(y; f_\theta(x), \sigma^2)`, of
which squared error is the negative logarithm:

.. math:: -\log p = \frac{(y - f_\theta(x))^2}{2 \sigma^2} + \frac12 \log 2 \pi \sigma^2

**One σ for all models of an audit**: the root mean squared residual of shadow models on records that they did not train
on. It is the maximum-likelihood estimate from predictions that no training has touched, and it uses neither the target
nor its members. Residuals inside training sets would make it too small, the more a model remembers.

**The loss is measured from the highest density** that any model of the audit can give (that of a prediction without
error): it is not negative, and exp(-loss) lies between 0 and 1, as a confidence does. With one σ it is the first term
alone. A constant that all models share cancels in BASE and in RMIA; RMIA's offline form, which replaces in-models by a
confidence of 1, then means models that predict the record without error.

**Models with a variance of their own** (mean and log-variance) are read as :math:`N(y; f_\theta(x), s_\theta(x)^2)`.
What is near normal over training sets is the residual itself, with its sign (`Evidence.target_statistic`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from glasshouse.core.arrays import BoolArray, FloatArray, TextArray
from glasshouse.core.errors import InputError, naming
from glasshouse.core.progress import track
from glasshouse.evidence.evidence import Evidence
from glasshouse.evidence.parts import PartLosses, Ragged
from glasshouse.pool import ShadowPool
from glasshouse.query.classify import Answers, QueryOptions, query
from glasshouse.query.regress import Predictions, predict
from glasshouse.query.vote_step import clipped_log_probabilities, clipped_losses, common_resolution, resolution_note

_OF_THE_RECORD = ("reference", "compressed")  # details that no model changes


def collect(
    target: Any, pool: ShadowPool, *, how: QueryOptions | None = None, progress: bool | None = None
) -> tuple[Evidence, Answers | Predictions]:
    """Evidence about every record, and the target's own answers; its predictions for a regression.

    If answers come in steps, as votes do, the confidences of all models are clipped half a step from 0 and 1. Memory
    holds one shadow model at a time and the losses [K, N] (and logits [K, N, C] if ``how`` keeps them).
    """
    how = how or pool.how
    population = pool.population
    if getattr(population, "regression", False):
        return _collect_predictions(target, pool, how, progress)
    every = _asked(target, pool, lambda model: query(model, population, how=how), progress)
    answers: Answers = next(every)
    resolutions: list[float | None] = []
    noticed: list[str] = []  # of shadow models
    shadow_loss = np.empty((len(pool), len(population)))
    shadow_parts: list[Ragged] = []
    kept = answers.logits
    logits = None if kept is None else np.empty((len(pool), *kept.shape), dtype=kept.dtype)
    for index, answer in enumerate(every):
        shadow_loss[index] = answer.loss
        if answer.parts is not None:
            shadow_parts.append(Ragged.of(answer.parts))
        if logits is not None:
            logits[index] = answer.logits
        resolutions.append(answer.resolution)
        noticed += answer.notes
    step = common_resolution(answers.resolution, resolutions)
    answers = answers._replace(loss=clipped_losses(answers.loss, step, temperature=how.temperature))
    if logits is not None and kept is not None and step is not None:
        answers = answers._replace(logits=clipped_log_probabilities(kept, step))
        for index, one in enumerate(logits):
            logits[index] = clipped_log_probabilities(one, step)
    who = "The model gives" if answers.resolution else "The shadow models give"
    odd = [note.replace("The model answers", "Shadow models answer") for note in dict.fromkeys(noticed)]
    if how.own:
        return _from_own_losses(answers, shadow_loss, shadow_parts, pool), answers._replace(parts=None)
    evidence = Evidence(
        target_loss=answers.loss,
        shadow_loss=clipped_losses(shadow_loss, step, temperature=how.temperature),
        shadow_members=pool.members,
        ids=population.ids,
        labels=population.y,
        target_logits=answers.logits,
        shadow_logits=logits,
        unit=getattr(population, "unit", None),
        notes=(*answers.notes, *(() if answers.notes else odd), *resolution_note(step, who=who)),
    )
    return evidence, answers


def _from_own_losses(
    answers: Answers, shadow_loss: FloatArray, shadow_parts: list[Ragged], pool: ShadowPool
) -> Evidence:
    """Evidence from losses of the user's own; those of densities are measured from the smallest of all models."""
    loss, parts = answers.loss, None
    if answers.parts is not None and len(shadow_parts) == len(pool):
        models = (own := Ragged.of(answers.parts), *shadow_parts)
        if any(not np.array_equal(one.offsets, own.offsets) for one in shadow_parts):
            raise InputError("loss: the target and the shadow models give losses of different parts of a record.")
        every = np.array([one.told.pop("loss") for one in models])
        every -= min(0.0, float(every.min()))
        details = {}
        for name in list(own.told):  # one after the other leaves its place, since together they are much
            rows = [one.told.pop(name) for one in models if name in one.told]
            alike = name in _OF_THE_RECORD or len(rows) <= len(pool)
            details[name] = np.array(rows[:1] if alike else rows)
        parts = PartLosses(target=every[0], shadow=every[1:], offsets=own.offsets, details=details)
    lowest = min(0.0, float(loss.min()), float(shadow_loss.min(initial=0.0)))
    return Evidence(
        target_loss=loss - lowest,
        shadow_loss=shadow_loss - lowest,
        shadow_members=pool.members,
        ids=pool.population.ids,
        parts=parts,
        unit=getattr(pool.population, "unit", None),
        notes=answers.notes,
    )


def _asked(target: Any, pool: ShadowPool, ask: Callable[[Any], Any], progress: bool | None) -> Iterator[Any]:
    """What the target answers, and then each shadow model in turn."""
    with naming("target"):
        yield ask(target)
    for index, model in enumerate(track(pool, total=len(pool), label="Shadow models", unit="models", show=progress)):
        with naming(f"shadow model {index}"):
            answer = ask(model)
        yield answer


def _collect_predictions(
    target: Any, pool: ShadowPool, how: QueryOptions, progress: bool | None
) -> tuple[Evidence, Predictions]:
    population = pool.population
    asked = list(_asked(target, pool, lambda model: predict(model, population, how=how), progress))
    variances = [one.log_variance for one in asked if one.log_variance is not None]
    if len(variances) not in (0, len(asked)):
        raise InputError(
            "model: of the target and the shadow models, some answer with a mean and a log-variance and some with a "
            "prediction alone; train them to answer alike."
        )
    evidence = regression_evidence(
        target=asked[0].mean,
        shadows=np.array([one.mean for one in asked[1:]]).reshape(-1, len(population)),
        members=pool.members,
        targets=asked[0].targets,
        log_variances=np.stack(variances) if variances else None,
        ids=population.ids,
        notes=asked[0].notes,
    )
    return evidence.with_units(getattr(population, "unit", None)), asked[0]


_SMALLEST_SPREAD = 1e-12  # of the targets' spread: smaller residuals are rounding errors


def outside_spread(residual: FloatArray, members: BoolArray) -> float:
    """σ: the root mean square of residuals [K, N] of shadow models on records that are not their members [K, N]."""
    if members.all():
        raise InputError("shadow_members: every shadow model trained on all records, so none shows what is usual.")
    return float(np.sqrt((residual**2).mean(where=~members)))


def gaussian_losses(residual: FloatArray, *, spread: float, log_variance: FloatArray | None = None) -> FloatArray:
    """Negative log-likelihoods of residuals [..., N], from the highest density of all models: none is negative.

    With one spread σ, or with the log_variance [..., N] that all models give together.
    """
    if log_variance is None:
        return np.asarray(0.5 * (residual / spread) ** 2)
    with np.errstate(over="ignore"):  # an infinite loss is refused with the record's name
        return np.asarray(0.5 * (residual**2 * np.exp(-log_variance) + log_variance - log_variance.min()))


def regression_evidence(
    *,
    target: FloatArray,  # [N] predictions
    shadows: FloatArray,  # [K, N] those of the shadow models
    members: BoolArray,  # [K, N] of each shadow model
    targets: FloatArray,  # [N] the true values
    log_variances: FloatArray | None = None,  # [1 + K, N] of the target and of the shadow models, if they give them
    ids: TextArray | None = None,
    notes: Sequence[str] = (),  # what was noticed about the answers
) -> Evidence:
    """Evidence from predictions."""
    own, theirs = targets - target, targets - shadows
    # without shadow models any scale will do: the attacks that are left only order the target's own losses
    usual = outside_spread(theirs, members) if len(theirs) else float(np.sqrt((own**2).mean()))
    spread = max(usual, _SMALLEST_SPREAD * float(targets.std()))
    residual = np.concatenate([own[None], theirs])
    loss = gaussian_losses(residual, spread=spread, log_variance=log_variances)
    whose = "the shadow models' error on records that they did not train on" if len(theirs) else "the model's own error"
    told = (
        f"The model predicts real numbers: the loss is a Gaussian's negative log-likelihood with one standard "
        f"deviation for all models, {spread:.4g}, {whose}."
        if log_variances is None
        else "The models predict a mean and a variance: the loss is the Gaussian's negative log-likelihood."
    )
    return Evidence(
        target_loss=loss[0],
        shadow_loss=loss[1:],
        shadow_members=members,
        ids=ids,
        target_residual=own / spread,
        shadow_residual=theirs / spread,
        notes=(told, *notes),
    )
