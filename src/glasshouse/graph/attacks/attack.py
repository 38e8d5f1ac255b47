"""What an attack on a graph is, and the registry of those that need more than zero-hop evidence."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from numpy.typing import ArrayLike
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import Attack, QueryCount, attack_names, create
from glasshouse.graph.models.model import Model
from glasshouse.graph.scene import Scene
from glasshouse.registry import Registry

__all__ = ["GRAPH_ATTACKS", "GraphAttack", "Judgement", "make_attack", "register_graph_attack"]


class Judgement(NamedTuple):
    """What an attack says of the nodes.

    Args:
        scores: [nodes], higher means member.
        details: figures that only this attack has, such as its sampler's precision.
        queries: made to models.
        warning: what a reader must know before believing the scores; mostly empty.
    """

    scores: FloatArray
    details: Mapping[str, float]
    queries: QueryCount | None = None
    warning: str = ""


class GraphAttack(abc.ABC):
    """An attack that asks models about parts of the graph: a frozen dataclass whose fields are its parameters.

    Its class attribute ``posterior`` tells that its score is a probability of membership.

    Example:
        >>> "g-base" in GRAPH_ATTACKS.names()
        True
    """

    name: ClassVar[str]
    posterior: ClassVar[bool] = False

    @property
    def toggles(self) -> bool:
        """Whether it computes the rule through a fast engine, which an audit then holds against the rule as written."""
        return getattr(self, "engine", "reference") != "reference"

    def check(self, members: BoolArray) -> None:  # noqa: B027 (most attacks can judge by any pool)
        """Refuse, before anything is trained, a pool [K, nodes] that it cannot judge by."""

    def tuned(self, scene: Scene) -> Self:
        """The same attack with all that it learns from the scene's pool; the target is not looked at."""
        return self

    @abc.abstractmethod
    def judge(self, scene: Scene) -> Judgement:
        """Scores of the scene's audited nodes, and figures of its own to report beside them."""

    def score(
        self,
        data: Data,
        *,
        target: Model,
        shadows: Sequence[Model],
        shadow_members: ArrayLike,
        nodes: ArrayLike | None = None,
        truth: ArrayLike | None = None,
    ) -> FloatArray:
        """Scores of the nodes, [nodes], from the pieces of a scene; higher means member.

        Args:
            data: the graph.
            target: the model under audit.
            shadows: the K shadow models.
            shadow_members: [K, n] who trained which.
            nodes: ids of the nodes to score; all by default.
            truth: [n] who trained the target, for G-BASE with ``sampler="truth"`` alone.
        """
        return self.score_scene(Scene(data, target, shadows, shadow_members, nodes=nodes, truth=truth))

    def score_scene(self, scene: Scene) -> FloatArray:
        """Scores of the scene's audited nodes, [nodes]; higher means member."""
        return self.judge(scene).scores

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [nodes] of each simulated target and who of them trained it [nodes]: what thresholds are made from.

        An attack that learns much from the pool overrides this, so that no simulated target is scored by what was
        learned from it.
        """
        for simulated, members in scene.simulated():
            yield self.score_scene(simulated), members


GRAPH_ATTACKS: Registry[type[GraphAttack]] = Registry("a graph attack")
GraphAttackType = TypeVar("GraphAttackType", bound=type[GraphAttack])


def register_graph_attack(name: str) -> Callable[[GraphAttackType], GraphAttackType]:
    """Class decorator that makes a graph attack known by name."""

    def decorate(attack: GraphAttackType) -> GraphAttackType:
        attack.name = name
        GRAPH_ATTACKS.add(name, attack)
        return attack

    return decorate


def make_attack(name: str, parameters: Mapping[str, Any], **shared: Any) -> Attack | GraphAttack:
    """An attack of either kind by name.

    Example:
        >>> make_attack("g-base", {"sampler": "gibbs"}).label
        'g-base-gibbs'
    """
    both: Registry[None] = Registry("an attack")  # so that a misspelt name is met with all that are known
    for known in [*attack_names(), *GRAPH_ATTACKS.names()]:
        both.add(known, None)
    both.find(name)
    # where both kinds have a name, such as "best", it is the graph's that is meant
    if name in GRAPH_ATTACKS.names():
        found: GraphAttack = GRAPH_ATTACKS.create(name, shared=shared, **parameters)
        return found
    return create(name, shared=shared, **parameters)
