"""What a pool answers on its graph: every node alone, in the whole graph, and under sampled training sets.

None of it depends on a target; a target's own answers are put beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from glasshouse.attacks.cross_fit import ENOUGH, TargetPlan, plan_targets
from glasshouse.attacks.learners import Boosted, Learner, Linear, Network
from glasshouse.attacks.stacked import Features, StackedParameters
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, some_of
from glasshouse.core.registry import did_you_mean
from glasshouse.evidence import Evidence
from glasshouse.graph.attacks.stacking.features import (
    SIGNALS,
    GraphContext,
    SampledAnswers,
    TargetSignals,
    node_features,
    plain_features,
)
from glasshouse.graph.data.checking import with_context
from glasshouse.graph.models.networks import Model, model_device
from glasshouse.graph.models.profile import AnyModel, Profiled, raw_models
from glasshouse.graph.rule.toggling import question_about, settled_engine, toggle_answers, toggle_seconds
from glasshouse.graph.sampling.posterior import log_odds
from glasshouse.graph.scene import Scene

TEACHING = 20_000  # nodes to learn from: with simulated targets, about as many pairs as teach anything (`ENOUGH`)


@dataclass(frozen=True, kw_only=True)
class GStackedParameters(StackedParameters):
    """Parameters of `GStacked`, where they are explained."""

    samples: tuple[int, ...] = (8, 2, 8)
    sampled_models: int = 32
    boosted: Boosted = field(default_factory=lambda: Boosted(rounds=60, share=0.15, guide=Linear(examples=20_000)))
    network: Network = field(default_factory=Network)
    early: Network = field(default_factory=lambda: Network(nets=1, epochs=6, examples=50_000))
    without: Sequence[str] = ()
    engine: str = "auto"

    def __post_init__(self) -> None:
        if not self.samples or min(self.samples) < 1:
            raise InputError(f"samples: {self.samples}; use one or more rounds of 1 or more.")
        if isinstance(self.without, str) or not isinstance(self.without, Sequence):
            raise InputError(f"without: {self.without!r} is not a list; give a list of names of signals.")
        unknown = [str(name) for name in self.without if name not in SIGNALS]
        if unknown:
            raise InputError(f'without: no signal is called "{unknown[0]}".{did_you_mean(unknown[0], SIGNALS)}')
        for name in ("samples", "without"):  # a list of the caller may change later, but what was learned would not
            object.__setattr__(self, name, tuple(getattr(self, name)))
        super().__post_init__()

    @property
    def _learners(self) -> dict[str, Learner]:
        return {"linear": self.linear, "network": self.network, "boosted": self.boosted}


class PlainAnswers(NamedTuple):
    """Losses of K models on every node, [K, n] each."""

    alone: FloatArray  # each node queried without edges
    whole: FloatArray  # each node queried in the whole graph


class SampledSignals(NamedTuple):
    """Answers of a target and of some shadow models under the same M sampled training sets."""

    target: SampledAnswers  # of the target alone, [1, M, n]
    rows: NDArray[np.intp]  # [S] rows of the pool: the shadow models that were queried
    references: SampledAnswers  # of these shadow models, [S, M, n]


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolSignals:
    """All answers of a pool that do not depend on a target; see `ask_pool`.

    Only J nodes are asked about under sampled training sets and learned from. All arrays of a target are about these
    nodes, unless they say [n].
    """

    data: Data
    shadows: tuple[Profiled, ...]
    members: BoolArray  # [K, n] of each shadow model
    context: GraphContext
    plan: TargetPlan
    sampled_models: NDArray[np.intp]  # [S] rows of the pool that are queried under sampled training sets
    plain: PlainAnswers  # of all shadow models, [K, n] each
    masks: BoolArray  # [M, n] training sets drawn without looking at any model; they are used for all targets
    sampled: SampledAnswers  # of the sampled models under these masks, [S, M, J] each
    attack: GStackedParameters  # its parameters
    settled: str  # the engine for questions about the pool's own models, chosen for all of them together
    asked: IntArray | None = None  # [J] the asked nodes, ascending; None for all of them, J = n

    @property
    def at(self) -> slice | IntArray:
        """Where the asked nodes are among all."""
        return slice(None) if self.asked is None else self.asked

    def is_of(self, data: Data, shadows: Sequence[Model], members: BoolArray) -> bool:
        """Whether exactly these models were queried on exactly this graph."""
        same = self.data.x is data.x and self.data.edge_index is data.edge_index and len(self.shadows) == len(shadows)
        same = same and all(mine is other for mine, other in zip(raw_models(self.shadows), shadows, strict=True))
        return same and np.array_equal(self.members, members)

    def of_target(self, scene: Scene) -> tuple[PlainAnswers, SampledSignals]:
        """What a scene's target answers to what the pool was asked, under the masks that are used for all targets."""
        plain, _ = plain_answers(scene)
        answers = self._answers(scene.profiled()[:1], self.masks)
        return plain, SampledSignals(answers, self.sampled_models, self.sampled)

    def of_shadow(self, k: int) -> tuple[PlainAnswers, SampledSignals]:
        """What shadow model k of the plan answered, as if it were the target."""
        row = int(np.searchsorted(self.sampled_models, k))
        plain = PlainAnswers(self.plain.alone[[k]], self.plain.whole[[k]])
        return plain, SampledSignals(self.sampled.of([row]), self.sampled_models, self.sampled)

    def under_masks(self, target: Profiled, masks: BoolArray, references: NDArray[np.intp]) -> SampledSignals:
        """Ask about a target's own training sets [M, n]: the target, and those references that are sampled models."""
        rows = np.intersect1d(references, self.sampled_models)
        answers = self._answers([target, *[self.shadows[k] for k in rows.tolist()]], masks)
        return SampledSignals(answers.of([0]), rows, answers.of(range(1, 1 + len(rows))))

    def _answers(self, models: Sequence[Profiled], masks: BoolArray) -> SampledAnswers:
        return sampled_answers(models, self.data, masks, engine=self.engine_for(models[0]), nodes=self.asked)

    def engine_for(self, target: Profiled) -> str:
        """The pool's engine if the target gets the same; a target of another kind may need another one."""
        if self.attack.engine != "auto" or any(target.model is shadow.model for shadow in self.shadows):
            return self.settled
        question = question_about([target], self.data, self.masks, self.asked)
        own = settled_engine([target], question, **_work(self.attack, self.plan, self.sampled_models))
        return self.settled if own == self.settled else "auto"

    def seconds_under(self, masks: BoolArray) -> float:
        """How long all simulated targets should take for training sets [M, n] of their own; 0 if not known."""
        if self.settled == "reference":
            return 0.0
        models = [self.shadows[k] for k in self.sampled_models.tolist()]
        one = toggle_seconds(models, question_about(models, self.data, masks, self.asked), engine=self.settled)
        return one * len(self.plan.targets)

    def target_signals(
        self,
        plain: PlainAnswers,
        sampled: SampledSignals,
        references: NDArray[np.intp],
        odds: FloatArray | None = None,
        known: Features | None = None,
    ) -> TargetSignals:
        """All that is used to judge a target that may be compared with some rows [R] of the pool.

        It has log-odds [J] from the round before, except in the first round, and perhaps known `plain_features`.
        """
        chosen = np.flatnonzero(np.isin(sampled.rows, references))
        alone, whole = self._evidence(plain, references)
        return TargetSignals(
            alone=alone,
            whole=whole,
            target=sampled.target,
            references=sampled.references.of(chosen.tolist()),
            members=self.members[sampled.rows[chosen]][:, self.at],
            posterior=odds,
            plain=known,
        )

    def plain_features(self, asked: Sequence[tuple[PlainAnswers, NDArray[np.intp]]]) -> list[Features]:
        """Features that are the same in every round, of several targets: plain answers and references of each."""
        both = [self._evidence(*each) for each in asked]
        odds = None if self.asked is None else [self._base_odds(*each) for each in asked]
        return plain_features(both, self.context, mode=self.attack.mode, odds=odds)

    def _base_odds(self, plain: PlainAnswers, references: NDArray[np.intp]) -> FloatArray:
        """BASE's log-odds [n] of all nodes, each queried alone: what is known of those that are not asked about."""
        members = self.members[references]
        usable = None if self.attack.mode == "online" else ~members | members.all(axis=0)
        return log_odds(plain.alone[0], self.plain.alone[references], usable)

    def everywhere(self, odds: FloatArray, plain: PlainAnswers, references: NDArray[np.intp]) -> FloatArray:
        """Log-odds [n] of all nodes of a target: those given [J] for asked nodes, and BASE's for the others."""
        if self.asked is None:
            return odds
        found = self._base_odds(plain, references)
        found[self.asked] = odds
        return with_context(found, self.data, self.members, odds=True)

    @cached_property
    def shadow_features(self) -> list[Features]:
        """The same of the plan's simulated targets."""
        targets = zip(self.plan.targets.tolist(), self.plan.references, strict=True)
        return self.plain_features([(self.of_shadow(k)[0], rows[:, 0]) for k, rows in targets])

    def rows(self, signals: TargetSignals) -> FloatArray:
        """Features [J, F] of a target."""
        mode, without = self.attack.mode, self.attack.without
        found = without_signals(node_features(signals, self.context, mode=mode), without)
        if not found:
            raise InputError(f"without: {', '.join(without)} leave nothing to learn from; keep one of them.")
        return np.stack(list(found.values()), axis=1)

    def _evidence(self, plain: PlainAnswers, references: NDArray[np.intp]) -> tuple[Evidence, Evidence]:
        """About the asked nodes, each queried alone and in the whole graph."""
        members, at = self.members[references][:, self.at], self.at
        alone, whole = (
            Evidence(target_loss=target[0][at], shadow_loss=pool[references][:, at], shadow_members=members)
            for target, pool in zip(plain, self.plain, strict=True)
        )
        return alone, whole


def plain_answers(scene: Scene) -> tuple[PlainAnswers, PlainAnswers]:
    """What a scene knows: the losses of its target, [1, n] each, and of its shadow models, [K, n] each."""
    asked = scene.zero_hop, scene.whole_graph
    return PlainAnswers(*(one.target_loss[None] for one in asked)), PlainAnswers(*(one.shadow_loss for one in asked))


def sampled_answers(
    models: Sequence[AnyModel], data: Data, masks: BoolArray, *, engine: str = "auto", nodes: IntArray | None = None
) -> SampledAnswers:
    """Ask every model under every mask [M, n] about every node, or about some; the own loss is a part of S."""
    asked = torch.arange(int(data.num_nodes)) if nodes is None else torch.from_numpy(nodes)
    found = toggle_answers(models, data, torch.from_numpy(masks), asked, engine=engine)
    return SampledAnswers(found.own.cpu().numpy(), found.signal.cpu().numpy())


def draw_training_sets(chances: FloatArray, *, samples: int, random: np.random.Generator) -> BoolArray:
    """Training sets [M, n] for chances [n] of membership.

    Each set alone is like one drawn with a coin per node. But the sets share the coins: every node gets one number from
    each of M equal parts of [0, 1], in random order (a Latin hypercube), so that it is in M times its chance of the
    sets, rounded up or down. A mean over such sets varies far less: four of them are worth eight independent ones.
    """
    parts = random.random((samples, len(chances))).argsort(axis=0)
    return np.asarray((parts + random.random(parts.shape)) / samples < chances)


def ask_pool(scene: Scene, attack: GStackedParameters) -> PoolSignals:
    """Ask a pool all that does not depend on a target; the scene's own target is not used."""
    data, shadows, members, seed = scene.data, tuple(scene.profiled()[1:]), scene.shadow_members, attack.seed
    asked_nodes = _asked_nodes(scene, seed)
    seen = members if asked_nodes is None else members[:, asked_nodes]
    plan = plan_targets(seen, targets=attack.targets, seed=seed, enough=ENOUGH)
    if any(rows.shape[1] != 1 for rows in plan.references):
        raise InputError("shadow_members: on graphs, train shadow models in complementary pairs or on random sets.")
    chosen = np.arange(len(members))
    if len(members) > attack.sampled_models:  # simulated targets and some more, in whole pairs if the pool has pairs
        more = plan_targets(members[:, scene.labelled], targets=attack.sampled_models, seed=seed).targets
        chosen = np.union1d(plan.targets, more)
    share = with_context(np.full(members.shape[1], members[:, scene.labelled].mean()), data, members)
    masks = draw_training_sets(share, samples=attack.samples[0], random=generator(seed, "masks"))
    asked = [shadows[k] for k in chosen.tolist()]
    settled = attack.engine
    if settled == "auto":
        question = question_about(asked, data, masks, asked_nodes)
        settled = settled_engine(asked, question, **_work(attack, plan, chosen))
    return PoolSignals(
        data=data,
        shadows=shadows,
        members=members,
        context=GraphContext.of(
            data, kin="kin" not in attack.without, device=model_device(scene.shadows), nodes=asked_nodes
        ),
        plan=plan,
        sampled_models=chosen,
        plain=plain_answers(scene)[1],
        masks=masks,
        sampled=sampled_answers(asked, data, masks, engine=settled, nodes=asked_nodes),
        attack=attack,
        settled=settled,
        asked=asked_nodes,
    )


def without_signals(features: Features, left_out: Collection[str]) -> Features:
    """The features that use none of the left-out signals."""
    return {name: value for name, value in features.items() if not set(name.replace("'", "").split()) & set(left_out)}


def _asked_nodes(scene: Scene, seed: int) -> IntArray | None:
    """The nodes to ask about: the audited ones, and random others if these are too few to learn from; None for all.

    Nodes without a label have no loss to ask for.
    """
    labelled = np.arange(int(scene.data.num_nodes))[scene.labelled]
    if max(len(scene.nodes), TEACHING) >= len(labelled):
        return None if isinstance(scene.labelled, slice) else labelled
    others = np.setdiff1d(labelled, scene.nodes, assume_unique=True)
    more = some_of(len(others), max(0, TEACHING - len(scene.nodes)), seed, "teaching nodes")
    return np.sort(np.concatenate([scene.nodes, others[more]]))


def _work(attack: GStackedParameters, plan: TargetPlan, sampled_models: NDArray[np.intp]) -> dict[str, int]:
    """About how many pairs of a model and a training set are asked about, of the target and all simulated ones.

    It is what G-BASE asks, so that both get the same engine; and the training sets of the largest round are the least.
    """
    largest = max(attack.samples)
    return {"work": largest * (1 + len(plan.targets)) * (1 + len(sampled_models)), "least": largest}
