"""Whether members and non-members look swapped or mixed up: the figures of such an audit would wrongly look safe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.threads import side_by_side
from glasshouse.evaluation.intervals import delong
from glasshouse.evaluation.roc import auc
from glasshouse.evidence import Evidence

_SURE = 0.999  # that the AUC is below one half: one audit in two thousand gets a warning without a cause
_CLEARLY_BELOW = 0.47  # members may be a little harder than non-members; below this they are clearly harder
_FAR_LESS_SURE = 0.25
_CLEAR_GAP = 0.1
_MANY = 0.01  # of the non-members; if fewer equal a member, no reported figure changes


class Finding(NamedTuple):
    """What was found: warnings come first in a report, notes next to the figures."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def swapped_members(
    target_loss: FloatArray, members: BoolArray, train_accuracy: float | None, test_accuracy: float | None
) -> tuple[str, ...]:
    """A warning if the target fits the non-members clearly better than its members, [N] as they were given."""
    area = auc(-target_loss, members)
    if area > _CLEARLY_BELOW or delong(-target_loss, members, confidence=_SURE).high >= 0.5:
        return ()
    told = ""
    if train_accuracy is not None and test_accuracy is not None:
        told = f"accuracy {100 * train_accuracy:.1f} % on members and {100 * test_accuracy:.1f} % on non-members; "
    return (
        f"Members and non-members look swapped: the target fits the non-members better ({told}the loss alone gives AUC "
        f"{area:.3f}). Check the mask (is it inverted?) and the order of the records; the figures below mean nothing "
        f"until this is right.",
    )


def doubtful_members(evidence: Evidence, members: BoolArray) -> tuple[str, ...]:
    """A warning if the target does not fit its members [N], while every shadow model fits its own.

    Such a model gets other features than it was trained on, or labels in another order, or members are mixed up.
    """
    inside = evidence.shadow_members
    if not len(inside) or not inside.any(axis=1).all():
        return ()
    sure = np.exp(-evidence.target_loss)  # [N] confidences
    own = float(sure[members].mean())

    def means(k: int) -> tuple[float, float]:
        theirs, who = np.exp(-evidence.shadow_loss[k]), inside[k].astype(np.float64)
        count, total = float(who.sum()), float(theirs @ who)
        return total / count, (float(theirs.sum()) - total) / max(len(who) - count, 1.0)

    found = np.array(side_by_side(means, range(evidence.models), records=evidence.records))  # [K, 2]
    others = found[:, 0]
    if own > float(others.min()) - _FAR_LESS_SURE:
        return () if inside.all(axis=1).any() else _no_gap(sure, members, others - found[:, 1])
    return (
        f"The target gives its members a mean confidence of {100 * own:.0f} %, while every shadow model gives its own "
        f"{100 * float(others.min()):.0f} % or more. Was the target trained on these records, with these features and "
        f"labels? If not, an attack finds little, and this does not show that the target is safe.",
    )


def same_models(evidence: Evidence) -> tuple[str, ...]:
    """A warning if shadow models that were trained on different records answer exactly alike."""
    losses = evidence.shadow_loss
    if len(losses) < 2 or not np.ptp(losses[0]) or (losses != losses[0]).any():  # the same answer for all says nothing
        return ()
    return (
        "Shadow models that were trained on different records answer exactly alike: does the training function use its "
        "argument members? It must train on these records alone, such as population.x[members]; the figures below mean "
        "nothing until this is right.",
    )


def _no_gap(sure: FloatArray, members: BoolArray, gaps: FloatArray) -> tuple[str, ...]:
    """A warning if the target is not surer of members [N] than of non-members, while every shadow model [K] is."""
    sides = (sure[members], sure[~members])
    gap, least = float(sides[0].mean() - sides[1].mean()), float(gaps.min())
    error = float(np.sqrt(sum(side.var() / len(side) for side in sides)))
    if least < _CLEAR_GAP or gap > least / 4 or gap + 4 * error > least:
        return ()
    return (
        f"The target is not surer of its members than of the non-members (mean confidence {100 * gap:+.0f} points), "
        f"while every shadow model is surer of its own by {100 * least:.0f} points or more. Either members and "
        f"non-members are mixed up (check the mask and the order of the records), or the target was not trained as the "
        f"shadow models were.",
    )


def shared_records(digests: NDArray[Any], members: BoolArray) -> Finding:
    """A finding if non-members equal members, by digests [N] that are equal if records are."""
    return _said(
        np.isin(digests[~members], digests[members]),
        "have the same features and label as a member, so the model was trained on them too",
    )


def shared_nodes(digests: NDArray[Any], members: BoolArray) -> tuple[str, ...]:
    """A note if non-members equal members in features and label, by digests [N], and features distinguish nodes."""
    equal = np.isin(digests[~members], digests[members])
    if equal.sum() < max(1, _MANY * len(equal)) or len(np.unique(digests)) < len(digests) / 2:
        return ()
    return (
        f"{int(equal.sum())} of {len(equal)} non-members have the same features and label as a member. A query "
        f"without edges cannot distinguish them. If they are copies of the same nodes, leave them out of the audit.",
    )


def shared_losses(evidence: Evidence, members: BoolArray) -> Finding:
    """The same from losses alone: records with exactly equal losses under all models are the same record."""
    _, numbers, counts = np.unique(evidence.target_loss, return_inverse=True, return_counts=True)
    if counts.max(initial=1) > 1 + len(members) // 20:  # answers in coarse steps can be equal by chance
        return Finding()
    alike = np.flatnonzero(counts[numbers] > 1)  # the others have a loss under the target that no other record has
    losses = np.ascontiguousarray(np.vstack([evidence.target_loss[alike], evidence.shadow_loss[:, alike]]).T)
    keys = np.array([row.tobytes() for row in losses], dtype=object)
    inside = set(keys[members[alike]].tolist())
    equal = np.zeros_like(members)
    equal[alike] = [key in inside for key in keys.tolist()]
    return _said(
        equal[~members], "have exactly the losses of a member under all models, so they seem to be the same records"
    )


def _said(equal: BoolArray, what: str) -> Finding:
    count = int(equal.sum())
    if not count:
        return Finding()
    line = (
        f"{count} of {len(equal)} non-members {what}. They count as false positives and hide what leaks: leave records "
        f"that are in both groups out of the audit."
    )
    return Finding(warnings=(line,)) if count >= _MANY * len(equal) else Finding(notes=(line,))
