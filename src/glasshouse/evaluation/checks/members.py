"""Whether members and non-members look swapped or mixed up: the figures of such an audit would wrongly look safe."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import t

from glasshouse.attacks.base import expected_confidence
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.threads import side_by_side
from glasshouse.data.units import Units
from glasshouse.evaluation.intervals import delong
from glasshouse.evaluation.roc import auc
from glasshouse.evidence import Evidence

_SURE = 0.999  # that the AUC is below one half: one audit in two thousand gets a warning without a cause
_CLEARLY_BELOW = 0.47  # members may be a little harder than non-members; below this they are clearly harder
_FAR_LESS_SURE = 0.25
_LEAKS, _CLEARLY = 3, 4  # standard errors
_MOVED = 0.001  # of all audits, over the five ways to move a mask (benchmarks/robustness/moved.md)
_NEARLY_EQUAL = 0.9  # the correlation of two masks, of which one must do for both
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
    """A warning if the target fits other members than [N], or not its own, while every shadow model fits its own.

    Such a model gets other features than it was trained on, or labels in another order, or members are mixed up.
    """
    inside, confidence = evidence.shadow_members, np.exp(-evidence.target_loss)
    if not evidence.models:  # few scores far from all others are then no evidence, so no side may be small
        return _moved_members(confidence, members) if 0.25 < members.mean() < 0.75 else ()
    if inside.all(axis=1).any() or not inside.any(axis=1).all():
        return ()
    expected = expected_confidence(evidence, "online")

    def of_shadow(k: int) -> tuple[float, float, float]:
        loss, own = evidence.shadow_loss[k], inside[k]
        return float(np.exp(-loss[own]).mean()), *_gap(expit(-loss - expected), own)

    found = np.array(side_by_side(of_shadow, range(evidence.models), records=evidence.records))  # [K, 3]
    theirs, gaps, errors = found.T
    scores = expit(-evidence.target_loss - expected)  # of BASE
    if (gaps > _LEAKS * errors).all() and (moved := _moved_members(scores, members)):
        return moved
    own, likest = float(confidence[members].mean()), float(theirs.min())
    if own <= likest - _FAR_LESS_SURE:
        return (
            f"The target gives its members a mean confidence of {100 * own:.0f} %, while every shadow model gives its "
            f"own {100 * likest:.0f} % or more. Was the target trained on these records, with these features and "
            f"labels? If not, an attack finds little, and this does not show that the target is safe.",
        )
    (gap, error), least = _gap(scores, members), float(gaps.min())
    if (gaps <= _CLEARLY * errors).any() or gap > least / 4 or gap + _CLEARLY * error > least:
        return ()
    return (
        f"The target does not fit its members better than the non-members (their scores of BASE differ by {gap:+.2f}), "
        f"while every shadow model fits its own better (by {least:.2f} or more). Either members and non-members are "
        f"mixed up (check the mask and the order of the records), or the target was not trained as the shadow models "
        f"were.",
    )


def same_models(evidence: Evidence) -> tuple[str, ...]:
    """A warning if shadow models that were trained on different records answer exactly alike."""
    losses = evidence.shadow_loss
    if len(losses) < 2 or not np.ptp(losses[0]):  # the same answer for all says nothing
        return ()
    if any((one != losses[0]).any() for one in losses[1:]):
        return ()
    return (
        "Shadow models that were trained on different records answer exactly alike: does the training function use its "
        "argument members? It must train on these records alone, such as population.x[members]; the figures below mean "
        "nothing until this is right.",
    )


def _gap(scores: FloatArray, members: BoolArray) -> tuple[float, float]:
    """By how much the mean score of members [N] is above that of the others, and its standard error."""
    sides = scores[members], scores[~members]
    return float(sides[0].mean() - sides[1].mean()), float(np.sqrt(sum(side.var() / len(side) for side in sides)))


def _moved_members(scores: FloatArray, members: BoolArray) -> tuple[str, ...]:
    """A warning if the target's scores [N] fit a moved or reversed mask clearly, and the mask [N] as given far less.

    Both masks explain the scores together, by least squares, so a leak that the given mask has counts for that alone.
    """
    given = members - members.mean()
    steps = {1: "one record", -1: "one record", 2: "two records", -2: "two records"}
    moves = {f"moved by {step}: np.roll(members, {by})": np.roll(given, by) for by, step in steps.items()}
    if (free := len(members) - 3) < 1:
        return ()
    clear, found = t.isf(_MOVED / 5, free) * np.sqrt(len(members) / free), []
    for words, other in {**moves, "reversed: members[::-1]": given[::-1]}.items():
        masks = np.stack([given, other])  # [2, N]
        products = masks @ masks.T
        if abs(products[0, 1]) < _NEARLY_EQUAL * products[0, 0]:
            as_given, as_moved = effects = np.linalg.solve(products, masks @ scores)
            error = np.std(scores - effects @ masks) * np.sqrt(np.linalg.inv(products)[1, 1])
            if as_given < as_moved / 2 and as_moved > clear * error:
                found.append((error / as_moved, words))
    if not found:
        return ()
    how, mask = min(found)[1].split(": ")
    return (
        f"The members look {how}: the target's answers fit {mask} clearly better than the members as they are given. "
        f"Check the order of the records (is a header counted as one, or do positions begin at 1?); the figures below "
        f"mean nothing until this is right.",
    )


def shared_records(digests: NDArray[Any], members: BoolArray, unit: Units | None = None) -> Finding:
    """A finding if non-members equal members, by digests [N] that are equal if records are."""
    return _said(
        np.isin(digests[~members], digests[members]),
        "have the same features and label as a member, so the model was trained on them too",
        unit,
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
        equal[~members],
        "have exactly the losses of a member under all models, so they seem to be the same records",
        evidence.unit,
    )


def _said(equal: BoolArray, what: str, unit: Units | None) -> Finding:
    count = int(equal.sum())
    if not count:
        return Finding()
    if unit is not None:  # which says that they are not the same
        word = unit.word
        return Finding(
            notes=(f"{count} of {len(equal)} records of non-members equal one of a member, another {word}.",)
        )
    line = (
        f"{count} of {len(equal)} non-members {what}. They count as false positives and hide what leaks: leave records "
        f"that are in both groups out of the audit."
    )
    return Finding(warnings=(line,)) if count >= _MANY * len(equal) else Finding(notes=(line,))
