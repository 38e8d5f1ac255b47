"""From what a user writes under ``attacks`` to attack objects, each with a unique name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import IntArray
from glasshouse.attacks.attack import Attack
from glasshouse.attacks.registry import create, find_attack
from glasshouse.errors import InputError, raise_faults
from glasshouse.evidence import Kind

__all__ = ["AttackChoice", "chosen_attacks"]

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

    Args:
        attacks: names, attack objects, or mappings with ``name`` and parameters.
        offers: which kinds of attack the audit can run.
        prior: λ: one number, or one per record of the population.
        nodes: the audited nodes of a graph: attacks on records know only these.
        **shared: parameters for those attacks, given by name, that have them.

    Example:
        >>> list(chosen_attacks(["base", {"name": "rmia", "gamma": 2.0}, "rmia"], mode="online"))
        ['base', 'rmia', 'rmia-2']
        >>> chosen_attacks(["base", "g-base"])
        Traceback (most recent call last):
        glasshouse.errors.InputError: attacks[1]: "g-base" needs a graph, and this audit is of records. Leave it out.
    """
    own = prior if nodes is None or np.ndim(prior) == 0 else np.asarray(prior)[nodes]
    made: dict[str, Attack[Any]] = {}
    faults: list[str] = []
    for index, choice in enumerate([attacks] if isinstance(attacks, str) else attacks):
        try:
            attack = _made(choice, prior, own, shared)
            if attack.kind == "graph" and "graph" not in offers:
                raise InputError(f'"{attack.name}" needs a graph, and this audit is of records. Leave it out.')
        except InputError as error:
            faults += [f"attacks[{index}]: {fault}" for fault in error.faults]
            continue
        name = attack.label
        count = sum(
            known == name or (known.startswith(f"{name}-") and known[len(name) + 1 :].isdigit()) for known in made
        )
        made[name if count == 0 else f"{name}-{count + 1}"] = attack
    if not attacks:
        faults.append("attacks: none given; name at least one.")
    raise_faults(faults)
    return made


def _made(choice: Any, prior: Any, own: Any, shared: Mapping[str, Any]) -> Attack[Any]:
    if isinstance(choice, Attack):
        return choice
    if not isinstance(choice, str | Mapping):
        name = choice.__name__ if isinstance(choice, type) else type(choice).__name__
        hint = f"an attack object such as {name}()" if isinstance(choice, type) else "an attack object"
        raise InputError(f"{name} is not an attack; give a name, a mapping or {hint}.")
    parameters = {"name": choice} if isinstance(choice, str) else dict(choice)
    if "name" not in parameters:
        raise InputError("a mapping needs a name, such as {name: rmia, gamma: 2}.")
    name = str(parameters.pop("name"))
    expected = own if find_attack(name).kind == "records" else prior
    return create(name, shared={**shared, "prior": expected}, **parameters)
