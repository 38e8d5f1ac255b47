"""Attacks on edges: the Bayes-optimal rule for one edge, and three published ways to steal links to compare with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from glasshouse.attacks import Attack, Judgement, QueryCount, register
from glasshouse.attacks.prior import check_prior
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evidence import Kind, Mode
from glasshouse.graph.edge_scene import EdgeScene
from glasshouse.graph.rule.edge_toggles import EdgeEngine
from glasshouse.graph.sampling.posterior import log_odds
from glasshouse.graph.sampling.samplers import SAMPLERS, GroundTruth, Samples, SamplingRequest, draw

EdgeSampler = Callable[[Any, SamplingRequest], Samples | BoolArray]  # the first is the `EdgeScene`
_OF_EDGES = ("independent", "mia")  # samplers by name that know nothing of nodes


class EdgeAttack(Attack[EdgeScene]):
    """An attack that looks at pairs of nodes."""

    kind: ClassVar[Kind] = "edges"

    def check(self, members: BoolArray) -> None:
        """It can use any pool."""


@register("g-edge")
@dataclass(frozen=True, kw_only=True)
class GEdge(EdgeAttack):
    r"""Posterior probability that an edge was in the training graph, averaged over plausible graphs of the others.

    :math:`\frac1M \sum_i \sigma(-S_\theta - \log \frac1K \sum_k e^{-S_k} + \log\frac{\lambda}{1-\lambda})`, where
    :math:`S` is the change of all nodes' losses by the edge, on sample i's graph; docs/edges.md derives it.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that were trained without the edge.
        sampler: where the other edges come from: ``"independent"``, ``"mia"``, `GroundTruth`, or your own
            ``(scene, request) -> bool [M, P]``.
        samples: M, how many graphs.
        prior: λ, the share of edges among the pairs that is expected beforehand: one number, or one per pair.
        engine: ``"auto"``, or ``"reference"`` for the rule as written.
        seed: seed of the sampler.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> torch.manual_seed(0) and None
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(3)]
        >>> scene = EdgeScene(data, models[0], models[1:], [[1, 0], [0, 1]], pairs=[[0, 1], [2, 2]])
        >>> scores = GEdge().score(scene)
        >>> scores.shape, bool(((scores > 0) & (scores < 1)).all())
        ((2,), True)
    """

    posterior: ClassVar[bool] = True

    mode: Mode = "online"
    sampler: str | EdgeSampler = "independent"
    samples: int = 8
    prior: float | ArrayLike = 0.5
    engine: EdgeEngine = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str) and self.sampler not in _OF_EDGES:
            raise InputError(f"sampler: {self.sampler!r} does not draw edges. Use {' or '.join(_OF_EDGES)}.")
        if self.samples < 1:
            raise InputError(f"samples: {self.samples}; use 1 or more.")
        check_prior(self.prior)

    @property
    def knows_truth(self) -> bool:
        """Whether its sampler is given the target's edges."""
        return isinstance(self.sampler, GroundTruth)

    def check(self, members: BoolArray) -> None:
        """Refuse, offline, a pool in which every model has some edge."""
        lost = members.all(axis=0)
        if self.mode == "offline" and lost.any():
            raise InputError(
                f"shadow_members: {int(lost.sum())} edges have no out-model. Train more shadow models, in pairs."
            )

    def score(self, scene: EdgeScene) -> FloatArray:
        """Posteriors, [P]."""
        return self.judge(scene).scores

    def judge(self, scene: EdgeScene) -> Judgement:
        """Posteriors, and what they took."""
        self.check(scene.shadow_members)
        usable = ~scene.shadow_members if self.mode == "offline" else None
        count = len(scene.ids)
        prior = np.broadcast_to(np.asarray(self.prior, dtype=np.float64), (count,))
        request = SamplingRequest(samples=self.samples, prior=prior, mode=self.mode, passes=1, seed=self.seed)
        sampler = SAMPLERS.find(self.sampler) if isinstance(self.sampler, str) else self.sampler
        samples = draw(sampler, scene, request)  # type: ignore[arg-type] # those that are let in look at no nodes
        signals = scene.toggled(samples.masks, engine=self.engine)  # [1 + K, M, P]
        odds = [log_odds(signals[0, i], signals[1:, i], usable) + logit(prior) for i in range(self.samples)]
        answering = len(scene.shadows) if usable is None else float(usable.sum(axis=0).mean())
        queries = QueryCount(2 * self.samples * (1 + answering), shared=samples.queries)
        return Judgement(np.asarray(np.mean(expit(odds), axis=0)), queries)


@register("edge-posteriors")
@dataclass(frozen=True, kw_only=True)
class EdgePosteriors(EdgeAttack):
    """Correlation of the target's class probabilities about both ends (He and others, 2021, their attack 0).

    Example:
        >>> EdgePosteriors().name
        'edge-posteriors'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Correlations, [P]."""
        found = scene.posteriors
        return _cosines(found - found.mean(axis=1, keepdims=True), scene)


@register("edge-features")
@dataclass(frozen=True, kw_only=True)
class EdgeFeatures(EdgeAttack):
    """Cosine of the features of both ends: what can be said without the target (He and others, 2021).

    Example:
        >>> EdgeFeatures().name
        'edge-features'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Cosines, [P]."""
        return _cosines(scene.data.x.cpu().numpy().astype(np.float64), scene)


@register("edge-influence")
@dataclass(frozen=True, kw_only=True)
class EdgeInfluence(EdgeAttack):
    """How far the target's answer about one end follows the other's features (LinkTeller, Wu and others, 2022).

    LinkTeller asks a service that holds the private graph. Here the attacker hands over the graph, so the pair is
    joined for the question: a model follows an edge that it was trained with in another way than one that it never saw.

    Example:
        >>> EdgeInfluence().name
        'edge-influence'
    """

    least_models: ClassVar[int] = 0

    def score(self, scene: EdgeScene) -> FloatArray:
        """Influences, [P]."""
        return scene.influence


def _cosines(rows: FloatArray, scene: EdgeScene) -> FloatArray:
    """[P] cosine of the rows [n, width] of both ends of each pair."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(length > 0, length, 1.0)
    return np.asarray(np.einsum("pf,pf->p", *unit[scene.pairs]))
