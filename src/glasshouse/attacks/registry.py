"""The registry: attacks by name, with their parameters checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from glasshouse.attacks.attack import Attack
from glasshouse.registry import Registry

__all__ = ["attack_names", "create", "find_attack", "register"]

AttackType = TypeVar("AttackType", bound=type[Attack[Any]])
_ATTACKS: Registry[type[Attack[Any]]] = Registry("an attack")

# attacks on graphs are imported when the first of them is needed: their libraries take seconds to import
_ON_GRAPHS = {
    "g-base": "glasshouse.graph.attacks.g_base",
    "g-regressed": "glasshouse.graph.attacks.g_regressed",
    "g-stacked": "glasshouse.graph.attacks.g_stacked",
    "g-classifier": "glasshouse.graph.attacks.g_classifier",
}
for _name, _module in _ON_GRAPHS.items():
    _ATTACKS.add_lazy(_name, module=_module)


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


def find_attack(name: str) -> type[Attack[Any]]:
    """The class of an attack; an unknown name is refused, with similar names and all known ones.

    Example:
        >>> find_attack("loss").__name__
        'LossThreshold'
    """
    return _ATTACKS.find(name)


def attack_names(*, graph: bool = True) -> list[str]:
    """Names of all attacks in the order in which they were registered, those on graphs last or left out.

    Example:
        >>> "g-base" in attack_names(), "g-base" in attack_names(graph=False)
        (True, False)
    """
    on_graphs = [name for name in _ATTACKS.names() if name in _ATTACKS.lazy() or find_attack(name).kind == "graph"]
    on_records = [name for name in _ATTACKS.names() if name not in on_graphs]
    return on_records + (on_graphs if graph else [])


def create(name: str, *, shared: Mapping[str, Any] | None = None, **parameters: Any) -> Attack[Any]:
    """An attack by name.

    Args:
        name: a registered name.
        shared: parameters for those attacks that have them, such as the audit's ``mode`` and ``prior``.
        **parameters: parameters of this attack; an unknown one is refused.

    Example:
        >>> create("lira", shared={"mode": "offline", "prior": 0.1})
        LiRA(mode='offline', variance='auto')
    """
    made: Attack[Any] = _ATTACKS.create(name, shared=shared, **parameters)
    return made
