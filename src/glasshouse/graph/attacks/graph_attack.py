"""The family of attacks on graphs: they ask models about parts of a graph."""

from __future__ import annotations

from typing import ClassVar

from glasshouse.attacks.attack import Attack
from glasshouse.core.arrays import BoolArray
from glasshouse.evidence import Kind
from glasshouse.graph.scene import Scene


class GraphAttack(Attack[Scene]):
    """An attack that looks at a scene: a frozen dataclass whose fields are its parameters.

    Example:
        >>> from glasshouse.attacks import create
        >>> create("g-base").toggles, create("g-base", engine="reference").toggles
        (True, False)
    """

    kind: ClassVar[Kind] = "graph"

    @property
    def toggles(self) -> bool:
        """Whether it computes the rule by a fast engine, which an audit then compares with the rule as written."""
        return getattr(self, "engine", "reference") != "reference"

    def check(self, members: BoolArray) -> None:
        """Refuse a pool [K, nodes] that it cannot use, before anything is trained; most can use any pool."""
