"""Attacks by name: the registry, and what a user writes under ``attacks`` as attack objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.attacks.attack import Attack
from glasshouse.core.arrays import IntArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.registry import Registry
from glasshouse.evidence import Kind

AttackType = TypeVar("AttackType", bound=type[Attack[Any]])
_ATTACKS: Registry[type[Attack[Any]]] = Registry("an attack")

# attacks on graphs are imported when the first of them is needed: their libraries take seconds to import
for _name in ("g-base", "g-base-tempered", "g-regressed", "g-stacked", "g-classifier"):
    _ATTACKS.add_lazy(_name, module=f"glasshouse.graph.attacks.{_name.replace('-', '_')}")
for _name in ("g-edge", "edge-posteriors", "edge-features", "edge-influence"):
    _ATTACKS.add_lazy(_name, module="glasshouse.graph.attacks.g_edge")


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
    """The class of an attack; an unknown name is refused, with similar names and all known ones."""
    return _ATTACKS.find(name)


def attack_names(*, graph: bool = True) -> list[str]:
    """Names of all attacks in the order in which they were registered, those on graphs last or left out.

    Example:
        >>> "g-base" in attack_names(), "g-base" in attack_names(graph=False)
        (True, False)
    """
    lazy, of_graphs = _ATTACKS.lazy(), ("graph", "edges")
    on_graphs = [name for name in _ATTACKS.names() if name in lazy or find_attack(name).kind in of_graphs]
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
    return _ATTACKS.create(name, shared=shared, **parameters)  # type: ignore[no-any-return]


AttackChoice = str | Attack[Any] | Mapping[str, Any]


def chosen_attacks(
    attacks: Sequence[AttackChoice] | str,
    *,
    offers: Sequence[Kind] = ("records",),
    prior: float | ArrayLike = 0.5,
    nodes: IntArray | None = None,
    **shared: Any,
) -> dict[str, Attack[Any]]:
    """The chosen attacks by unique names: a second attack with a name gets a number. All faults are raised at once.

    Attacks by name get of the prior and of the ``shared`` parameters what they have. For attacks on records, a prior
    per record of the population is cut to the audited ``nodes``.
    """
    own = prior if nodes is None or np.ndim(prior) == 0 else np.asarray(prior)[nodes]
    made: dict[str, Attack[Any]] = {}
    faults: list[str] = []
    for index, choice in enumerate([attacks] if isinstance(attacks, str) else attacks):
        try:
            attack = _made(choice, prior, own, shared)
            if attack.kind == "edges" and "edges" not in offers:
                raise InputError(f'"{attack.name}" is about edges. Pass it to glasshouse.graph.audit_edges.')
            if attack.kind == "graph" and "graph" not in offers:
                raise InputError(f'"{attack.name}" needs a graph, and this audit is of records. Leave it out.')
        except InputError as error:
            faults += [f"attacks[{index}]: {fault}" for fault in error.faults]
            continue
        name = attack.label
        count = sum(bool(re.fullmatch(rf"{re.escape(name)}(-\d+)?", known)) for known in made)
        made[name if count == 0 else f"{name}-{count + 1}"] = attack
    if not attacks:
        faults.append("attacks: none given; name at least one.")
    raise_faults(faults)
    return made


def _made(choice: Any, prior: Any, own: Any, shared: Mapping[str, Any]) -> Attack[Any]:
    if isinstance(choice, Attack):
        return choice
    if isinstance(choice, type):
        name = choice.__name__
        raise InputError(f"{name} is not an attack; give a name, a mapping or an attack object such as {name}().")
    if not isinstance(choice, str | Mapping):
        raise InputError(f"{type(choice).__name__} is not an attack; give a name, a mapping or an attack object.")
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    if "name" not in parameters:
        raise InputError("a mapping needs a name, such as {name: rmia, gamma: 2}.")
    name = str(parameters.pop("name"))
    expected = own if find_attack(name).kind == "records" else prior
    return create(name, shared={**shared, "prior": expected}, **parameters)
