"""The registry: attacks by name, with their parameters checked."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.query_count import QueryCount
from glasshouse.attacks.rehearsal import rehearse
from glasshouse.attacks.simulation import simulated_targets
from glasshouse.evidence import Evidence
from glasshouse.registry import Registry

__all__ = ["Attack", "attack_names", "create", "register"]


class Attack(abc.ABC):
    """A way to score records: a frozen dataclass whose fields, keyword-only, are its parameters.

    Its class attributes tell what it needs and gives: ``needs_logits`` (all classes, not the loss alone) and
    ``posterior`` (its score is a probability of membership).

    Example:
        >>> isinstance(create("loss"), Attack)
        True
    """

    name: ClassVar[str]
    needs_logits: ClassVar[bool] = False
    posterior: ClassVar[bool] = False

    @abc.abstractmethod
    def score(self, evidence: Evidence) -> FloatArray:
        """Scores [N]; higher means member."""

    def tuned(self, evidence: Evidence) -> Self:
        """The same attack with every ``"auto"`` replaced by what it means for this pool.

        A threshold belongs to one setting: simulated targets and the target must be scored with the same one.
        """
        return self

    def check(self, members: BoolArray) -> None:
        """Refuse, before anything is trained, a pool that it cannot judge by; one that takes long says it otherwise.

        Args:
            members: [K, N] who will train which shadow model.
        """
        if not self.needs_logits:
            rehearse(self, members)

    def simulated_scores(self, evidence: Evidence) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [N] of each simulated target and who trained it [N]: what thresholds and picks are made from.

        The attack is tuned for this pool beforehand. One that learns much from the pool overrides this, so that no
        simulated target is scored by what was learned from it.
        """
        for target in simulated_targets(evidence):
            yield self.score(target.evidence), target.members

    def warning(self, evidence: Evidence) -> str:
        """What a reader must know before believing the scores of this target; mostly empty."""
        return ""

    def queries(self, evidence: Evidence) -> QueryCount:
        """How often it asks a model: the target and every shadow model about a record, offline only out-models."""
        offline = getattr(self, "mode", "online") == "offline"
        asked = ~evidence.shadow_members if offline else evidence.shadow_members | True
        return QueryCount(1 + float(asked.sum(axis=0).mean()))


AttackType = TypeVar("AttackType", bound=type[Attack])
_ATTACKS: Registry[type[Attack]] = Registry("an attack")


def register(name: str) -> Callable[[AttackType], AttackType]:
    """Class decorator that makes an attack known by name, to `create`, to audit files and to the command line.

    Example:
        >>> "base" in attack_names()
        True
    """

    def decorate(attack: AttackType) -> AttackType:
        attack.name = name
        _ATTACKS.add(name, attack)
        return attack

    return decorate


def attack_names() -> list[str]:
    """Names of all registered attacks, in the order they were registered."""
    return _ATTACKS.names()


def create(name: str, *, shared: Mapping[str, Any] | None = None, **parameters: Any) -> Attack:
    """An attack by name.

    Args:
        name: a registered name.
        shared: parameters for whichever attacks have them, such as the audit's ``mode`` and ``prior``.
        **parameters: this attack's own; an unknown one is refused.

    Example:
        >>> create("lira", shared={"mode": "offline", "prior": 0.1})
        LiRA(mode='offline', variance='auto')
    """
    made: Attack = _ATTACKS.create(name, shared=shared, **parameters)
    return made
