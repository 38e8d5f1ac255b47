"""An attack tried on made-up losses: whether it can judge by a pool is known before a model of it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from glasshouse.evidence import Evidence
from glasshouse.population import BoolArray
from glasshouse.randomness import generator

if TYPE_CHECKING:
    from glasshouse.attacks.registry import Attack

__all__ = ["rehearse"]

_RECORDS = 1000


def rehearse(attack: Attack, members: BoolArray) -> None:
    """Let an attack score random losses of models that will be trained by these members; it refuses what it must.

    Records with the fewest in- and out-models are among those that are tried, since on these an attack may fail.

    Args:
        attack: to try.
        members: [K, N] who will train which shadow model.

    Example:
        >>> from glasshouse.attacks import LiRA
        >>> rehearse(LiRA(), np.array([[True, True], [True, False]]))
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadow_members: record '0' has 0 out-models and this attack needs 1 ...
    """
    chosen = _extremes(members)
    losses = generator(0, "rehearsal").exponential(size=(len(members) + 1, len(chosen)))
    evidence = Evidence(
        target_loss=losses[0], shadow_loss=losses[1:], shadow_members=members[:, chosen], ids=chosen.astype(str)
    )
    attack.tuned(evidence).score(evidence)


def _extremes(members: BoolArray) -> NDArray[np.intp]:
    """Records with the fewest in-models, with the fewest out-models, and some of the others."""
    order = np.argsort(members.sum(axis=0), kind="stable")
    middle = np.linspace(0, len(order) - 1, _RECORDS).astype(np.intp)
    return np.unique(order[np.unique(np.concatenate([[0, len(order) - 1], middle]))])
