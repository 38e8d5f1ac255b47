"""All answers of a pool on its graph that do not depend on a target, and the features of a target next to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from glasshouse.attacks.stacking.features import Features
from glasshouse.attacks.stacking.parameters import ENOUGH, TargetPlan, plan_targets
from glasshouse.core.arrays import BoolArray, FloatArray, IntArray
from glasshouse.core.errors import InputError
from glasshouse.core.randomness import generator, some_of
from glasshouse.evidence import Evidence, Mode
from glasshouse.graph.attacks.stacking.answers import (
    PlainAnswers,
    SampledAnswers,
    draw_training_sets,
    plain_answers,
    sampled_answers,
)
from glasshouse.graph.attacks.stacking.features import (
    GraphContext,
    TargetSignals,
    node_features,
    plain_features,
    without_signals,
)
from glasshouse.graph.models.networks import Model, model_device
from glasshouse.graph.models.profile import Profiled, raw_models
from glasshouse.graph.rule.toggling import question_about, settled_engine, toggle_seconds
from glasshouse.graph.sampling.posterior import log_odds
from glasshouse.graph.scene import Scene

TEACHING = 20_000  # nodes to learn from: with simulated targets, about as many pairs as teach anything (`ENOUGH`)


class SampledSignals(NamedTuple):
    """Answers of a target and of some shadow models under the same M sampled training sets.

    Args:
        target: answers of the target alone, [1, M, n].
        rows: [S] rows of the pool: the shadow models that were queried.
        references: answers of these shadow models, [S, M, n].
    """

    target: SampledAnswers
    rows: NDArray[np.intp]
    references: SampledAnswers


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolSignals:
    """All answers of a pool that do not depend on a target.

    Args:
        data: the graph of n nodes.
        shadows: the pool's K models.
        members: [K, n] their members.
        context: what is known from the graph without a model.
        plan: which shadow models play the target.
        sampled_models: [S] rows of the pool: the shadow models that are queried under sampled training sets.
        plain: the pool's losses without edges and in the whole graph, [K, n] each.
        masks: [M, n] training sets drawn without looking at any model; they are used for all targets.
        sampled: the answers of the sampled models under these masks, [S, M, J] each.
        mode: ``"online"`` or ``"offline"``.
        engine: see `toggle_losses`.
        settled: the engine for questions about the pool's own models, chosen for all of them together.
        largest: the most training sets of any round.
        without: signals that are left out.
        asked: [J] the nodes that are asked about under sampled training sets and learned from, ascending; None for all
            of them, J = n. All other arrays of a target are about these nodes, unless they say [n].
    """

    data: Data
    shadows: tuple[Profiled, ...]
    members: BoolArray
    context: GraphContext
    plan: TargetPlan
    sampled_models: NDArray[np.intp]
    plain: PlainAnswers
    masks: BoolArray
    sampled: SampledAnswers
    mode: Mode
    engine: str
    settled: str
    largest: int
    without: tuple[str, ...]
    asked: IntArray | None = None

    @property
    def at(self) -> slice | IntArray:
        """Where the asked nodes are among all."""
        return slice(None) if self.asked is None else self.asked

    def is_of(self, data: Data, shadows: Sequence[Model], members: BoolArray) -> bool:
        """Whether exactly these models were queried on exactly this graph."""
        pairs = zip(raw_models(self.shadows), shadows, strict=False)
        same = len(self.shadows) == len(shadows) and all(mine is other for mine, other in pairs)
        same = same and self.data.x is data.x and self.data.edge_index is data.edge_index
        return same and np.array_equal(self.members, members)

    def of_target(self, scene: Scene) -> tuple[PlainAnswers, SampledSignals]:
        """What a scene's target answers to what the pool was asked, under the masks that are used for all targets."""
        plain, _ = plain_answers(scene)
        target = scene.profiled()[0]
        engine = self.engine_for(target)
        answers = sampled_answers([target], self.data, self.masks, engine=engine, nodes=self.asked)
        return plain, SampledSignals(answers, self.sampled_models, self.sampled)

    def of_shadow(self, k: int) -> tuple[PlainAnswers, SampledSignals]:
        """What shadow model k of the plan answered, as if it were the target."""
        row = int(np.searchsorted(self.sampled_models, k))
        plain = PlainAnswers(self.plain.alone[[k]], self.plain.whole[[k]])
        return plain, SampledSignals(self.sampled.of([row]), self.sampled_models, self.sampled)

    def under_masks(self, target: Profiled, masks: BoolArray, references: NDArray[np.intp]) -> SampledSignals:
        """Ask about a target's own training sets [M, n]: the target, and those references that are sampled models."""
        rows = np.intersect1d(references, self.sampled_models)
        models = [target, *[self.shadows[k] for k in rows.tolist()]]
        answers = sampled_answers(models, self.data, masks, engine=self.engine_for(target), nodes=self.asked)
        return SampledSignals(answers.of([0]), rows, answers.of(range(1, len(models))))

    def engine_for(self, target: Profiled) -> str:
        """The pool's engine if the target gets the same; a target of another kind may need another one."""
        if self.engine != "auto" or any(target.model is shadow.model for shadow in self.shadows):
            return self.settled
        work = _work(self.plan, self.sampled_models, self.largest)
        question = question_about([target], self.data, self.masks, self.asked)
        own = settled_engine([target], question, work=work, least=self.largest)
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
        """All that is used to judge a target.

        Args:
            plain: its losses, [1, n] each.
            sampled: its answers and those of some shadow models under sampled training sets.
            references: [R] rows of the pool that it may be compared with.
            odds: [J] its log-odds from the round before; None in the first round.
            known: its `plain_features`, if they are known.
        """
        chosen = np.flatnonzero(np.isin(sampled.rows, references))
        return TargetSignals(
            alone=self._evidence(plain.alone, self.plain.alone, references),
            whole=self._evidence(plain.whole, self.plain.whole, references),
            target=sampled.target,
            references=sampled.references.of(chosen.tolist()),
            members=self.members[sampled.rows[chosen]][:, self.at],
            posterior=odds,
            plain=known,
        )

    def plain_features(self, asked: Sequence[tuple[PlainAnswers, NDArray[np.intp]]]) -> list[Features]:
        """Features that are the same in every round, of several targets: plain answers and references of each."""
        both = [
            tuple(self._evidence(*losses, references) for losses in zip(plain, self.plain, strict=True))
            for plain, references in asked
        ]
        odds = None if self.asked is None else [self.base_odds(plain, references) for plain, references in asked]
        return plain_features([(alone, whole) for alone, whole in both], self.context, mode=self.mode, odds=odds)

    def base_odds(self, plain: PlainAnswers, references: NDArray[np.intp]) -> FloatArray:
        """BASE's log-odds [n] of all nodes, each queried alone: what is known of those that are not asked about."""
        members = self.members[references]
        usable = None if self.mode == "online" else ~members | members.all(axis=0)
        return log_odds(plain.alone[0], self.plain.alone[references], usable)

    def everywhere(self, odds: FloatArray, plain: PlainAnswers, references: NDArray[np.intp]) -> FloatArray:
        """Log-odds [n] of all nodes of a target: those given [J] for asked nodes, and BASE's for the others."""
        if self.asked is None:
            return odds
        found = self.base_odds(plain, references)
        found[self.asked] = odds
        return found

    @cached_property
    def shadow_features(self) -> list[Features]:
        """The same of the plan's simulated targets."""
        targets = zip(self.plan.targets.tolist(), self.plan.references, strict=True)
        return self.plain_features([(self.of_shadow(k)[0], rows[:, 0]) for k, rows in targets])

    def rows(self, signals: TargetSignals) -> FloatArray:
        """Features [J, F] of a target."""
        found = without_signals(node_features(signals, self.context, mode=self.mode), self.without)
        if not found:
            raise InputError(f"without: {', '.join(self.without)} leave nothing to learn from; keep one of them.")
        return np.stack(list(found.values()), axis=1)

    def _evidence(self, target: FloatArray, pool: FloatArray, references: NDArray[np.intp]) -> Evidence:
        losses, members = pool[references], self.members[references]
        at = self.at
        return Evidence(target_loss=target[0][at], shadow_loss=losses[:, at], shadow_members=members[:, at])


def ask_pool(
    scene: Scene,
    *,
    mode: Mode,
    samples: int,
    most: int = 0,
    targets: int,
    sampled_models: int,
    engine: str,
    seed: int,
    without: tuple[str, ...] = (),
) -> PoolSignals:
    """Ask a pool all that does not depend on a target.

    Args:
        scene: the graph and the pool; its target is not used.
        mode: ``"online"`` or ``"offline"``.
        samples: M, how many training sets.
        most: how many of them the largest later round has; the engine is chosen for it.
        targets: how many shadow models play the target, at most.
        sampled_models: how many shadow models are queried under sampled training sets, at most.
        engine: see `toggle_losses`.
        seed: seed of every random choice.
        without: signals that are left out.
    """
    data, shadows, members = scene.data, tuple(scene.profiled()[1:]), scene.shadow_members
    asked_nodes = _asked_nodes(scene, seed)
    seen = members if asked_nodes is None else members[:, asked_nodes]
    plan = plan_targets(seen, targets=targets, seed=seed, enough=ENOUGH)
    if any(rows.shape[1] != 1 for rows in plan.references):
        raise InputError("shadow_members: on graphs, train shadow models in complementary pairs or on random sets.")
    chosen = np.arange(len(members))
    if len(members) > sampled_models:  # the simulated targets and some more, in whole pairs if the pool has pairs
        more = plan_targets(members, targets=sampled_models, seed=seed).targets
        chosen = np.union1d(plan.targets, more)
    share = np.full(members.shape[1], members.mean())
    masks = draw_training_sets(share, samples=samples, random=generator(seed, "masks"))
    asked = [shadows[k] for k in chosen.tolist()]
    settled, largest = engine, max(samples, most)
    if engine == "auto":
        work = _work(plan, chosen, largest)
        question = question_about(asked, data, masks, asked_nodes)
        settled = settled_engine(asked, question, work=work, least=largest)
    return PoolSignals(
        data=data,
        shadows=shadows,
        members=members,
        context=GraphContext.of(data, kin="kin" not in without, device=model_device(scene.shadows), nodes=asked_nodes),
        plan=plan,
        sampled_models=chosen,
        plain=plain_answers(scene)[1],
        masks=masks,
        sampled=sampled_answers(asked, data, masks, engine=settled, nodes=asked_nodes),
        mode=mode,
        engine=engine,
        settled=settled,
        largest=largest,
        without=without,
        asked=asked_nodes,
    )


def _asked_nodes(scene: Scene, seed: int) -> IntArray | None:
    """The nodes to ask about: the audited ones, and random others if these are too few to learn from; None for all."""
    count = int(scene.data.num_nodes)
    if max(len(scene.nodes), TEACHING) >= count:
        return None
    others = np.setdiff1d(np.arange(count), scene.nodes, assume_unique=True)
    more = some_of(len(others), max(0, TEACHING - len(scene.nodes)), seed, "teaching nodes")
    return np.sort(np.concatenate([scene.nodes, others[more]]))


def _work(plan: TargetPlan, sampled_models: NDArray[np.intp], samples: int) -> int:
    """About how many pairs of a model and a training set are asked about, of the target and all simulated ones.

    It is what G-BASE asks, so that both get the same engine.
    """
    return samples * (1 + len(plan.targets)) * (1 + len(sampled_models))
