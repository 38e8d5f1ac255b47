"""What the graph experiments share: one growing pool of shadow models a setting, and targets to attack with it."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from torch_geometric.data import Data

from glasshouse.attacks import Attack
from glasshouse.evaluation import AttackOutcome
from glasshouse.experiments.settings import Preset, Setting
from glasshouse.graph import GraphAttack, Scene, load_graph
from glasshouse.graph.run import run_on_scene
from glasshouse.graph.trainer import GNNTrainer
from glasshouse.numerics import FloatArray
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse.population import BoolArray, random_subsets
from glasshouse.progress import track
from glasshouse.randomness import generator, seed_for
from glasshouse.store import write_file

__all__ = ["Bench", "Judged", "Name"]

Name = tuple[str, str, str, str]  # mode, K, setting and attack, as the paper's tables name them
Purpose = Literal["targets", "simulated"]


class Judged(NamedTuple):
    """What came of an attack on a target.

    Args:
        scores: [nodes] of the audited nodes.
        truth: [nodes] who of them trained the target.
        seconds: spent on scoring.
        thresholds: [rates, 4] wanted rate, threshold and the ends of its FPR's interval, where rates were asked for.
    """

    scores: FloatArray
    truth: BoolArray
    seconds: float
    thresholds: FloatArray = np.empty((0, 4))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """A setting under a preset; models and scores are kept under ``folder`` and shared by all experiments.

    Args:
        setting: data set, architecture and hyper-parameters.
        preset: how many targets, and how much of the paper's training.
        folder: for pools and scores; what is there is not computed again.
        seed: of every random choice.
        progress: whether to show bars.

    Example:
        >>> from glasshouse.experiments.settings import PRESETS, SETTINGS
        >>> Bench(setting=SETTINGS.find("cora"), preset=PRESETS.find("quick"), folder=Path("pools")).trainer.epochs
        200
    """

    setting: Setting
    preset: Preset
    folder: Path
    seed: int = 0
    progress: bool | None = None

    @property
    def trainer(self) -> GNNTrainer:
        """How shadow models are trained, with the preset's share of the setting's epochs."""
        return self._shortened(self.setting.trainer)

    @property
    def note(self) -> str:
        """What is not the paper's, said beside the figures."""
        return self.setting.note

    @cached_property
    def data(self) -> Data:
        """The graph."""
        return load_graph(self.setting.data).data

    def judged(
        self,
        attacks: Mapping[Name, Attack | GraphAttack],
        *,
        shadows: int = 8,
        purpose: Purpose = "targets",
        audited: float = 0.5,
        fprs: tuple[float, ...] = (),
    ) -> Iterator[dict[Name, Judged]]:
        """Every attack against one target after the other.

        Args:
            attacks: by the paper's names.
            shadows: how many models of the pool they use.
            purpose: the true ``"targets"``, or as many ``"simulated"`` ones that thresholds are taken from.
            audited: share of the nodes that is judged, as many members as others.
            fprs: rates to estimate thresholds for, from the pool's own simulated targets.
        """
        for number in self._counted(purpose):
            truth = self._members(purpose)[number]
            nodes = _balanced(truth, audited, seed_for(self.seed, "audited", purpose, number))
            places = {
                name: self._place(attack, f"{purpose} {number}, {shadows} shadows, {audited}, {fprs or ''}")
                for name, attack in attacks.items()
            }
            scene: Scene | None = None
            for name, attack in attacks.items():
                if _recalled(places[name], truth[nodes]) is None:
                    scene = scene or self._scene(purpose, number, shadows=shadows, nodes=nodes)
                    write_file(places[name], _packed(run_on_scene(attack, scene, fprs=fprs)))
            found = {name: _recalled(place, truth[nodes]) for name, place in places.items()}
            yield {name: judged for name, judged in found.items() if judged is not None}

    def scenes(self, *, shadows: int = 8) -> Iterator[Scene]:
        """One scene a target, for what needs the models themselves."""
        for number in self._counted("targets"):
            nodes = _balanced(self._members("targets")[number], 0.5, seed_for(self.seed, "audited", "targets", number))
            yield self._scene("targets", number, shadows=shadows, nodes=nodes)

    def targets(self) -> Iterator[tuple[Any, BoolArray]]:
        """Each target model, and who trained it [n]."""
        return zip(self._targets("targets"), self._members("targets"), strict=True)

    def _scene(self, purpose: Purpose, number: int, *, shadows: int, nodes: np.ndarray) -> Scene:
        pool, models = self._shadows(shadows)
        truth = self._members(purpose)[number]
        return Scene(self.data, self._targets(purpose)[number], models, pool.members, nodes=nodes, truth=truth)

    @cached_property
    def _memory(self) -> dict[Any, Any]:
        return {}

    def _shadows(self, count: int) -> tuple[ShadowPool, list[Any]]:
        """The first so many shadow models of the one pool."""
        if count not in self._memory:
            place = self._folder(self.trainer) / "shadows"
            pool = ShadowPool.plan(self.data, self.trainer, shadows=count, seed=self.seed, store=place)
            pool.train(progress=self.progress)
            self._memory[count] = pool, list(pool)
        found: tuple[ShadowPool, list[Any]] = self._memory[count]
        return found

    def _targets(self, purpose: Purpose) -> list[Any]:
        if purpose not in self._memory:
            trainer = self._shortened(self.setting.target or self.setting.trainer)
            pool = ShadowPool(
                population=self.data,
                trainer=trainer,
                members=self._members(purpose),
                seed=seed_for(self.seed, purpose),
                fraction=self.setting.target_share,
                store=self._folder(trainer) / f"{purpose}-{self.setting.target_share:g}",
            )
            pool.train(progress=self.progress)
            self._memory[purpose] = list(pool)
        found: list[Any] = self._memory[purpose]
        return found

    def _members(self, purpose: Purpose) -> BoolArray:
        return random_subsets(
            int(self.data.num_nodes),
            models=self.preset.targets,
            fraction=self.setting.target_share,
            seed=seed_for(self.seed, purpose),
        )

    def _counted(self, purpose: Purpose) -> Iterator[int]:
        label = f"{self.setting.paper_name} ({self.setting.model})"
        return track(
            range(self.preset.targets), total=self.preset.targets, label=label, unit=purpose, show=self.progress
        )

    def _shortened(self, trainer: GNNTrainer) -> GNNTrainer:
        return dataclasses.replace(trainer, epochs=max(1, round(trainer.epochs * self.preset.epochs)))

    def _folder(self, trainer: GNNTrainer) -> Path:
        """One folder for each data set and way to train, whichever experiment asks."""
        return self.folder / f"{self.setting.data}-{trainer.architecture}-{_hashed(described(trainer))}"

    def _place(self, attack: Attack | GraphAttack, case: str) -> Path:
        owner = self.setting.target
        told = f"{attack!r} {case} seed {self.seed} {'' if owner is None else described(owner)}"
        return self._folder(self.trainer) / "scores" / f"{attack.name}-{_hashed(told)}.npz"


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _packed(outcome: AttackOutcome) -> bytes:
    cuts = [(cut.wanted, cut.value, cut.interval.low, cut.interval.high) for cut in outcome.thresholds]
    file = io.BytesIO()
    np.savez(file, scores=outcome.scores, seconds=outcome.seconds, thresholds=np.reshape(cuts, (-1, 4)))
    return file.getvalue()


def _recalled(place: Path, truth: BoolArray) -> Judged | None:
    """What was kept; None where it is not there, damaged or about other nodes, so that it is computed again."""
    try:
        # opened here: numpy leaves a file that is no archive open
        with place.open("rb") as file, np.load(file, allow_pickle=False) as found:
            scores, cuts = (np.asarray(found[name], dtype=np.float64) for name in ("scores", "thresholds"))
            seconds = float(found["seconds"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return Judged(scores, truth, seconds, cuts) if scores.shape == truth.shape else None


def _balanced(members: BoolArray, share: float, seed: int) -> np.ndarray:
    """So large a share of the nodes, half of them members (all there are, where the target trained on few)."""
    random = generator(seed, "balanced")
    half = int(len(members) * share) // 2
    return np.concatenate([random.permutation(np.flatnonzero(side))[:half] for side in (members, ~members)])
