"""All that a pool and a graph say before any target is looked at, and the features of a target against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from glasshouse.arrays import BoolArray, FloatArray
from glasshouse.attacks.stacking import Answers, TargetPlan, plan_targets
from glasshouse.errors import InputError
from glasshouse.evidence import Mode
from glasshouse.graph.attacks.stacking.answers import Heard, Sampled, hear, sample_signals
from glasshouse.graph.attacks.stacking.features import Surroundings, View, node_features, without_signals
from glasshouse.graph.models.model import Model
from glasshouse.randomness import generator

__all__ = ["Stage", "Told", "set_stage"]


class Told(NamedTuple):
    """What was said under sampled training sets: by the target, and by some shadow models.

    Args:
        target: answers of the one target, [1, M, n].
        speakers: [S] rows of the pool.
        said: their answers, [S, M, n].
    """

    target: Sampled
    speakers: NDArray[np.intp]
    said: Sampled


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """A pool on its graph, ready for targets.

    Args:
        data: the graph.
        shadows: the pool's K models.
        members: [K, n] who trained them.
        around: the graph without models.
        plan: which shadow models play the target.
        speakers: [S] rows of the pool that are asked about sampled training sets.
        heard: the pool's answers, alone and whole.
        masks: [M, n] training sets drawn without looking at any model; they serve all targets.
        said: what the speakers say under them.
        mode: ``"online"`` or ``"offline"``.
        engine: see `toggle_losses`.
        without: signals that are not looked at.
    """

    data: Data
    shadows: tuple[Model, ...]
    members: BoolArray
    around: Surroundings
    plan: TargetPlan
    speakers: NDArray[np.intp]
    heard: Heard
    masks: BoolArray
    said: Sampled
    mode: Mode
    engine: str
    without: tuple[str, ...]

    def is_of(self, data: Data, shadows: Sequence[Model], members: BoolArray) -> bool:
        """Whether it was set with these very models on this very graph."""
        pairs = zip(self.shadows, shadows, strict=False)
        same = len(self.shadows) == len(shadows) and all(mine is other for mine, other in pairs)
        return self.data is data and same and np.array_equal(self.members, members)

    def told(self, target: Model, masks: BoolArray, references: NDArray[np.intp]) -> Told:
        """Ask a target and those of its references that are speakers about training sets of its own."""
        speakers = np.intersect1d(references, self.speakers)
        models = [target, *[self.shadows[k] for k in speakers.tolist()]]
        answers = sample_signals(models, self.data, masks, engine=self.engine)
        return Told(answers.of([0]), speakers, answers.of(range(1, len(models))))

    def of_shadow(self, k: int) -> tuple[Heard, Told]:
        """What shadow model k of the plan answered, as if it were the target."""
        heard = Heard(self.heard.alone[[k]], self.heard.whole[[k]])
        return heard, Told(self.said.of([int(np.searchsorted(self.speakers, k))]), self.speakers, self.said)

    def view(self, heard: Heard, told: Told, references: NDArray[np.intp], odds: FloatArray | None = None) -> View:
        """All that is looked at to judge a target.

        Args:
            heard: its answers, [1, n] each.
            told: its answers and some references' under sampled training sets.
            references: [R] rows of the pool that may speak about it.
            odds: [n] its log-odds from the round before; None in the first.
        """
        members = self.members[references]
        may = np.flatnonzero(np.isin(told.speakers, references))
        return View(
            alone=Answers(heard.alone[0], self.heard.alone[references], members),
            whole=Answers(heard.whole[0], self.heard.whole[references], members),
            target=told.target,
            references=told.said.of(may.tolist()),
            members=self.members[told.speakers[may]],
            posterior=odds,
        )

    def rows(self, view: View) -> FloatArray:
        """Features [n, F] of a target."""
        found = without_signals(node_features(view, self.around, mode=self.mode), self.without)
        if not found:
            raise InputError(f"without: {', '.join(self.without)} leave nothing to learn from; keep one of them.")
        return np.stack(list(found.values()), axis=1)


def set_stage(
    data: Data,
    shadows: Sequence[Model],
    members: BoolArray,
    *,
    mode: Mode,
    samples: int,
    targets: int,
    speakers: int,
    engine: str,
    seed: int,
    without: tuple[str, ...] = (),
) -> Stage:
    """Ask a pool all that does not depend on a target.

    Args:
        data: the graph.
        shadows: K models.
        members: [K, n] who trained them.
        mode: ``"online"`` or ``"offline"``.
        samples: M, how many training sets.
        targets: at most so many shadow models play the target.
        speakers: at most so many shadow models are asked about sampled training sets.
        engine: see `toggle_losses`.
        seed: of every random choice.
        without: signals that are not looked at.
    """
    plan = plan_targets(members, targets=targets, seed=seed)
    if any(rows.shape[1] != 1 for rows in plan.references):
        raise InputError("shadow_members: on graphs, shadow models come in complementary pairs or at random.")
    chosen = np.arange(len(members))
    if len(members) > speakers:  # the simulated targets and some more, in whole pairs where the pool has pairs
        more = plan_targets(members, targets=speakers, seed=seed).targets
        chosen = np.union1d(plan.targets, more)
    masks = generator(seed, "masks").random((samples, members.shape[1])) < members.mean()
    return Stage(
        data=data,
        shadows=tuple(shadows),
        members=members,
        around=Surroundings.of(data, kin="kin" not in without),
        plan=plan,
        speakers=chosen,
        heard=hear(shadows, data),
        masks=masks,
        said=sample_signals([shadows[k] for k in chosen.tolist()], data, masks, engine=engine),
        mode=mode,
        engine=engine,
        without=without,
    )
