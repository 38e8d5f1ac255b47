"""G-BASE: the Bayes-approximate membership posterior of a node (paper, Definition 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks import QueryCount
from glasshouse.attacks.prior import check_prior
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.attack import GraphAttack, Judgement, register_graph_attack
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.sampling.samplers import SAMPLERS, Samples, SamplingRequest, draw
from glasshouse.graph.scene import Scene
from glasshouse.numerics import log_mean_exp

__all__ = ["GBASE"]

SamplerName = Literal["independent", "mia", "metropolis", "gibbs", "truth", "stacked"]


@register_graph_attack("g-base")
@dataclass(frozen=True, kw_only=True)
class GBASE(GraphAttack):
    r"""Posterior probability that a node was trained on, averaged over plausible training sets of the others.

    :math:`\frac1M \sum_i \sigma(-S_\theta - \log \frac1K \sum_k e^{-S_k} + \log\frac{\lambda}{1-\lambda})`, where
    :math:`S` is the node's loss and what its presence does to its neighbours' (eq. 6), on the graph of sample i.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the node.
        sampler: where the training sets come from: a name of ``SAMPLERS``, or ``(scene, request) -> bool [M, n]``.
        samples: M, how many of them.
        prior: λ, the share of members expected before looking: one number, or one a node.
        passes: how often a Gibbs chain visits every node.
        hops: ``"model"`` sums over the L-hop neighbourhood as Theorem 1 says, ``"affected"`` over every node whose
            prediction changes.
        engine: how S is computed; see `toggle_losses`.
        seed: of the sampler.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.gnn import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> torch.manual_seed(0) and None
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(3)]
        >>> scores = GBASE(sampler="independent").score(
        ...     data, target=models[0], shadows=models[1:], shadow_members=[[1, 0, 1], [0, 1, 0]]
        ... )
        >>> scores.shape, bool(((scores > 0) & (scores < 1)).all())
        ((3,), True)
    """

    posterior: ClassVar[bool] = True

    mode: Mode = "online"
    sampler: SamplerName | Callable[[Scene, SamplingRequest], BoolArray] = "mia"
    samples: int = 8
    prior: float | ArrayLike = 0.5
    passes: int = 1
    hops: Hops = "model"
    engine: str = "auto"
    seed: int = 0
    memory_: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)  # of the sampler

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str):
            SAMPLERS.find(self.sampler)
        if self.samples < 1 or self.passes < 1:
            raise InputError(f"samples, passes: {self.samples}, {self.passes}; use 1 or more of each.")
        check_prior(self.prior)

    @property
    def label(self) -> str:
        """Its name in tables, which tells samplers apart."""
        return f"{self.name}-{self.sampler if isinstance(self.sampler, str) else 'own'}"

    def check(self, members: BoolArray) -> None:
        """Refuse a node that no shadow model is without, where only those speak."""
        lost = members.all(axis=0)
        if self.mode == "offline" and lost.any():
            raise InputError(
                f"shadow_members: {int(lost.sum())} nodes have no out-model. Train more shadow models, in pairs."
            )

    def judge(self, scene: Scene) -> Judgement:
        """Posteriors of the scene's audited nodes, and how its sampler did."""
        asked = None
        if self.mode == "offline":
            scene.of_nodes(scene.zero_hop).require_side(inside=False)
            asked = ~scene.shadow_members[:, scene.nodes]
        samples = self._sampled(scene)
        signals = scene.toggled(samples.masks, engine=self.engine, hops=self.hops)  # [1 + K, M, nodes]
        odds = logit(self._priors(scene)[scene.nodes])
        posteriors = [
            expit(-signals[0, i] - log_mean_exp(-signals[1:, i], where=asked) + odds) for i in range(self.samples)
        ]
        speaking = len(scene.shadows) if asked is None else float(asked.sum(axis=0).mean())
        queries = QueryCount(2 * self.samples * (1 + speaking), shared=samples.queries)  # with the node, and without it
        return Judgement(np.asarray(np.mean(posteriors, axis=0)), _figures(samples), queries)

    def _sampled(self, scene: Scene) -> Samples:
        request = SamplingRequest(
            samples=self.samples,
            prior=self._priors(scene),
            mode=self.mode,
            passes=self.passes,
            seed=self.seed,
            memory=self.memory_,
        )
        return draw(self.sampler, scene, request)

    def _priors(self, scene: Scene) -> FloatArray:
        count = int(scene.data.num_nodes)
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape not in ((), (count,)):
            raise InputError(f"prior: {prior.size} numbers for {count} nodes; give one, or one a node.")
        return np.broadcast_to(prior, (count,))


def _figures(samples: Samples) -> dict[str, float]:
    """The sampler's acceptance rate, and its precision and recall where the truth is known."""
    figures = {
        "sampler_acceptance": samples.acceptance,
        "sampler_precision": samples.precision,
        "sampler_recall": samples.recall,
    }
    return {name: value for name, value in figures.items() if value is not None}
