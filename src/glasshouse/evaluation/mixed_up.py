"""Whether members and others look swapped or mixed up: an auditor would read the figures of such an audit as safe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.evaluation.intervals import delong
from glasshouse.evaluation.roc import auc
from glasshouse.evidence import Evidence

__all__ = ["Finding", "shared_losses", "shared_nodes", "shared_records", "swapped_members", "unlike_fit"]

_SURE = 0.999  # of an AUC below one half: one audit in two thousand is warned without a cause
_CLEARLY_BELOW = 0.47  # members may be a little harder than others; this is more
_FAR_LESS_SURE = 0.25
_CLEAR_GAP = 0.1
_MANY = 0.01  # of the non-members; fewer that equal a member change no figure that is shown


class Finding(NamedTuple):
    """What was found: warnings come first in a report, notes beside the figures."""

    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def swapped_members(
    target_loss: FloatArray, members: BoolArray, train_accuracy: float | None, test_accuracy: float | None
) -> tuple[str, ...]:
    """A warning where the target fits the others clearly better than its members.

    Args:
        target_loss: [N] losses of the target.
        members: [N] who is said to have trained it.
        train_accuracy: of the target on these members; None where not known.
        test_accuracy: on the others.

    Example:
        >>> loss = np.linspace(0, 1, 100)
        >>> swapped_members(loss, loss > 0.5, 0.8, 1.0)[0].split(":")[0]
        'Members and others look swapped'
        >>> swapped_members(loss, loss < 0.5, 1.0, 0.8)
        ()
    """
    area = auc(-target_loss, members)
    if area > _CLEARLY_BELOW or delong(-target_loss, members, confidence=_SURE).high >= 0.5:
        return ()
    told = ""
    if train_accuracy is not None and test_accuracy is not None:
        told = f"accuracy {100 * train_accuracy:.1f} % on members and {100 * test_accuracy:.1f} % on others; "
    return (
        f"Members and others look swapped: the target fits the others better ({told}the loss alone gives AUC "
        f"{area:.3f}). Check the mask (is it inverted?) and the order of the records; the figures below mean nothing "
        f"until that is right.",
    )


def unlike_fit(evidence: Evidence, members: BoolArray) -> tuple[str, ...]:
    """A warning where the target does not know its members as every shadow model knows its own.

    A model that was given other features than it was trained on, or labels in another order, is far less sure of its
    members; one whose members are mixed up with others is no surer of them than of the others. An attack then finds
    nothing, which says nothing about the model.

    Args:
        evidence: losses of the target and of the shadow models.
        members: [N] who trained the target.

    Example:
        >>> sure = np.full((3, 8), 0.1)
        >>> sure[0] = 2.0
        >>> evidence = Evidence(target_loss=sure[0], shadow_loss=sure[1:], shadow_members=np.ones((2, 8)))
        >>> unlike_fit(evidence, np.arange(8) < 4)[0].split(",")[0]
        'The target gives its members a mean confidence of 14 %'
    """
    inside = evidence.shadow_members
    if not inside.any(axis=1).all():
        return ()
    sure, theirs = np.exp(-evidence.target_loss), np.exp(-evidence.shadow_loss)  # [N], [K, N] confidences
    own = float(sure[members].mean())
    others = theirs.mean(axis=1, where=inside)  # [K]
    if own > float(others.min()) - _FAR_LESS_SURE:
        return () if inside.all(axis=1).any() else _no_gap(sure, members, others - theirs.mean(axis=1, where=~inside))
    return (
        f"The target gives its members a mean confidence of {100 * own:.0f} %, and every shadow model gives its own "
        f"{100 * float(others.min()):.0f} % or more. Was the target trained on these records, with these features and "
        f"labels? If not, that an attack finds little says nothing about it.",
    )


def _no_gap(sure: FloatArray, members: BoolArray, gaps: FloatArray) -> tuple[str, ...]:
    """A warning where the target is no surer of members [N] than of others, and every shadow model [K] clearly is."""
    sides = (sure[members], sure[~members])
    gap, least = float(sides[0].mean() - sides[1].mean()), float(gaps.min())
    error = float(np.sqrt(sum(side.var() / len(side) for side in sides)))
    if least < _CLEAR_GAP or gap > least / 4 or gap + 4 * error > least:
        return ()
    return (
        f"The target is no surer of its members than of the others (mean confidence {100 * gap:+.0f} points), and "
        f"every shadow model is surer of its own by {100 * least:.0f} points or more. Either members and others are "
        f"mixed up (check the mask and the order of the records), or the target was not trained as the shadow models "
        f"were.",
    )


def shared_records(digests: NDArray[Any], members: BoolArray) -> Finding:
    """A finding where non-members equal members.

    Args:
        digests: [N] equal for records that are equal.
        members: [N] who trained the target.

    Example:
        >>> shared_records(np.array(["a", "b", "a", "c"]), np.array([True, True, False, False])).warnings[0][:27]
        '1 of 2 non-members have the'
    """
    return _said(
        np.isin(digests[~members], digests[members]),
        "have the same features and label as a member, so the model was trained on them too",
    )


def shared_nodes(digests: NDArray[Any], members: BoolArray) -> tuple[str, ...]:
    """A note where nodes outside equal members in features and label, of a graph whose features tell nodes apart.

    Their surroundings differ, so they are not the same record; asked alone they are.

    Args:
        digests: [N] equal for nodes of equal features and label.
        members: [N] who trained the target.

    Example:
        >>> shared_nodes(np.array(["a", "b", "a", "c"]), np.array([True, True, False, False]))[0][:27]
        '1 of 2 non-members have the'
    """
    equal = np.isin(digests[~members], digests[members])
    if equal.sum() < max(1, _MANY * len(equal)) or len(np.unique(digests)) < len(digests) / 2:
        return ()
    return (
        f"{int(equal.sum())} of {len(equal)} non-members have the same features and label as a member. No query "
        f"without edges tells them apart; if they are copies of the same nodes, leave them out of the audit.",
    )


def shared_losses(evidence: Evidence, members: BoolArray) -> Finding:
    """The same from losses alone: records that all models answer exactly alike are the same record.

    Args:
        evidence: losses of the target and of the shadow models.
        members: [N] who trained the target.
    """
    losses = np.ascontiguousarray(np.vstack([evidence.target_loss, evidence.shadow_loss]).T)
    keys = np.array([row.tobytes() for row in losses], dtype=object)
    _, counts = np.unique(evidence.target_loss, return_counts=True)
    if counts.max(initial=1) > 1 + len(members) // 20:  # answers in coarse steps are equal by chance
        return Finding()
    inside = set(keys[members].tolist())
    return _said(
        np.array([key in inside for key in keys[~members].tolist()], dtype=np.bool_),
        "have exactly the losses of a member under all models, so they seem to be the same records",
    )


def _said(equal: BoolArray, what: str) -> Finding:
    count = int(equal.sum())
    if not count:
        return Finding()
    line = (
        f"{count} of {len(equal)} non-members {what}. They count as wrongly accused and hide what leaks: leave records "
        f"that are in both groups out of the audit."
    )
    return Finding(warnings=(line,)) if count >= _MANY * len(equal) else Finding(notes=(line,))
