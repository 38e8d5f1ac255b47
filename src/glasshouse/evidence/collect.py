"""Evidence from a target and a shadow pool: each model is asked once and then released."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from glasshouse.core.arrays import FloatArray
from glasshouse.core.errors import InputError, naming
from glasshouse.core.progress import track
from glasshouse.evidence.evidence import Evidence
from glasshouse.evidence.parts import PartLosses, Ragged
from glasshouse.evidence.regression import regression_evidence
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
