"""From what a user writes under ``attacks`` to attack objects, each under a name of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from glasshouse.attacks.registry import Attack, create
from glasshouse.errors import InputError, raise_faults

__all__ = ["AttackChoice", "chosen_attacks", "named_attacks"]

AttackChoice = str | Attack | Mapping[str, Any]
Kind = TypeVar("Kind")


def chosen_attacks(attacks: Sequence[AttackChoice] | str, **shared: Any) -> dict[str, Attack]:
    """The chosen i.i.d. attacks, all faults at once.

    Args:
        attacks: names, attack objects, or mappings with ``name`` and parameters.
        **shared: parameters for whichever attacks given by name have them.

    Example:
        >>> list(chosen_attacks(["base", {"name": "rmia", "gamma": 2.0}, "rmia"], mode="online"))
        ['base', 'rmia', 'rmia-2']
    """
    return named_attacks(attacks, lambda name, parameters: create(name, shared=shared, **parameters))


def named_attacks(attacks: Sequence[Any] | str, make: Callable[[str, Mapping[str, Any]], Kind]) -> dict[str, Kind]:
    """Attacks by a name of their own; a second one of a name is numbered.

    Args:
        attacks: names, mappings with ``name`` and parameters, or objects, which are taken as they are.
        make: from a name and parameters to an attack.
    """
    made: dict[str, Kind] = {}
    faults: list[str] = []
    for index, choice in enumerate([attacks] if isinstance(attacks, str) else attacks):
        try:
            attack = _made(choice, make)
        except InputError as error:
            faults += [f"attacks[{index}]: {fault}" for fault in error.faults]
            continue
        name = str(getattr(attack, "label", getattr(attack, "name", "attack")))
        count = sum(
            known == name or (known.startswith(f"{name}-") and known[len(name) + 1 :].isdigit()) for known in made
        )
        made[name if count == 0 else f"{name}-{count + 1}"] = attack
    if not attacks:
        faults.append("attacks: none given; name at least one.")
    raise_faults(faults)
    return made


def _made(choice: Any, make: Callable[[str, Mapping[str, Any]], Kind]) -> Kind:
    if isinstance(choice, str):
        return make(choice, {})
    if isinstance(choice, Mapping):
        parameters = dict(choice)
        if "name" not in parameters:
            raise InputError("a mapping needs a name, such as {name: rmia, gamma: 2}.")
        return make(str(parameters.pop("name")), parameters)
    taken: Kind = choice
    return taken
