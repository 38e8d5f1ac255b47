"""G-BASE: the Bayes-approximate membership posterior of a node (paper, Definition 2)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from glasshouse.attacks import Attack, Judgement, QueryCount, register
from glasshouse.attacks.prior import check_prior
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.data.checking import with_context
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.toggling import toggle_seconds
from glasshouse.graph.sampling.posterior import log_odds
from glasshouse.graph.sampling.samplers import SAMPLERS, GroundTruth, Sampler, Samples, SamplingRequest, draw
from glasshouse.graph.scene import Scene


class LearnedSampler(NamedTuple):
    """A sampler that has learned from a pool, and the sampler, mode and seed of the attack that it learned for."""

    parameters: tuple[object, ...]
    sampler: Sampler


class _Drawn(NamedTuple):
    """Training sets of a scene, S under them [1 + K, M, nodes], and offline which models are used [K, nodes]."""

    samples: Samples
    signals: FloatArray
    usable: BoolArray | None


@register("g-base")
@dataclass(frozen=True, kw_only=True)
class GBASE(GraphAttack):
    r"""Posterior probability that a node was trained on, averaged over plausible training sets of the others.

    :math:`\frac1M \sum_i \sigma(-S_\theta - \log \frac1K \sum_k e^{-S_k} + \log\frac{\lambda}{1-\lambda})`, where
    :math:`S` is the node's loss plus the change of its neighbours' losses by its presence (eq. 6), on sample i's graph.

    Args:
        mode: ``"online"`` asks every shadow model, ``"offline"`` only those that did not train on the node.
        sampler: where the training sets come from: a registered name (``"independent"``, ``"mia"``, ``"metropolis"``,
            ``"gibbs"``, ``"stacked"``), `GroundTruth`, or your own ``(scene, request) -> bool [M, n]``.
        samples: M, how many training sets.
        prior: λ, the share of members expected before looking at the model: one number, or one per node.
        passes: how often a Gibbs chain visits every node.
        hops: ``"model"`` sums over the L-hop neighbourhood as in Theorem 1, ``"affected"`` over every node whose
            prediction changes.
        engine: how S is computed; see `toggle_losses`.
        seed: seed of the sampler.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from glasshouse.graph.models.networks import build_gnn
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
        >>> torch.manual_seed(0) and None
        >>> models = [build_gnn("gcn", features=3, hidden=4, classes=2) for _ in range(3)]
        >>> scene = Scene(data, models[0], models[1:], [[1, 0, 1], [0, 1, 0]])
        >>> scores = GBASE(sampler="independent").score(scene)
        >>> scores.shape, bool(((scores > 0) & (scores < 1)).all())
        ((3,), True)
    """

    posterior: ClassVar[bool] = True
    candidate: ClassVar[bool] = True

    mode: Mode = "online"
    sampler: str | Sampler = "mia"
    samples: int = 8
    prior: float | ArrayLike = 0.5
    passes: int = 1
    hops: Hops = "model"
    engine: str = "auto"
    seed: int = 0
    sampler_: LearnedSampler | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.sampler, str):
            SAMPLERS.find(self.sampler)
        if self.samples < 1 or self.passes < 1:
            raise InputError(f"samples, passes: {self.samples}, {self.passes}; use 1 or more of each.")
        check_prior(self.prior)
        if self.sampler_ is not None and self.sampler_.parameters != self._parameters:
            object.__setattr__(self, "sampler_", None)  # it came with a copy of an attack that learns something else

    @property
    def label(self) -> str:
        """Its name in tables, which includes the sampler."""
        return f"{self.name}-{self.sampler if isinstance(self.sampler, str) else getattr(self.sampler, 'name', 'own')}"

    @property
    def knows_truth(self) -> bool:
        """Whether its sampler is given the target's members."""
        return isinstance(self.sampler, GroundTruth)

    def check(self, members: BoolArray) -> None:
        """Refuse, offline, a pool in which some node is in every model: only models without the node are used."""
        lost = members.all(axis=0)
        if self.mode == "offline" and lost.any():
            raise InputError(
                f"shadow_members: {int(lost.sum())} nodes have no out-model. Train more shadow models, in pairs."
            )

    def tuned(self, scene: Scene) -> Self:
        """The same attack with what its sampler learns from this pool, if it learns; it does not look at the target."""
        learn = getattr(self._sampler, "tuned", None)
        if learn is None or self.sampler_ is not None:
            return self
        learned = LearnedSampler(self._parameters, learn(scene, self._request(scene)))
        return dataclasses.replace(self, sampler_=learned)

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors of the scene's audited nodes, [nodes]."""
        return self.judge(scene).scores

    def score_simulated(self, scene: Scene, k: int) -> tuple[FloatArray, BoolArray]:
        """Scores and members [nodes] of simulated target k; the sampler learns without this target."""
        target = scene.simulated_target(k)
        return self._for_simulated(scene, k).score(target.view), target.members

    def _for_simulated(self, scene: Scene, k: int) -> Self:
        """The attack on simulated target k: its sampler has learned nothing yet, or is given this target's members."""
        attack = dataclasses.replace(self, sampler_=None)
        return dataclasses.replace(attack, sampler=GroundTruth(scene.shadow_members[k])) if self.knows_truth else attack

    def flag_scores(self, scene: Scene) -> FloatArray:
        """Scores of the target as those of a simulated target: the sampler learns from the same smaller pool."""
        return dataclasses.replace(self, sampler_=None).score(scene.in_place_of(0))

    def simulated_seconds(self, scene: Scene) -> float | None:
        """What the engines predict for the toggles of all simulated targets; a sampler's own time comes on top."""
        if self.engine == "reference":
            return None
        some = scene.shadow_members[np.arange(self.samples) % len(scene.shadow_members)]
        engine = scene.engine_for(some, engine=self.engine, hops=self.hops)
        question = scene.question(some, hops=self.hops)
        return toggle_seconds(scene.profiled(), question, engine=engine) * len(scene.shadow_members)

    def judge(self, scene: Scene) -> Judgement:
        """Posteriors of the scene's audited nodes, and figures of its sampler."""
        samples, signals, usable = self._drawn(scene)
        odds = logit(self._priors(scene)[scene.nodes])
        posteriors = [expit(one + odds) for one in self._log_odds(scene, signals, usable)]
        answering = len(scene.shadows) if usable is None else float(usable.sum(axis=0).mean())
        return Judgement(
            np.asarray(np.mean(posteriors, axis=0)),
            # one query with the node, and one without it
            queries=QueryCount(2 * self.samples * (1 + answering), shared=samples.queries),
            details={} if samples.acceptance is None else {"sampler_acceptance": samples.acceptance},
            sampled=samples.masks[:, scene.nodes],
        )

    def _drawn(self, scene: Scene) -> _Drawn:
        """The sampled training sets, and the signals under them."""
        usable = None
        if self.mode == "offline":
            scene.of_nodes(scene.zero_hop).require_side(inside=False)
            usable = ~scene.shadow_members[:, scene.nodes]
        with scene.keeping():
            samples = draw(self.tuned(scene)._sampler, scene, self._request(scene))
        return _Drawn(samples, scene.toggled(samples.masks, engine=self.engine, hops=self.hops), usable)

    def _log_odds(self, scene: Scene, signals: FloatArray, usable: BoolArray | None) -> FloatArray:
        """Log-odds without the prior under each training set, [M, nodes], from signals [1 + K, M, nodes]."""
        return np.stack([log_odds(signals[0, i], signals[1:, i], usable) for i in range(signals.shape[1])])

    @property
    def _parameters(self) -> tuple[object, ...]:
        """What a sampler learns for."""
        return (self.sampler, self.mode, self.seed)

    @property
    def _sampler(self) -> Sampler:
        if self.sampler_ is not None:
            return self.sampler_.sampler
        return SAMPLERS.find(self.sampler) if isinstance(self.sampler, str) else self.sampler

    def _request(self, scene: Scene) -> SamplingRequest:
        return SamplingRequest(
            samples=self.samples, prior=self._priors(scene), mode=self.mode, passes=self.passes, seed=self.seed
        )

    def _priors(self, scene: Scene) -> FloatArray:
        count = int(scene.data.num_nodes)
        prior = np.asarray(self.prior, dtype=np.float64)
        if prior.shape not in ((), (count,)):
            raise InputError(f"prior: {prior.size} numbers for {count} nodes; give one, or one per node.")
        return with_context(np.broadcast_to(prior, (count,)), scene.data, scene.shadow_members)


def with_truth(attack: Attack[Any], members: BoolArray) -> Attack[Any]:
    """The attack itself; if its sampler is ``"truth"``, with the target's members [n], which no scene contains."""
    if isinstance(attack, GBASE) and attack.sampler == "truth":
        return dataclasses.replace(attack, sampler=GroundTruth(members))
    return attack
