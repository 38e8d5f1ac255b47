"""The attacks of the paper's tables, by their names in these tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glasshouse.attacks import BASE, RMIA, Attack, LiRA, ShadowClassifier
from glasshouse.evidence import Mode
from glasshouse.graph import GBASE, GClassifier
from glasshouse_experiments.bench import Name

__all__ = ["SAMPLERS", "Lineup", "classifiers", "gbase", "modes", "singles"]

Lineup = dict[Name, Attack[Any]]
# of Table 1, by its names
SAMPLERS: dict[str, str] = {"G-BASE (MI)": "independent", "G-BASE (MIA)": "mia", "G-BASE (Gibbs)": "gibbs"}


def modes(shadows: int) -> Iterator[tuple[Mode, str]]:
    """Online with all shadow models, offline with the half that did not train on a node."""
    yield "online", str(shadows)
    yield "offline", str(shadows // 2)


def singles(shadows: int) -> Lineup:
    """LiRA as in the paper, with one variance per record; RMIA with the audited nodes as Z; BASE.

    Example:
        >>> list(singles(8))[0]
        ('online', '8', '', 'LiRA')
    """
    found: Lineup = {}
    for mode, count in modes(shadows):
        found[mode, count, "", "LiRA"] = LiRA(mode=mode, variance="record")
        found[mode, count, "", "RMIA"] = RMIA(mode=mode)
        found[mode, count, "", "BASE"] = BASE(mode=mode)
    return found


def gbase(shadows: int, samplers: dict[str, str], *, samples: int = 8, setting: str = "") -> Lineup:
    """G-BASE under the given names, each with its sampler.

    Example:
        >>> gbase(8, {"G-BASE": "mia"})["offline", "4", "", "G-BASE"].mode
        'offline'
    """
    return {
        (mode, count, setting, name): GBASE(mode=mode, sampler=sampler, samples=samples)
        for mode, count in modes(shadows)
        for name, sampler in samplers.items()
    }


def classifiers(shadows: int) -> Lineup:
    """The paper's MLP attacks, which are always online."""
    return {
        ("online", str(shadows), "", "MLP (0-hop)"): ShadowClassifier(true_class=False),
        ("online", str(shadows), "", "MLP (0+2-hop)"): GClassifier(),
    }
