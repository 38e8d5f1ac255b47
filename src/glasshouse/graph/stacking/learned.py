"""Learn a node's posterior of membership from the simulated targets of a pool, in rounds; score targets with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch_geometric.data import Data

from glasshouse.attacks.stacking import Answers, CrossFit, Learner, Plan, cross_fit, plan_targets
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.graph.question import Model
from glasshouse.graph.stacking.answers import Heard, Sampled, hear, sample_signals
from glasshouse.graph.stacking.features import Surroundings, View, node_features
from glasshouse.numerics import FloatArray
from glasshouse.population import BoolArray
from glasshouse.randomness import generator, seed_for

__all__ = ["Learned", "Recipe", "learn"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a posterior is learned.

    Args:
        mode: ``"online"`` or ``"offline"``.
        learners: candidates by name.
        samples: training sets of each round: the first's are drawn by the pool's share of members and serve all
            targets, a later round's are drawn for each target from the posterior of the round before.
        targets: at most so many shadow models play the target.
        speakers: at most so many shadow models are asked about sampled training sets.
        folds: of nodes, offline.
        engine: see `toggle_losses`.
        seed: of every random choice.
        jobs: threads that learn side by side.
    """

    mode: Mode
    learners: dict[str, Learner]
    samples: tuple[int, ...]
    targets: int
    speakers: int
    folds: int
    engine: str
    seed: int
    jobs: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """What was learned from a pool; any number of targets are scored with it.

    Args:
        recipe: how.
        data: the graph.
        shadows: the pool's models.
        members: [K, n] who trained them.
        around: the graph without models.
        plan: which shadow models played the target.
        speakers: rows of the pool that speak about sampled training sets.
        heard: the pool's answers, alone and whole.
        masks: [M, n] of the first round.
        sampled: the speakers' answers under them.
        rounds: the posterior of each round.
    """

    recipe: Recipe
    data: Data
    shadows: tuple[Model, ...]
    members: BoolArray
    around: Surroundings
    plan: Plan
    speakers: NDArray[np.intp]
    heard: Heard
    masks: BoolArray
    sampled: Sampled
    rounds: tuple[CrossFit, ...] = ()

    @property
    def share(self) -> float:
        """The share of members among simulated targets: the prior that the posterior was learned with."""
        return float(self.members[self.plan.targets].mean())

    @property
    def held_out(self) -> FloatArray:
        """[T, n] log-odds of the simulated targets, learned without them and their complements."""
        return self.rounds[-1].held_out

    def is_of(self, data: Data, shadows: Sequence[Model], members: BoolArray) -> bool:
        """Whether it was learned from these very models on this very graph."""
        pairs = zip(self.shadows, shadows, strict=False)
        same = len(self.shadows) == len(shadows) and all(mine is other for mine, other in pairs)
        return self.data is data and same and np.array_equal(self.members, members)

    def log_odds(self, target: Model) -> FloatArray:
        """Log-odds [n] of membership of every node, the mean over panels of references."""
        heard = hear([target], self.data)
        answers = sample_signals([target], self.data, self.masks, engine=self.recipe.engine)
        spoken: Sampled = self.sampled
        panels = [panel[:, 0] for panel in self.plan.panels]
        odds: list[FloatArray | None] = [None for _ in panels]
        for number, fit in enumerate(self.rounds):
            if number:
                asked = [target, *[self.shadows[k] for k in self.speakers.tolist()]]
                everyone = self._resampled(asked, np.mean(odds, axis=0), number, "target")  # type: ignore[arg-type]
                answers, spoken = everyone.of([0]), everyone.of(range(1, len(asked)))
            rows = [
                self.rows(heard, 0, panel, answers, spoken, before) for panel, before in zip(panels, odds, strict=True)
            ]
            odds = [fit.log_odds(row) for row in rows]
        return np.asarray(np.mean(odds, axis=0))  # type: ignore[arg-type]

    def rows(
        self,
        heard: Heard,
        at: int,
        references: NDArray[np.intp],
        target: Sampled,
        spoken: Sampled,
        posterior: FloatArray | None,
    ) -> FloatArray:
        """Features [n, F] of a target.

        Args:
            heard: where the target's answers are, at row ``at``.
            at: see ``heard``.
            references: [R] rows of the pool that may speak about it.
            target: its answers under sampled training sets.
            spoken: the speakers' answers under the same.
            posterior: [n] its log-odds from the round before.
        """
        may = np.flatnonzero(np.isin(self.speakers, references))
        members = self.members[references]
        view = View(
            alone=Answers(heard.alone[at], self.heard.alone[references], members),
            whole=Answers(heard.whole[at], self.heard.whole[references], members),
            target=target,
            references=spoken.of(may.tolist()),
            members=self.members[self.speakers[may]],
            posterior=posterior,
        )
        return np.stack(list(node_features(view, self.around, mode=self.recipe.mode).values()), axis=1)

    def _resampled(self, models: Sequence[Model], odds: FloatArray, number: int, who: str) -> Sampled:
        random = generator(self.recipe.seed, "masks", number, who)
        masks = random.random((self.recipe.samples[number], len(odds))) < expit(odds)
        return sample_signals(models, self.data, masks, engine=self.recipe.engine)

    def simulated_rows(self, number: int) -> FloatArray:
        """Features [T, n, F] of every simulated target in a round."""
        found = []
        for index, k in enumerate(self.plan.targets.tolist()):
            references = self.plan.references[index][:, 0]
            posterior = None
            spoken, place = self.sampled, int(np.flatnonzero(self.speakers == k)[0])
            if number:
                posterior = self.rounds[number - 1].held_out[index]
                asked = [self.shadows[j] for j in self.speakers.tolist()]
                spoken = self._resampled(asked, posterior, number, f"simulated {k}")
            target = spoken.of([place])
            found.append(self.rows(self.heard, k, references, target, spoken, posterior))
        return np.stack(found)


def learn(data: Data, shadows: Sequence[Model], members: BoolArray, recipe: Recipe) -> Learned:
    """Learn from a pool: every shadow model of the plan plays the target once a round.

    Args:
        data: the graph.
        shadows: K models.
        members: [K, n] who trained them.
        recipe: how to learn.
    """
    plan = plan_targets(members, targets=recipe.targets, seed=recipe.seed)
    if any(rows.shape[1] != 1 for rows in plan.references):
        raise InputError("shadow_members: on graphs, shadow models come in complementary pairs or at random.")
    speakers = _speakers(members, plan, recipe)
    count = int(data.num_nodes)
    masks = generator(recipe.seed, "masks").random((recipe.samples[0], count)) < members.mean()
    known = Learned(
        recipe=recipe,
        data=data,
        shadows=tuple(shadows),
        members=members,
        around=Surroundings.of(data),
        plan=plan,
        speakers=speakers,
        heard=hear(shadows, data),
        masks=masks,
        sampled=sample_signals([shadows[k] for k in speakers.tolist()], data, masks, engine=recipe.engine),
    )
    folds = np.zeros(count, dtype=np.intp)
    if recipe.mode == "offline":
        folds = np.asarray(generator(recipe.seed, "folds").permutation(count) % recipe.folds)
    for number in range(len(recipe.samples)):
        fit = cross_fit(
            known.simulated_rows(number),
            members[plan.targets],
            groups=plan.groups,
            folds=folds,
            learners=recipe.learners,
            seed=seed_for(recipe.seed, "round", number),
            jobs=recipe.jobs,
        )
        known = dataclasses.replace(known, rounds=(*known.rounds, fit))
    return known


def _speakers(members: BoolArray, plan: Plan, recipe: Recipe) -> NDArray[np.intp]:
    """The simulated targets, and as many more of the pool as may be asked, in whole pairs where it has pairs."""
    if len(members) <= recipe.speakers:
        return np.arange(len(members))
    more = plan_targets(members, targets=recipe.speakers, seed=recipe.seed).targets
    return np.union1d(plan.targets, more)
