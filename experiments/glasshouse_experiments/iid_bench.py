"""What the i.i.d. experiments share: a pool of shadow models, targets outside of it, and the losses of all of them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from glasshouse import Evidence, InputError, Population, TorchTrainer
from glasshouse.attacks import Attack
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.core.randomness import seed_for
from glasshouse.data import complementary_halves, random_subsets
from glasshouse.data.named import load_dataset
from glasshouse.evidence import Mode
from glasshouse.pool import ShadowPool
from glasshouse.pool.shadow_pool import described
from glasshouse_experiments.bench import Judged
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.iid_settings import RecordSetting
from glasshouse_experiments.kept_losses import brought_count, brought_losses, kept_losses
from glasshouse_experiments.measures import Measure
from glasshouse_experiments.settings import Preset

__all__ = ["AttackOf", "IidBench", "Target", "cells_of", "first_models"]

AttackOf = Callable[[Mode], Attack]
Scoring = Callable[[Attack, Evidence], FloatArray]
POOL_SIZES = (32, 8)  # the paper's; offline, half of them are out-models of a record


class Target(NamedTuple):
    """What is known about one target: evidence about every record, and who trained it, [N]."""

    evidence: Evidence
    truth: BoolArray


@dataclasses.dataclass(frozen=True, kw_only=True)
class IidBench:
    """A setting under a preset; models and their losses are kept under ``folder`` and shared by all experiments.

    A killed run continues where it stopped; more shadow models or targets are added to the existing ones.

    Args:
        setting: data and trainer.
        preset: how many models, and how long they are trained.
        folder: for pools, each in its own folder.
        seed: of every random choice.
        progress: whether to show bars.
    """

    setting: RecordSetting
    preset: Preset
    folder: Path
    seed: int = 0
    progress: bool | None = None

    @functools.cached_property
    def population(self) -> Population:
        """The records, all of which are audited."""
        return load_dataset(self.setting.data, **self.setting.options).population

    @property
    def trainer(self) -> TorchTrainer:
        """The setting's trainer, with the preset's share of its epochs."""
        whole = self.setting.trainer
        return dataclasses.replace(whole, epochs=max(1, round(whole.epochs * self.preset.epochs)))

    @property
    def models(self) -> int:
        """How many shadow models: the paper's 32, or fewer if the preset limits them or fewer were brought."""
        brought = brought_count(self._place("shadows"))
        return min(POOL_SIZES[0], self.preset.most_shadows, POOL_SIZES[0] if brought is None else brought)

    @property
    def shadows(self) -> ShadowPool:
        """Shadow models by the paper's Algorithm 1."""
        members = complementary_halves(len(self.population), models=self.models, seed=self.seed)
        return self._pool("shadows", members, self.seed)

    @property
    def target_models(self) -> ShadowPool:
        """Targets, each trained on its own random half."""
        seed = seed_for(self.seed, "targets")
        members = random_subsets(len(self.population), models=self.preset.targets, fraction=0.5, seed=seed)
        return self._pool("targets", members, seed)

    def targets(self) -> Iterator[Target]:
        """Evidence and truth of one target after another."""
        shadows, models = self.shadows, self.target_models
        # targets first: a trainer that does not learn is noticed after one model, not after 32
        target_loss = kept_losses(models, label=f"Targets, {self.setting.paper_name}", progress=self.progress)
        shadow_loss = kept_losses(shadows, label=f"Shadow models, {self.setting.paper_name}", progress=self.progress)
        for loss, truth in zip(target_loss, models.members, strict=True):
            evidence = Evidence(
                target_loss=loss,
                shadow_loss=shadow_loss,
                shadow_members=shadows.members,
                ids=self.population.ids,
                labels=self.population.y,
            )
            yield Target(evidence, truth)

    @property
    def note(self) -> str:
        """What was run, as a sentence for readers of the figures."""
        return (
            f"{self.setting.model}, at most {self.trainer.epochs} epochs, {len(self.population)} records, "
            f"{self.models} shadow models, {self.preset.targets} targets. {self.setting.note} {self._origin}"
        ).strip()

    @property
    def _origin(self) -> str:
        """Where the models were trained, if it was not here."""
        if brought_count(self._place("targets")) is None or (found := brought_losses(self.target_models)) is None:
            return ""
        return f"Models trained at commit {found.made_by['commit'][:8]} on {found.made_by['machine']}."

    def _pool(self, kind: str, members: BoolArray, seed: int) -> ShadowPool:
        return ShadowPool(
            population=self.population,
            trainer=self.trainer,
            members=members,
            seed=seed,
            folder=self._place(kind),
            together=self.setting.together,
        )

    def _place(self, kind: str) -> Path:
        recipe = hashlib.sha256(f"{self.setting.options} {described(self.trainer)}".encode()).hexdigest()[:8]
        return Path(self.folder) / f"{self.setting.name}-{recipe}-{kind}"


def first_models(evidence: Evidence, models: int) -> Evidence:
    """The same evidence with only the first ``models`` shadow models.

    Example:
        >>> evidence = Evidence(target_loss=[1.0], shadow_loss=[[1.0], [2.0], [3.0]], shadow_members=[[1], [0], [1]])
        >>> first_models(evidence, 2).models
        2
    """
    return Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss[:models],
        shadow_members=evidence.shadow_members[:models],
        ids=evidence.ids,
        labels=evidence.labels,
    )


def cells_of(
    bench: IidBench,
    attacks: Mapping[str, AttackOf],
    measure: Measure,
    *,
    table: str,
    scoring: Scoring = lambda attack, evidence: attack.score(evidence),
) -> list[Cell]:
    """Figures of each attack, online and offline, for each of the paper's pool sizes that this pool reaches.

    Args:
        bench: where targets come from.
        attacks: by their names in the paper, each made for a mode.
        measure: from an attack's scores to figures by their names in the paper.
        table: the paper's name of the table.
        scoring: what is computed from a tuned attack; by default its scores.
    """
    sizes = [size for size in POOL_SIZES if size <= bench.models]
    if not sizes:
        raise InputError(f"shadows: {bench.models} are too few; the paper's tables start at {POOL_SIZES[-1]}.")
    modes: tuple[tuple[Mode, int], ...] = (("online", 1), ("offline", 2))
    settled: dict[tuple[str, str, str], Attack] = {}
    found: dict[tuple[str, str, str, str], list[float]] = {}
    for evidence, truth in bench.targets():
        for size in sizes:
            part = first_models(evidence, size)
            for mode, parts in modes:
                for name, attack_of in attacks.items():
                    key = (mode, str(size // parts), name)
                    if key not in settled:  # tuning looks at the pool alone, which all targets share
                        settled[key] = attack_of(mode).tuned(part)
                    judged = Judged(scoring(settled[key], part), truth, seconds=0.0)
                    for metric, value in measure(judged).items():
                        found.setdefault((*key, metric), []).append(value)
    return [
        Cell(table, bench.setting.paper_name, mode, count, "", name, metric, tuple(values))
        for (mode, count, name, metric), values in found.items()
    ]
