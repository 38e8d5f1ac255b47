"""From what a user writes under ``attacks`` to attacks on a graph, and which of them make no sense for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from glasshouse.arrays import IntArray
from glasshouse.attacks import Attack, create
from glasshouse.attacks.choices import named_attacks
from glasshouse.errors import InputError
from glasshouse.graph.attacks.attack import GRAPH_ATTACKS, GraphAttack, make_attack
from glasshouse.graph.training.setting import Setting

__all__ = ["chosen_graph_attacks"]

_NO_TOGGLES = (
    "left out: it asks about a node with and without its surroundings, and a transductive model was trained on the "
    "whole graph, whoever is a member"
)


def chosen_graph_attacks(
    attacks: Sequence[Any] | str,
    *,
    setting: Setting,
    nodes: IntArray,
    prior: float | ArrayLike,
    **shared: Any,
) -> tuple[dict[str, Attack | GraphAttack], dict[str, str]]:
    """The attacks by name, and the reasons of those that are left out.

    Args:
        attacks: names, mappings with ``name`` and parameters, or objects.
        setting: transductive, attacks that toggle nodes are left out, and ``best`` picks among the others.
        nodes: the audited nodes: attacks on records know only these.
        prior: one number, or one per node of the graph.
        **shared: parameters for whichever attacks given by name have them.

    Example:
        >>> made, left_out = chosen_graph_attacks(
        ...     ["base", "g-base"], setting="transductive", nodes=np.arange(3), prior=0.5
        ... )
        >>> list(made), list(left_out)
        (['base'], ['g-base-mia'])
    """
    own = prior if np.ndim(prior) == 0 else np.asarray(prior)[nodes]
    transductive = setting == "transductive"

    def make(name: str, parameters: Mapping[str, Any]) -> Attack | GraphAttack:
        if name == "best" and transductive:
            return create(name, shared={**shared, "prior": own}, **parameters)
        expected = prior if name in GRAPH_ATTACKS.names() else own
        return make_attack(name, parameters, prior=expected, **shared)

    made = named_attacks(attacks, make)
    senseless = [name for name, attack in made.items() if transductive and isinstance(attack, GraphAttack)]
    if len(senseless) == len(made):
        raise InputError(f"attacks: {senseless[0]} is {_NO_TOGGLES}. Name others, such as base, lira or best.")
    kept = {name: attack for name, attack in made.items() if name not in senseless}
    return kept, dict.fromkeys(senseless, _NO_TOGGLES)
