"""G-BASE: the Bayes-approximate membership posterior of a node (paper, Definition 2); and with a temperature."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from glasshouse.attacks import Attack, Judgement, register
from glasshouse.attacks.base import Number, Signals, best_numbers, check_numbers, excess_of_certainty, tempered_odds
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.graph.attacks.graph_attack import Drawn, GraphAttack, ToggleRule
from glasshouse.graph.data.checking import with_context
from glasshouse.graph.rule.question import Hops
from glasshouse.graph.rule.toggling import CHECKED_MASKS, Answered, toggle_seconds
from glasshouse.graph.sampling.samplers import GroundTruth, Sampler, draw
from glasshouse.graph.scene import Scene


class LearnedSampler(NamedTuple):
    """A sampler that has learned from a pool, and the sampler, mode and seed of the attack that it learned for."""

    parameters: tuple[object, ...]
    sampler: Sampler


@register("g-base")
@dataclass(frozen=True, kw_only=True)
class GBASE(ToggleRule[Scene], GraphAttack):
    r"""Posterior probability that a node was trained on, averaged over plausible training sets of the others.

    :math:`\frac1M \sum_i \sigma(-S_\theta - \log \frac1K \sum_k e^{-S_k} + \log\frac{\lambda}{1-\lambda})`, where
    :math:`S` is the node's loss plus the change of its neighbours' losses by its presence (eq. 6), on sample i's graph.

    Args:
        passes: how often a Gibbs chain visits every node.
        hops: ``"model"`` sums over the L-hop neighbourhood as in Theorem 1, ``"affected"`` over every node whose
            prediction changes.

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

    candidate: ClassVar[bool] = True

    passes: int = 1
    hops: Hops = "model"
    sampler_: LearnedSampler | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sampler_ is not None and self.sampler_.parameters != self._parameters:
            object.__setattr__(self, "sampler_", None)  # it came with a copy of an attack that learns something else

    @property
    def label(self) -> str:
        """Its name in tables, which includes the sampler."""
        return f"{self.name}-{self.sampler if isinstance(self.sampler, str) else getattr(self.sampler, 'name', 'own')}"

    def tuned(self, scene: Scene) -> Self:
        """The same attack with what its sampler learns from this pool, if it learns; it does not look at the target."""
        learn = getattr(self._sampler, "tuned", None)
        if learn is None or self.sampler_ is not None:
            return self
        learned = LearnedSampler(self._parameters, learn(scene, self._request(scene, passes=self.passes)))
        return dataclasses.replace(self, sampler_=learned)

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

    def _drawn(self, scene: Scene) -> Drawn:
        """The sampled training sets, and the signals under them."""
        usable = None
        if self.mode == "offline":
            scene.of_nodes(scene.zero_hop).require_side(inside=False)
            usable = ~scene.shadow_members[:, scene.nodes]
        request = self._request(scene, passes=self.passes)
        with scene.keeping():
            samples = draw(self.tuned(scene)._sampler, scene, request)
        return Drawn(samples, request.prior, scene.toggled(samples.masks, engine=self.engine, hops=self.hops), usable)

    @property
    def _parameters(self) -> tuple[object, ...]:
        """What a sampler learns for."""
        return (self.sampler, self.mode, self.seed)

    @property
    def _sampler(self) -> Sampler:
        return super()._sampler if self.sampler_ is None else self.sampler_.sampler

    def _priors(self, scene: Scene) -> FloatArray:
        return with_context(super()._priors(scene), scene.data, scene.shadow_members)


def answers_of(attack: Attack[Any], scene: Scene) -> Answered | None:
    """What G-BASE asks about the target, and the answers, which the scene keeps; None for unusual options."""
    if not isinstance(attack, GBASE) or attack.sampler != "mia" or not isinstance(attack.prior, float | int):
        return None
    if (attack.engine, attack.hops) != ("auto", "model") or attack.samples < CHECKED_MASKS:
        return None
    masks = draw(attack._sampler, scene, attack._request(scene)).masks
    return Answered(masks, scene.toggled(masks))


def with_truth(attack: Attack[Any], members: BoolArray) -> Attack[Any]:
    """The attack itself; if its sampler is ``"truth"``, with the target's members [n], which no scene contains."""
    if isinstance(attack, GBASE) and attack.sampler == "truth":
        return dataclasses.replace(attack, sampler=GroundTruth(members))
    return attack


@register("g-base-tempered")
@dataclass(frozen=True, kw_only=True)
class TemperedGBASE(GBASE):
    r"""Like G-BASE, but with signals divided by T, and c times the node's excess of certainty added to the log-odds.

    :math:`\frac1M \sum_i \sigma(-S_\theta/T - \log\frac1K \sum_k e^{-S_k/T} + cE + \log\frac{\lambda}{1-\lambda})`,
    where E is by how much the target's answer about the node alone has less entropy than those of the shadow models. On
    overfitted models this finds more than G-BASE, whose posterior it no longer is (`benchmarks/paper/tempered.md`).

    Args:
        temperature: T; ``"auto"`` is tuned on simulated targets.
        ratio: c; ``"auto"`` is tuned on simulated targets. With T = 1 and c = 0 this is G-BASE.

    Example:
        >>> TemperedGBASE(temperature=2.0).label
        'g-base-tempered-mia'
    """

    posterior: ClassVar[bool] = False
    candidate: ClassVar[bool] = False

    temperature: Number = "auto"
    ratio: Number = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers(self.temperature, self.ratio)

    def tuned(self, scene: Scene) -> Self:
        """The same attack with what its sampler learns, and with T and c chosen on simulated targets."""
        learned = super().tuned(scene)
        if "auto" not in (self.temperature, self.ratio):
            return learned
        simulated = []
        for number, target in enumerate(scene.simulated()):
            own = dataclasses.replace(self._for_simulated(scene, number), temperature=1.0, ratio=0.0)
            drawn = own._drawn(target.view)
            simulated.append((own._with_certainty(target.view, drawn.signals, drawn.usable), target.members))
        temperature, ratio = best_numbers(simulated, self.temperature, self.ratio)
        return dataclasses.replace(learned, temperature=temperature, ratio=ratio)

    def _with_certainty(self, scene: Scene, signals: FloatArray, usable: BoolArray | None) -> Signals:
        """Signals [1 + K, M, nodes] of the target and the shadow models, with the excess of certainty of each node."""
        alone = scene.of_nodes(scene.zero_hop)
        answers = np.asarray(alone.target_logits), np.asarray(alone.shadow_logits)
        return Signals(signals[0], signals[1:], usable, excess_of_certainty(*answers, usable))

    def judge(self, scene: Scene) -> Judgement:
        """Scores of the scene's audited nodes, and figures of its sampler."""
        return GBASE.judge(self.tuned(scene), scene)

    def _log_odds(self, scene: Scene, signals: FloatArray, usable: BoolArray | None) -> FloatArray:
        """Log-odds without the prior, [M, nodes]; T and c are chosen by then."""
        found = self._with_certainty(scene, signals, usable)
        return tempered_odds(found, float(self.temperature), float(self.ratio))
