"""The stacked attack on graphs: a posterior learned over all signals about a node, from simulated targets alone.

The same posterior is a sampling distribution of G-BASE: training sets from all that is known about a target.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from glasshouse.attacks import Judgement, QueryCount, register
from glasshouse.attacks.cross_fit import unlike_warning
from glasshouse.attacks.prior import with_prior
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator
from glasshouse.graph.attacks.graph_attack import GraphAttack
from glasshouse.graph.attacks.stacking.learn import Learned, learn
from glasshouse.graph.attacks.stacking.pool_signals import GStackedParameters, ask_pool
from glasshouse.graph.sampling.samplers import SAMPLERS, Samples, SamplingRequest
from glasshouse.graph.scene import Scene


@register("g-stacked")
@dataclass(frozen=True, kw_only=True)
class GStacked(GStackedParameters, GraphAttack):
    """Posterior probability that a node was trained on, learned from simulated targets.

    Each shadow model plays the target, judged by the pool without itself and its complement; its members are known.
    The signals about a node are: the scores of several attacks, with the node queried alone, in the whole graph and
    under sampled training sets; the answers expected from its kin (kin: nodes with features like the node's own; the
    target's answers about them predict its answer about the node); what its presence changes for its neighbours; and
    the scores of its neighbours. Boosted trees, small networks and a regression learn a posterior from them; the one
    that is best on held-out simulated targets is taken, or the mean of several. In every further round the training
    sets are sampled from the posterior of the round before.

    The true target is scored and never learned from. If it answers unlike all simulated targets, weighted to the prior
    (the figure ``unlikeness``, in standard deviations among these, is above 5), its answers are matched to theirs
    quantile by quantile, and BASE or G-BASE, which learned nothing, has a large part in the order; the posterior is
    then not calibrated.

    If only some nodes of a large graph are audited, these are asked about and learned from (with random others if they
    are fewer than 20 000), so the cost is in proportion. Of all other nodes it knows what they answer when they are
    queried alone; their place in sampled training sets is drawn from BASE.

    `tuned` gives a copy that has learned from a pool, for any number of targets with the same graph and shadow models.

    Args:
        mode: ``"online"``; or ``"offline"``, where only models without a node are used to judge it, and the posterior
            that judges it is learned from other nodes.
        prior: λ, the share of members expected before looking at the model: one number, or one per node.
        samples: number of training sets in each round; one number is one round.
        targets: how many shadow models play the target, at most.
        sampled_models: how many shadow models are queried under sampled training sets, at most.
        folds: number of groups of nodes for learning offline.
        without: signals that are left out, to see what each of them adds: alone, whole, sampled, kin (answers about
            nodes with similar features), gain, g-base, neighbours, degree, label and posterior.
        boosted: the boosted learner; its parameters.
        network: the small networks that learn beside it.
        early: the network of rounds before the last. They only draw training sets, so one will do, and no trees.
        linear: the linear learner.
        engine: how signals are computed; see `toggle_losses`.
        seed: seed of every random choice.
        jobs: number of fits that run in parallel; by default -1, one per core. Scores do not depend on it.

    Example:
        >>> GStacked(samples=(8,)).name  # one round
        'g-stacked'
    """

    version: ClassVar[int] = 8

    fit_: Learned | None = field(default=None, repr=False, compare=False)

    def tuned(self, scene: Scene) -> Self:
        """The same attack with its posterior learned from the scene's pool; it does not look at the target."""
        if self.fit_ is not None:
            return self
        with scene.keeping():
            return dataclasses.replace(self, fit_=learn(ask_pool(scene, self)))

    def learned(self, scene: Scene) -> Learned:
        """What was learned from the scene's pool; refused if the attack learned from another pool."""
        known = self.tuned(scene).fit_
        assert known is not None  # noqa: S101 (for the type checker: tuning fits)
        if not known.pool.is_of(scene.data, scene.shadows, scene.shadow_members):
            raise InputError(
                f"{self.name}: the attack learned from another graph, other shadow models or other members than the "
                f"scene has. Score the scene with a new attack."
            )
        if known.pool.asked is not None and not np.isin(scene.nodes, known.pool.asked).all():
            raise InputError(
                f"{self.name}: the attack learned for a sample of the nodes, and the scene audits others. Score the "
                f"scene with a new attack, or let it learn from a scene that audits the nodes of all targets."
            )
        return known

    def judge(self, scene: Scene) -> Judgement:
        """Posteriors of the scene's audited nodes."""
        known = self.learned(scene)
        with scene.keeping():
            odds, unlikeness = known.posterior_of(scene, self.prior)
        scores = self._scores(odds, known.share)[scene.nodes]
        each, shared = known.queries  # nodes are queried that are not audited
        elsewhere = round(each * (known.held_out.shape[1] - len(scene.nodes)))
        queries = QueryCount(each, shared=shared + elsewhere)
        return Judgement(scores, queries, unlike_warning(self.name, unlikeness), {"unlikeness": unlikeness})

    def score(self, scene: Scene) -> FloatArray:
        """Posteriors, [nodes]."""
        return self.judge(scene).scores

    def flag_scores(self, scene: Scene) -> FloatArray:
        """Posteriors [nodes] of the target in the place of the first simulated target: its references and predictor."""
        known = self.learned(scene)
        with scene.keeping():
            odds, _ = known.posterior_of(scene, self.prior, place=0)
        return self._scores(odds, known.share)[scene.nodes]

    def simulated_scores(self, scene: Scene) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Scores [nodes] of each simulated target as learned without it and its complement, and its members."""
        known = self.learned(scene)
        for k, odds in zip(known.pool.plan.targets.tolist(), known.held_out, strict=True):
            wide = np.zeros(int(scene.data.num_nodes))
            wide[known.pool.at] = odds
            yield self._scores(wide, known.share)[scene.nodes], scene.shadow_members[k, scene.nodes]


@dataclass(frozen=True)
class StackedSampler:
    """Every membership indicator drawn independently, from the stacked attack's posterior.

    The last round of the attack samples from the posterior of the round before, so this is like one more round.
    """

    attack: GStacked | None = None  # that learned from the pool; None before `tuned`

    def tuned(self, scene: Scene, request: SamplingRequest) -> StackedSampler:
        """The same sampler after it has learned from the scene's pool; it does not look at the target."""
        return StackedSampler(_attack(request).tuned(scene))

    def __call__(self, scene: Scene, request: SamplingRequest) -> Samples:
        """Masks [M, n]."""
        attack = self.attack or _attack(request).tuned(scene)
        known = attack.learned(scene)
        with scene.keeping():
            learned, _ = known.posterior_of(scene, request.prior)
        odds = with_prior(learned, share=known.share, prior=request.prior)
        uniform = generator(request.seed, "stacked").random((request.samples, len(odds)))
        return Samples(np.asarray(uniform < expit(odds)), queries=known.queries.total(len(odds)))


def _attack(request: SamplingRequest) -> GStacked:
    return GStacked(mode=request.mode, seed=request.seed, jobs=-1)


SAMPLERS.add("stacked", StackedSampler())
