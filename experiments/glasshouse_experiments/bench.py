"""What the graph experiments share: one growing pool of shadow models per setting, and targets to attack with it."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch_geometric.data import Data

from glasshouse.attacks import Attack
from glasshouse.compute import LocalProcesses
from glasshouse.core.arrays import BoolArray
from glasshouse.core.progress import track
from glasshouse.core.randomness import generator, seed_for
from glasshouse.data import random_subsets
from glasshouse.evaluation import run_attack
from glasshouse.graph import GNNTrainer, Scene
from glasshouse.graph.attacks.g_base import with_truth
from glasshouse.pool import ShadowPool
from glasshouse.pool.folder import PoolFolder
from glasshouse.pool.shadow_pool import described
from glasshouse_experiments.kept_scores import Judged, Origin, keep_scores, kept_scores
from glasshouse_experiments.settings import Preset, Setting
from glasshouse_experiments.stand_in import experiment_graph

__all__ = ["Bench", "Judged", "Name"]

Name = tuple[str, str, str, str]  # mode, K, setting and attack, as the paper's tables name them
Purpose = Literal["targets", "simulated"]
_TOGETHER, _TOGETHER_ON_GPU = 8, 32  # models trained at once; eight of them leave most of a GPU idle
_WORTH_WORKERS = 60.0  # seconds of work below which the start of workers costs more than they save


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Job:
    """What `Bench.judged` was asked for."""

    attacks: Mapping[Name, Attack[Any]]
    shadows: int
    purpose: Purpose
    audited: float
    fprs: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """A setting under a preset; models and scores are kept under ``folder`` and shared by all experiments.

    Args:
        setting: data set, architecture and hyper-parameters.
        preset: how many targets, and how much of the paper's training.
        folder: for pools and scores; results found there are not computed again.
        seed: of every random choice.
        progress: whether to show bars.
        workers: processes that attack targets side by side; the models are trained before, in this one.

    Example:
        >>> from glasshouse_experiments.settings import PRESETS, SETTINGS
        >>> Bench(setting=SETTINGS.find("cora"), preset=PRESETS.find("quick"), folder=Path("pools")).trainer.epochs
        200
    """

    setting: Setting
    preset: Preset
    folder: Path
    seed: int = 0
    progress: bool | None = None
    workers: int = 1

    @property
    def trainer(self) -> GNNTrainer:
        """How shadow models are trained, with the preset's share of the setting's epochs."""
        return self._shortened(self.setting.trainer)

    @property
    def note(self) -> str:
        """What differs from the paper, written next to the figures."""
        return self.setting.note

    @cached_property
    def data(self) -> Data:
        """The graph."""
        return experiment_graph(self.setting.data)

    def judged(
        self,
        attacks: Mapping[Name, Attack[Any]],
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
            purpose: the true ``"targets"``, or as many ``"simulated"`` ones, which give the thresholds.
            audited: share of the nodes that is audited, as many members as others.
            fprs: rates to estimate thresholds for, from the pool's own simulated targets.
        """
        job = _Job(attacks=attacks, shadows=shadows, purpose=purpose, audited=audited, fprs=fprs)
        if self.workers > 1:
            self._spread(job)
        # from the one pool, about the nodes of all targets, so it is not learned again for the next target
        learned: dict[Name, Attack[Any]] = {}
        for number in self._counted(purpose):
            yield self._judged(job, number, learned)

    def _spread(self, job: _Job) -> None:
        """Let workers attack the targets, if that takes longer than their start; their results are files of scores.

        Attacks that learn from the pool stay here, where they learn once for all targets.
        """
        light = {name: attack for name, attack in job.attacks.items() if not _learns(attack)}
        spread = dataclasses.replace(job, attacks=light)
        for which in (job.purpose, job.shadows):
            self._checksums(which)  # trains the models here, so that workers only read them
        began = time.perf_counter()
        self._judged(spread, 0, {})
        left = range(1, self.preset.targets)
        if (time.perf_counter() - began) * len(left) > _WORTH_WORKERS:
            alone = dataclasses.replace(self, workers=1, progress=False)
            for _ in LocalProcesses(workers=self.workers).run(_keep_judged, (alone, spread), left):
                pass

    def _judged(self, job: _Job, number: int, learned: dict[Name, Attack[Any]]) -> dict[Name, Judged]:
        """Every attack against one target; scores that are kept already are read."""
        truth = self._members(job.purpose)[number]
        nodes = _balanced(truth, job.audited, seed_for(self.seed, "audited", job.purpose, number))
        case = f"{job.purpose} {number}, {job.shadows} shadows, {job.audited}, {job.fprs or ''}"
        places = {name: self._place(attack, case) for name, attack in job.attacks.items()}
        models = self._checksum(job.purpose, number, job.shadows)
        origins = {name: Origin.of(attack, models) for name, attack in job.attacks.items()}
        scene: Scene | None = None
        for name, attack in job.attacks.items():
            if kept_scores(places[name], truth[nodes], origin=origins[name]) is None:
                scene = scene or self._scene(job.purpose, number, shadows=job.shadows, nodes=nodes)
                if name not in learned and _learns(attack):
                    learned[name] = attack.tuned(self._scene(job.purpose, number, shadows=job.shadows))
                outcome = run_attack(with_truth(learned.get(name, attack), truth), scene, fprs=job.fprs)
                if outcome.attack.kind == "graph" and not outcome.attack.knows_truth:
                    learned[name] = outcome.attack
                keep_scores(places[name], outcome, origin=origins[name])
        found = {name: kept_scores(place, truth[nodes], origin=origins[name]) for name, place in places.items()}
        return {name: judged for name, judged in found.items() if judged is not None}

    def scenes(self, *, shadows: int = 8) -> Iterator[Scene]:
        """One scene per target, for experiments that need the models."""
        for number in self._counted("targets"):
            nodes = _balanced(self._members("targets")[number], 0.5, seed_for(self.seed, "audited", "targets", number))
            yield self._scene("targets", number, shadows=shadows, nodes=nodes)

    def targets(self) -> Iterator[tuple[Any, BoolArray]]:
        """Each target model, and who trained it [n]."""
        return zip(self._models("targets"), self._members("targets"), strict=True)

    def _scene(self, purpose: Purpose, number: int, *, shadows: int, nodes: np.ndarray | None = None) -> Scene:
        target = self._models(purpose)[number]
        return Scene(self.data, target, self._models(shadows), self._pool(shadows).members, nodes=nodes)

    def _checksum(self, purpose: Purpose, number: int, shadows: int) -> str:
        """Checksum of a target and its shadow models, so that kept scores of other models are not used.

        The same seed gives the same models on one machine, but only nearly the same on another.
        """
        return _hashed(" ".join([self._checksums(purpose)[number], *self._checksums(shadows)]))

    @cached_property
    def _memory(self) -> dict[Any, Any]:
        return {}

    def _pool(self, which: Purpose | int) -> ShadowPool:
        """Targets of a purpose, or the first models of the one pool of shadow models."""
        if which not in self._memory:
            self._memory[which] = self._shadow_pool(which) if isinstance(which, int) else self._target_pool(which)
        found: ShadowPool = self._memory[which]
        return found

    def _trained(self, which: Purpose | int) -> PoolFolder:
        """The folder of a pool, all of whose models are trained; the seconds that this takes are counted."""
        began = time.perf_counter()
        folder = self._pool(which).train(progress=self.progress)
        self._memory["seconds"] = self.training_seconds + time.perf_counter() - began
        return folder

    @property
    def training_seconds(self) -> float:
        """Seconds spent on training models so far, or on looking whether all are there."""
        return float(self._memory.get("seconds", 0.0))

    def _checksums(self, which: Purpose | int) -> list[str]:
        """Checksums of a pool's models, all of which are trained first."""
        if ("checksums", which) not in self._memory:
            pool = self._pool(which)
            folder = self._trained(which)
            self._memory["checksums", which] = [str(folder.manifest(index)["sha256"]) for index in range(len(pool))]
        found: list[str] = self._memory["checksums", which]
        return found

    def _models(self, which: Purpose | int) -> list[Any]:
        """A pool's models, trained first and read once."""
        if ("models", which) not in self._memory:
            self._trained(which)
            self._memory["models", which] = list(self._pool(which))
        found: list[Any] = self._memory["models", which]
        return found

    def _shadow_pool(self, count: int) -> ShadowPool:
        place = self._folder(self.trainer) / "shadows"
        pool = ShadowPool.plan(self.data, self.trainer, shadows=count, seed=self.seed, folder=place)
        return dataclasses.replace(pool, together=_together())

    def _target_pool(self, purpose: Purpose) -> ShadowPool:
        trainer = self._shortened(self.setting.target or self.setting.trainer)
        return ShadowPool(
            population=self.data,
            trainer=trainer,
            members=self._members(purpose),
            seed=seed_for(self.seed, purpose),
            fraction=self.setting.target_share,
            folder=self._folder(trainer) / f"{purpose}-{self.setting.target_share:g}",
            together=_together(),
        )

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
        """One folder per data set and trainer, shared by all experiments."""
        return self.folder / f"{self.setting.data}-{trainer.architecture}-{_hashed(described(trainer))}"

    def _place(self, attack: Attack[Any], case: str) -> Path:
        owner = self.setting.target
        told = f"{attack!r} {case} seed {self.seed} {'' if owner is None else described(owner)}"
        return self._folder(self.trainer) / "scores" / f"{attack.name}-{_hashed(told)}.npz"


def _keep_judged(bench: Bench, job: _Job, number: int) -> None:
    """What a worker does: its results are the files of scores."""
    bench._judged(job, number, {})


def _learns(attack: Attack[Any]) -> bool:
    """Whether an attack, or its sampler, learns from a pool for long: those use all cores themselves."""
    return hasattr(attack, "jobs") or getattr(attack, "sampler", "") == "stacked"


def _together() -> int:
    return _TOGETHER_ON_GPU if torch.cuda.is_available() else _TOGETHER


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _balanced(members: BoolArray, share: float, seed: int) -> np.ndarray:
    """A share of the nodes, half of them members (all members, if the target was trained on few)."""
    random = generator(seed, "balanced")
    half = int(len(members) * share) // 2
    return np.concatenate([random.permutation(np.flatnonzero(side))[:half] for side in (members, ~members)])
