"""What smaller pools say: whether a record is still called a member, and whether more shadow models would help."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.attack import Attack
from glasshouse.errors import InputError
from glasshouse.evaluation.thresholds import Scored, Threshold
from glasshouse.evidence import Evidence
from glasshouse.evidence.simulation import reference_rows

__all__ = ["fewer_references", "is_cheap", "steadiness", "with_fewer_references"]

_PANELS = 8  # sub-pools for one target; at most half of what its thresholds cost
_TARGETS = 8  # simulated targets that are scored again with fewer references


def is_cheap(attack: Attack[Any]) -> bool:
    """Whether an attack can be run on many sub-pools: it looks at losses alone, and learns nothing but a few numbers.

    Example:
        >>> from glasshouse.attacks import create
        >>> is_cheap(create("base")), is_cheap(create("stacked"))
        (True, False)
    """
    return attack.kind == "records" and not (attack.learns_much or attack.needs_logits)


def steadiness(attack: Attack[Any], evidence: Evidence, threshold: Threshold) -> FloatArray | None:
    """[N] the share of sub-pools in which each record is still called a member; None for attacks that are not cheap.

    A sub-pool is the pool without one shadow model and its complement: what simulated targets are judged by, so the
    threshold fits it exactly.

    Args:
        attack: tuned for the whole pool; it is not tuned again.
        evidence: what it looks at.
        threshold: from simulated targets.

    Example:
        >>> from glasshouse.attacks import create
        >>> from glasshouse.evaluation.intervals import Interval
        >>> evidence = Evidence(
        ...     target_loss=[0.1, 0.6], shadow_loss=[[0.5, 1.0], [0.7, 1.2], [0.9, 0.2], [0.6, 0.3]],
        ...     shadow_members=[[1, 0], [0, 1], [1, 0], [0, 1]],
        ... )
        >>> steadiness(create("base"), evidence, Threshold(0.1, 0.5, "mean", 0.1, Interval(0.0, 0.2), 4))
        array([1. , 0.5])
    """
    if not is_cheap(attack):
        return None
    called, count = np.zeros(evidence.records), 0
    for scores in attack.scores_among(evidence, _panels(evidence.shadow_members)):
        if scores is not None:
            called += threshold.decide(scores)
            count += 1
    return called / count if count else None


def with_fewer_references(attack: Attack[Any], evidence: Evidence) -> Scored | None:
    """Simulated targets scored with half of their references, to be compared with the same targets scored with all.

    The first `_TARGETS` targets are scored again. None for attacks that are not cheap, for pools without complementary
    pairs, and where so few references are refused.
    """
    pairs = _pairs(evidence.shadow_members) if is_cheap(attack) else None
    if pairs is None or len(pairs) < 3:
        return None
    scored, losses = [], evidence.losses_alone()
    partner = {one: number for number, pair in enumerate(pairs) for one in pair}
    for k in range(min(evidence.models, _TARGETS)):
        others = [pair for number, pair in enumerate(pairs) if number != partner[k]]
        rows = np.array(sorted(row for pair in others[: fewer_references(evidence.models) // 2] for row in pair))
        try:
            scores = attack.score(losses.among(rows[:, None], model=k))
            scored.append((scores, evidence.shadow_members[k]))
        except InputError:
            return None
    return scored


def fewer_references(models: int) -> int:
    """How many references are half of those of a simulated target, in pairs.

    Example:
        >>> fewer_references(8), fewer_references(16)
        (4, 8)
    """
    return 2 * -(-(models - 2) // 4)


def _panels(members: BoolArray) -> list[NDArray[np.intp]]:
    """The pool without one pair in turn; without pairs, the references of simulated targets: [R, 1] or [R, N] each."""
    pairs = _pairs(members)
    if pairs is None:
        return [reference_rows(members, k) for k in range(min(len(members), _PANELS))]
    return [np.delete(np.arange(len(members)), pair)[:, None] for pair in pairs[:_PANELS]]


def _pairs(members: BoolArray) -> list[tuple[int, int]] | None:
    """Complementary pairs of shadow models; None if some model has no complement."""
    waiting: dict[bytes, int] = {}
    found = []
    for k, row in enumerate(members):
        complement = waiting.pop(np.packbits(~row).tobytes(), None)
        if complement is None:
            waiting[np.packbits(row).tobytes()] = k
        else:
            found.append((complement, k))
    return sorted(found) if not waiting and 2 * len(found) == len(members) else None
