"""Attacks tuned for one view and tried on its simulated targets; each of them once, whoever asks for it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from glasshouse.attacks.attack import Attack, View, seen_by
from glasshouse.digests import digest_arrays
from glasshouse.evaluation.thresholds import Scored, simulate
from glasshouse.progress import showing

__all__ = ["Trials"]


class Trials:
    """What the attacks of one audit learn from the pool, and their scores of the simulated targets.

    Learning takes most of the time of the strongest attacks. ``"best"`` tries every candidate, and an audit may name
    the same attacks beside it; attacks with equal parameters are tuned and tried once.

    Args:
        view: evidence or a scene; attacks on records see only the evidence of a scene.
        progress: whether to show bars; None shows them on a terminal, and plain lines elsewhere.

    Example:
        >>> from glasshouse.attacks import BASE
        >>> from glasshouse.evidence import Evidence
        >>> evidence = Evidence(target_loss=[0.1, 2.0], shadow_loss=[[0.5, 1.0]], shadow_members=[[1, 0]])
        >>> trials = Trials(evidence)
        >>> trials.tuned(BASE()) is trials.tuned(BASE())
        True
    """

    def __init__(self, view: View, *, progress: bool | None = False) -> None:
        self.view = view
        self.progress = progress
        self._tuned: dict[object, Attack[Any]] = {}
        self._simulated: dict[object, Scored] = {}

    def tuned(self, attack: Attack[Any]) -> Attack[Any]:
        """The attack, tuned for the pool."""
        key = _key(attack)
        if key not in self._tuned:
            with showing(self.progress, label=f"Attack {attack.name}, what it learns"):
                settled = attack.tuned(seen_by(attack, self.view))
            self._tuned[key] = self._tuned[_key(settled)] = settled
        return self._tuned[key]

    def simulated(self, attack: Attack[Any]) -> Scored:
        """Scores and members [N] of every simulated target, by the tuned attack."""
        settled = self.tuned(attack)
        key = _key(settled)
        if key not in self._simulated:
            self._simulated[key] = simulate(settled, seen_by(settled, self.view), progress=self.progress)
        return self._simulated[key]


def _key(attack: Attack[Any]) -> object:
    """What two attacks have in common that score alike: their type and parameters, without what they learned."""
    described: dict[str, dataclasses.Field[Any]] | None = getattr(attack, "__dataclass_fields__", None)
    if described is None:  # a user's own class: only the same object is the same attack
        return attack
    values = {name: getattr(attack, name) for name, one in described.items() if one.compare}
    return type(attack), tuple((name, _shown(value)) for name, value in values.items())


def _shown(value: object) -> str:
    return digest_arrays([value]) if isinstance(value, np.ndarray) else repr(value)
