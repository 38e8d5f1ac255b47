"""What the graph experiments share: a pool of shadow models for a setting, and ten targets to attack."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from glasshouse.attacks import Attack
from glasshouse.evaluation import auc, tpr_at_fpr
from glasshouse.experiments.cells import Cell
from glasshouse.experiments.settings import Preset, Setting
from glasshouse.graph import GraphAttack, Scene, load_graph
from glasshouse.graph.run import run_on_scene
from glasshouse.graph.trainer import GNNTrainer
from glasshouse.numerics import FloatArray
from glasshouse.pool import ShadowPool
from glasshouse.population import BoolArray, random_subsets
from glasshouse.progress import track
from glasshouse.randomness import generator, seed_for

__all__ = ["Bench", "attack_cells"]

METRICS = ("auc_pct", "tpr_at_fpr1_pct", "tpr_at_fpr0.1_pct")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """A setting under a preset; pools and targets are kept under ``folder`` and shared by all experiments."""

    setting: Setting
    preset: Preset
    folder: Path
    shadows: int = 8
    seed: int = 0
    progress: bool | None = None

    @property
    def trainer(self) -> GNNTrainer:
        """The setting's trainer, with the preset's share of its epochs."""
        whole = self.setting.trainer
        return dataclasses.replace(whole, epochs=max(1, round(whole.epochs * self.preset.epochs)))

    def scenes(self) -> Iterator[Scene]:
        """One scene a target: half of the nodes audited, as many members as others; targets are outside the pool."""
        data = load_graph(self.setting.data).data
        name = f"{self.setting.data}-{self.trainer.architecture}-{self.trainer.epochs}"
        pool = ShadowPool.plan(
            data, self.trainer, shadows=self.shadows, seed=self.seed, store=self.folder / f"{name}-shadows"
        )
        pool.train(progress=self.progress)
        shadows = list(pool)
        targets = ShadowPool(
            population=data,
            trainer=self.trainer,
            members=random_subsets(
                int(data.num_nodes), models=self.preset.targets, fraction=0.5, seed=seed_for(self.seed, "targets")
            ),
            seed=seed_for(self.seed, "targets"),
            store=self.folder / f"{name}-targets-{self.preset.targets}",
        )
        targets.train(progress=self.progress)
        label = f"{self.setting.paper_name} ({self.setting.model})"
        models = track(targets, total=len(targets), label=label, unit="targets", show=self.progress)
        for number, target in enumerate(models):
            members = targets.members[number]
            nodes = _balanced(members, seed_for(self.seed, "audited", number))
            yield Scene(data, target, shadows, pool.members, nodes=nodes, truth=members)


def attack_cells(
    bench: Bench, attacks: dict[tuple[str, str, str, str], Attack | GraphAttack], *, table: str
) -> list[Cell]:
    """AUC and TPR of each attack over all targets; keys are (mode, K, setting, attack) as the paper names them."""
    found: dict[tuple[str, str, str, str], list[tuple[float, ...]]] = {key: [] for key in attacks}
    for scene in bench.scenes():
        assert scene.truth is not None  # noqa: S101 (a bench always knows)
        truth = scene.truth[scene.nodes]
        for key, attack in attacks.items():
            found[key].append(_figures(run_on_scene(attack, scene, fprs=()).scores, truth))
    return [
        Cell(table, bench.setting.paper_name, *key, metric, tuple(row[at] for row in rows))
        for key, rows in found.items()
        for at, metric in enumerate(METRICS)
    ]


def _figures(scores: FloatArray, truth: BoolArray) -> tuple[float, ...]:
    rates = (tpr_at_fpr(scores, truth, fpr) for fpr in (0.01, 0.001))
    return tuple(100 * figure for figure in (auc(scores, truth), *rates))


def _balanced(members: BoolArray, seed: int) -> np.ndarray:
    random = generator(seed, "balanced")
    quarter = len(members) // 4
    return np.concatenate([random.permutation(np.flatnonzero(side))[:quarter] for side in (members, ~members)])
