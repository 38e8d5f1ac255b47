"""The classifier attack on graphs: a network that sees the answers about a node alone and with its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glasshouse.attacks import QueryCount
from glasshouse.attacks.attack import register
from glasshouse.attacks.classifier import Case, ShadowClassifier, sorted_log_probabilities
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.scene import Scene


@register("g-classifier")
@dataclass(frozen=True, kw_only=True)
class GClassifier(GraphAttack):
    """A perceptron on sorted class probabilities of two queries: the node alone, and the node in the whole graph.

    The paper's "MLP (0+2-hop)" with several shadow models; "MLP (0-hop)" is the i.i.d. attack ``classifier``.

    Args:
        hidden: widths of its hidden layers.
        examples: how many answers it learns from, at most.
        epochs: passes over them.
        seed: seed of its weights, batches and draw.

    Example:
        >>> GClassifier().name
        'g-classifier'
    """

    posterior: ClassVar[bool] = True

    hidden: tuple[int, ...] = (64,)
    examples: int = 100_000
    epochs: int = 20
    seed: int = 0

    def score(self, scene: Scene) -> FloatArray:
        """Probabilities of membership, [nodes]."""
        return next(self._learner.scored([self._case(scene)]))

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores and members [nodes] of each simulated target; the same references have the same network."""
        return self._learner.scored_pairs((self._case(target.view), target.members) for target in scene.simulated())

    @property
    def _learner(self) -> ShadowClassifier:
        return ShadowClassifier(hidden=self.hidden, examples=self.examples, epochs=self.epochs, seed=self.seed)

    def _case(self, scene: Scene) -> Case:
        alone, within = (scene.of_nodes(one, scene.labelled) for one in (scene.zero_hop, scene.whole_graph))
        answers = _features(alone.shadow_logits, within.shadow_logits)
        asked = _features(alone.target_logits, within.target_logits)[scene.among_labelled]
        return self._learner.drawn(Case(answers, alone.shadow_members.reshape(-1), asked))

    def queries(self, scene: Scene) -> QueryCount:
        """The target twice about each node, and the shadow models about the examples."""
        return QueryCount(2.0, shared=2 * min(self.examples, scene.shadow_members.size))


def _features(*logits: Any) -> FloatArray:
    """[rows, 2 C] from the logits [..., C] of both queries."""
    return np.concatenate([sorted_log_probabilities(np.reshape(one, (-1, one.shape[-1]))) for one in logits], axis=1)
