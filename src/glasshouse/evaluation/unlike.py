"""Whether the target is of the shadow models' kind: thresholds and probabilities are carried over from them."""

from __future__ import annotations

from glasshouse.attacks.stacking import LARGEST_UNLIKENESS, Likeness
from glasshouse.evidence import Evidence
from glasshouse.numerics import loss_to_margin

__all__ = ["unlike_target"]

_MOST = 100_000  # records; more tell no more of how sure a model is, and take seconds
_FEWEST = 6  # of fewer models nobody can tell how much their like differ


def unlike_target(evidence: Evidence, *, advice: str = "") -> str:
    """What a reader must know where the target answers unlike all shadow models; empty where it is like them.

    Looked at are its margins over the records (every other, third … of very many), never who trained it.

    Args:
        evidence: losses of the target and of the shadow models.
        advice: what else may be the reason, said at the end.

    Example:
        >>> import numpy as np
        >>> losses = np.random.default_rng(0).exponential(size=(9, 500))
        >>> members = np.random.default_rng(1).random((8, 500)) < 0.5
        >>> unlike_target(Evidence(target_loss=losses[0], shadow_loss=losses[1:], shadow_members=members))
        ''
        >>> other = Evidence(target_loss=9 * losses[0], shadow_loss=losses[1:], shadow_members=members)
        >>> unlike_target(other).split("(")[0]
        'The target answers unlike every shadow model '
    """
    if evidence.models < _FEWEST:
        return ""
    some = slice(None, None, -(-evidence.records // _MOST))
    theirs, its = evidence.shadow_loss[:, some], evidence.target_loss[some]
    mismatch = Likeness.of(loss_to_margin(theirs)).distance(loss_to_margin(its))
    if mismatch <= LARGEST_UNLIKENESS:
        return ""
    return (
        f"The target answers unlike every shadow model (mismatch {mismatch:.1f}; its like stay below "
        f"{LARGEST_UNLIKENESS:.0f}), so thresholds and probabilities, which come from these, do not hold for it. Train "
        f"shadow models as the target was trained: the same architecture, optimizer, epochs and share of the records. "
        f"{advice}"
    ).strip()
