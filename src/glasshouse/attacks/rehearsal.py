"""Try an attack on random losses: this shows whether it can use a pool before any model of the pool is trained."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.arrays import BoolArray
from glasshouse.errors import InputError
from glasshouse.evidence import Evidence
from glasshouse.randomness import generator

__all__ = ["rehearse"]

_LOG = logging.getLogger("glasshouse")

_ANSWERS = 20_000_000  # at most so many random losses; if there are more, only some records are tried
_RECORDS = 1000


def rehearse(attack: Any, members: BoolArray) -> None:
    """Let an attack score random losses of models that will be trained on these members, so that it can refuse them.

    If there are very many records, only some are tried. Those with the fewest in- and out-models are among them, since
    an attack may fail on these. Any error other than a refusal is ignored here: it will appear with the true losses.

    Args:
        attack: the attack to try.
        members: [K, N] members of each shadow model that will be trained.

    Example:
        >>> from glasshouse.attacks import LiRA
        >>> rehearse(LiRA(), np.array([[True, True], [True, False]]))
        Traceback (most recent call last):
        glasshouse.errors.InputError: shadow_members: record '0' has 0 out-models and this attack needs 1 ...
    """
    small = members.size <= _ANSWERS or any(np.ndim(value) for value in vars(attack).values())  # one number per record
    chosen = np.arange(members.shape[1]) if small else _extremes(members)
    losses = generator(0, "rehearsal").exponential(size=(len(members) + 1, len(chosen)))
    evidence = Evidence(
        target_loss=losses[0],
        shadow_loss=losses[1:],
        shadow_members=members[:, chosen],
        ids=chosen.astype(str),
        labels=np.zeros(len(chosen)),
    )
    try:
        attack.tuned(evidence).score(evidence)
    except InputError:
        raise
    except Exception as error:  # it may need what random evidence does not have
        _LOG.debug("The attack %s could not be tried beforehand: %s", attack.name, error)


def _extremes(members: BoolArray) -> NDArray[np.intp]:
    """Records with the fewest in-models, with the fewest out-models, and some of the others."""
    order = np.argsort(members.sum(axis=0), kind="stable")
    middle = np.linspace(0, len(order) - 1, _RECORDS).astype(np.intp)
    return np.unique(order[np.unique(np.concatenate([[0, len(order) - 1], middle]))])
