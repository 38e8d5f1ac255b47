"""From what a file may hold (losses, logits, probabilities) to what an attack needs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import IntArray, TextArray
from glasshouse.errors import InputError
from glasshouse.evidence.evidence import checked_losses
from glasshouse.losses import losses_from_logits
from glasshouse.numerics import check_finite, finite_logits, logits_from_probabilities
from glasshouse.resolution import (
    ShareFinder,
    StepFinder,
    clipped_log_probabilities,
    clipped_losses,
    common_resolution,
    resolution_note,
    shares_note,
    whole_shares,
)

__all__ = ["Arrays", "outputs_to_losses"]

Arrays = dict[str, NDArray[Any]]


def outputs_to_losses(
    kind: str,
    target: NDArray[Any],
    shadow: NDArray[Any],
    labels: NDArray[Any] | None,
    ids: TextArray,
) -> dict[str, Any]:
    """The loss, label and logit arguments of `Evidence` from one kind of output, and notes on how they were handled.

    Probabilities that come in steps, as votes do, are clipped half a step from 0 and 1, in the same way for all models;
    rounded ones, and those of the likeliest classes alone, are recognised over all records. What is not finite is
    refused, and so are negative losses, before anything is clipped.

    Args:
        kind: ``"loss"``, ``"logits"`` or ``"probabilities"``.
        target: [N] or [N, C].
        shadow: [K, N] or [K, N, C].
        labels: [N] columns of the true classes; not needed for losses.
        ids: [N] record ids, to name a record in an error.

    Example:
        >>> two = np.array([[0.0, 0.0], [1.0, 1.0]])
        >>> given = outputs_to_losses("logits", two, two[None], np.array([0, 1]), np.array(["a", "b"]))
        >>> given["target_loss"].round(3)
        array([0.693, 0.693])
    """
    if kind == "loss":
        target = checked_losses(target, ids, place="target_loss")
        shadow = checked_losses(shadow, ids, place="shadow_loss")
        step = common_resolution(*_loss_steps(target, shadow))
        return {
            "target_loss": clipped_losses(target, step),
            "shadow_loss": clipped_losses(shadow, step),
            "labels": _whole(labels, ids) if _coded(labels) else None,
            "notes": resolution_note(step),
        }
    if labels is None:
        raise InputError(f"labels: missing; {kind} become losses only with the true classes, [N].")
    codes = _whole(labels, ids)
    step, notes = None, list[str]()
    if kind == "probabilities":
        check_finite(target, ids, place="target_probabilities")
        check_finite(shadow, ids, place="shadow_probabilities", models=True)
        if target.ndim == 1:  # one number per record: the probability of class 1
            target, shadow = np.stack([1 - target, target], axis=-1), np.stack([1 - shadow, shadow], axis=-1)
        target, notes = _whole_rows(target, ids, place="target_probabilities")
        every = [_whole_rows(one, ids, place="shadow_probabilities") for one in shadow]
        theirs = dict.fromkeys(note for _, said in every for note in said)
        if theirs:  # otherwise they stay as they are, in their own precision
            shadow = np.stack([rows for rows, _ in every])
        notes = notes or [note.replace("The model answers", "Shadow models answer") for note in theirs]
        found = [_looked_at(one) for one in (target, *shadow)]
        step = common_resolution(found[0].resolution(), [one.resolution() for one in found[1:]])
        small = any(one.underflows() for one in found)
        target, shadow = (logits_from_probabilities(values, underflows=small) for values in (target, shadow))
    target, shadow = _two_columns(target, len(ids)), _two_columns(shadow, len(shadow) * len(ids), len(shadow))
    if target.shape != shadow.shape[1:]:
        raise InputError(f"shadow_{kind}: {shadow.shape[-1]} classes, but the target has {target.shape[-1]}.")
    outside = (codes < 0) | (codes >= target.shape[1])
    if outside.any():
        raise InputError(
            f"labels: record {str(ids[outside][0])!r} has the label {codes[outside][0]}, but the classes are 0 to "
            f"{target.shape[1] - 1}."
        )
    if kind == "logits":
        check_finite(target, ids, place="target_logits", labels=codes)
        check_finite(shadow, ids, place="shadow_logits", labels=codes, models=True)
        target, shadow = finite_logits(target), finite_logits(shadow)
    return {
        "target_loss": clipped_losses(losses_from_logits(target, codes), step),
        "shadow_loss": clipped_losses(_shadow_losses(shadow, codes), step),
        "labels": codes,
        "target_logits": clipped_log_probabilities(target, step),
        "shadow_logits": clipped_log_probabilities(shadow, step),
        "notes": (*notes, *resolution_note(step)),
    }


def _shadow_losses(shadow: NDArray[Any], codes: IntArray) -> NDArray[Any]:
    """[K, N] losses from logits [K, N, C]; K may be 0."""
    return np.array([losses_from_logits(one, codes) for one in shadow]).reshape(shadow.shape[:2])


def _loss_steps(target: NDArray[Any], shadow: NDArray[Any]) -> tuple[float | None, list[float | None]]:
    """Steps of the confidences behind losses: a loss of exactly 0 shows that the model, or the precision, has steps."""
    found = []
    for loss in (target, *shadow):
        right = np.exp(-np.abs(loss.astype(np.float64)))
        found.append(_looked_at(np.stack([right, -np.expm1(-np.abs(loss.astype(np.float64)))], axis=-1)).resolution())
    return found[0], found[1:]


def _looked_at(probabilities: NDArray[Any]) -> StepFinder:
    finder = StepFinder()
    finder.add(probabilities)
    return finder


def _coded(labels: NDArray[Any] | None) -> bool:
    """Whether labels are numbers; an attack on losses cannot use names."""
    return labels is not None and labels.dtype.kind in "iufb"


def _whole(labels: NDArray[Any] | None, ids: TextArray) -> IntArray:
    values = np.asarray(labels)
    if values.shape != ids.shape:
        raise InputError(f"labels: shape {values.shape} does not fit {len(ids)} records; give one label per record.")
    if values.dtype.kind not in "iufb" or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise InputError("labels: give whole numbers, the columns of the true classes, starting at 0.")
    return values.astype(np.int64)


def _two_columns(logits: NDArray[Any], records: int, models: int | None = None) -> NDArray[Any]:
    """One logit z per record becomes [0, z]; anything wider is returned as it is."""
    if logits.size != records:
        return logits
    z = logits.reshape((len(logits),) if models is None else (models, -1))
    return np.stack([np.zeros_like(z), z], axis=-1)


def _whole_rows(rows: NDArray[Any], ids: TextArray, *, place: str) -> tuple[NDArray[Any], list[str]]:
    """One model's probabilities [N, C] and what is said about them; rows that are no distributions are refused."""
    finder = ShareFinder()
    finder.add(rows)
    if (shares := finder.found()) is not None:
        return whole_shares(rows, shares), [shares_note(shares)]
    wrong = ~((rows >= 0).all(axis=-1) & (np.abs(rows.sum(axis=-1) - 1) < 1e-3))
    if wrong.any():
        raise InputError(f"{place}: record {str(ids[wrong][0])!r} does not hold probabilities that sum to 1.")
    return rows, []
