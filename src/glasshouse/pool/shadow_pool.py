"""The shadow pool: which records train which shadow model, training of missing models, and the models one by one."""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from glasshouse.compute import Compute, ThisProcess
from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, naming, placed
from glasshouse.core.optional import installed_version
from glasshouse.core.progress import note_work, track
from glasshouse.core.randomness import seed_for
from glasshouse.data import AnyPopulation, Units, as_members, as_population, complementary_halves, random_subsets
from glasshouse.io.files import check_name, clean_leftovers
from glasshouse.pool.description import describe, digest_of
from glasshouse.pool.folder import Claims, Identity, PoolFolder, StoredModel, kind_of, restored, stored
from glasshouse.query.classify import QueryOptions
from glasshouse.training.trainer import Trainer

_LIBRARIES = ("numpy", "scikit-learn", "torch")  # whose versions a manifest holds; torch is an extra
_LOG = logging.getLogger("glasshouse")


class Group(NamedTuple):
    """Models that are trained together: always the same ones, so that a resumed run gives the same bytes."""

    indices: tuple[int, ...]
    members: BoolArray  # [models, N]
    seeds: tuple[int, ...]


def train_group(population: AnyPopulation, trainer: Any, group: Group) -> list[Any]:
    """The models of a group, trained in one batch if the trainer can."""
    data = population.training_data
    if len(group.indices) > 1 and hasattr(trainer, "train_many"):
        return list(trainer.train_many(data, group.members, group.seeds))
    return [trainer(data, who, seed) for who, seed in zip(group.members, group.seeds, strict=True)]


def train_and_store(population: AnyPopulation, trainer: Any, how: QueryOptions, group: Group) -> list[StoredModel]:
    """The models of a group as bytes, with the figures of their training."""
    found = []
    for index, model, who in zip(group.indices, train_group(population, trainer, group), group.members, strict=True):
        with naming(f"shadow model {index}"):
            found.append(stored(model, trainer, population, members=who, how=how))
    return found


def groups_of(members: BoolArray, seeds: Sequence[int], size: int) -> list[Group]:
    """Consecutive models, ``size`` at a time."""
    parts = [slice(start, min(start + size, len(members))) for start in range(0, len(members), size)]
    return [Group(tuple(range(part.start, part.stop)), members[part], tuple(seeds[part])) for part in parts]


@dataclass(frozen=True, eq=False, kw_only=True)
class ShadowPool:
    """Shadow models of one population and trainer.

    Without ``folder`` each model is trained when it is needed and not kept. With it, every model is trained once, kept
    in the folder, found again by later audits of the same data, trainer and seed, and read one at a time.

    Args:
        population: the records: a `Population`, or a graph (`glasshouse.graph` makes a population of it).
        trainer: how a model is trained.
        members: [K, N] which records train which model.
        seed: from which each model's own seed is derived.
        fraction: share of records that trains a model, as planned.
        folder: where models are kept.
        compute: where training runs; here by default.
        together: models trained at once if the trainer can, always the same ones, whatever is already there. A killed
            run loses these, so use 1 for large models that are trained one by one anyway.
        how: the question that models are kept for. Of modules that the trainer can rebuild the weights are kept, which
            answer any question; of all other models, such as scikit-learn's, only the answers to this one.

    Example:
        >>> import numpy as np
        >>> from glasshouse.data import Population
        >>> population = Population(np.arange(4.0).reshape(-1, 1), [0, 1, 0, 1])
        >>> pool = ShadowPool.plan(population, lambda population, members, seed: members.sum(), shadows=2)
        >>> sum(int(model) for model in pool)
        4
    """

    population: Any
    trainer: Trainer
    members: BoolArray
    seed: int = 0
    fraction: float = 0.5
    folder: Path | None = None
    compute: Compute = field(default_factory=ThisProcess)
    together: int = 8
    how: QueryOptions = field(default_factory=QueryOptions)

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", as_population(self.population))
        shape = (len(self.members), len(self.population))
        object.__setattr__(self, "members", as_members(self.members, shape, place="shadow members"))

    @classmethod
    def plan(
        cls,
        population: Any,
        trainer: Trainer,
        *,
        shadows: int = 8,
        fraction: float = 0.5,
        seed: int = 0,
        folder: Path | str | None = None,
        compute: Compute | None = None,
        how: QueryOptions | None = None,
        units: Units | None = None,
    ) -> ShadowPool:
        """A pool by the paper's Algorithm 1; by independent draws if ``fraction`` is not one half.

        One model has no complement, so it is an independent draw; a pool of none is empty. Units, by default those of
        the population, are drawn whole.
        """
        units = getattr(population, "unit", None) if units is None else units
        count = len(as_population(population))
        if fraction == 0.5 and shadows not in (0, 1):
            members = complementary_halves(count, models=shadows, seed=seed, units=units)
        else:
            drawn: dict[str, Any] = {"fraction": fraction, "seed": seed, "stream": "shadow subset", "units": units}
            members = random_subsets(count, models=shadows, **drawn)
        return cls(
            population=population,
            trainer=trainer,
            members=members,
            seed=seed,
            fraction=fraction,
            folder=None if folder is None else Path(folder),
            compute=compute or ThisProcess(),
            how=how or QueryOptions(),
        )

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Any]:
        """One model after another: read from the folder if there is one, else trained now."""
        if not len(self):
            return
        if self.folder is not None:
            folder = self.train(progress=False)
            for index in range(len(self)):
                kind, content = folder.read(index)
                with placed(f"{self.folder}: model {index}"):
                    model = restored(kind, content, self.trainer, self.population)
                yield model
            return
        note_work("Shadow models were being trained; without a pool they are not kept.")
        if isinstance(self.compute, ThisProcess):
            for group in self._groups():
                yield from train_group(self.population, self.trainer, group)
            return
        models = {index: model for index, _, model in self._trained(self._groups())}
        for index in range(len(self)):
            model = models.pop(index)
            yield restored(model.kind, model.content, self.trainer, self.population)

    def train(self, *, progress: bool | None = None) -> PoolFolder:
        """Train what is missing in the folder, and nothing else; several processes may do so at once."""
        if self.folder is None:
            raise InputError("folder: this pool has no folder to train into.")
        check_name(self.folder)
        identity = self._identity  # a trainer that cannot be described is refused before anything is written
        try:
            claims = Claims(self.folder)
        except InputError as error:
            return self._complete(self.folder, fault=error)
        with claims.description():
            folder = PoolFolder(self.folder, identity, question=self._question)
        if any(folder.other_answers(index) for index in range(len(self))):
            _LOG.warning(
                "%s: keeps these models' answers to another question, not the models; they are trained again for this "
                "one.",
                self.folder,
            )
        self._check_members(folder)
        for wait in (False, True):  # first what no process is training, then what others began and may have left
            self._train_missing(folder, claims, wait=wait, progress=progress)
        clean_leftovers(self.folder)
        return folder

    def _complete(self, path: Path, *, fault: InputError) -> PoolFolder:
        """The pool where nothing can be written, such as on a read-only disk; refused if a model is missing."""
        if not (path / "pool.json").is_file():
            raise fault
        folder = PoolFolder(path, self._identity, question=self._question)
        self._check_members(folder)
        if missing := sum(not folder.has(index) for index in range(len(self))):
            raise InputError(*(f"{line} {missing} of {len(self)} models are missing there." for line in fault.faults))
        return folder

    @property
    def _question(self) -> Any:
        """What tells kept answers apart; None where models are kept, or the usual question is asked."""
        if kind_of(self.trainer, self.population) == "torch" or self.how.question == QueryOptions():
            return None
        return describe(self.how.question)

    @functools.cached_property
    def _identity(self) -> Identity:
        """By which this pool is recognised; computed once, before the first model: training may change a trainer."""
        parts = describe(self.trainer)
        shared = {"data": self.population.fingerprint(), "trainer_sha256": digest_of(parts)}
        return Identity({**shared, "seed": self.seed, "fraction": self.fraction}, described(self.trainer), parts)

    def _check_members(self, folder: PoolFolder) -> None:
        """Refuse a pool whose models were trained on other records than planned, such as by another random stream."""
        for index in range(len(self)):
            try:
                found = folder.manifest(index).get("members")
            except InputError:  # missing, or of another pool: it will be trained
                continue
            if found != self._ids_of_members(index):
                raise InputError(
                    f"{self.folder}: model {index}: was trained on other records than this pool plans for it. "
                    f"Choose another folder for this pool."
                )

    def _ids_of_members(self, index: int) -> list[str]:
        return [str(name) for name in self.population.ids[self.members[index]]]

    def _train_missing(self, folder: PoolFolder, claims: Claims, *, wait: bool, progress: bool | None) -> None:
        def lacking(group: Group) -> bool:
            return not all(folder.has(index) for index in group.indices)

        missing = [group for group in self._groups() if lacking(group)]
        if not missing:
            return
        found = sum(folder.has(index) for index in range(len(self)))
        label = "Shadow models" + (f" ({found} found on disk)" if found else "")
        kept = f"Shadow models that were trained are kept in {self.folder}."
        none_kept = f"Shadow models were being trained; none was complete, so none is kept in {self.folder}."
        with claims.claimed([group.indices[0] for group in missing], wait=wait) as held:
            # another process may have finished a group between the check and the claim
            ours = [group for group in missing if group.indices[0] in held and lacking(group)]
            left = sum(len(group.indices) for group in ours)
            if left:
                note_work(kept if found else none_kept)
            for index, seed, model in track(self._trained(ours), total=left, label=label, unit="models", show=progress):
                if not folder.has(index):
                    versions = {name: version for name in _LIBRARIES if (version := installed_version(name))}
                    about = {"model_seed": seed, "members": self._ids_of_members(index), "versions": versions}
                    folder.write(index, model, about)
                    note_work(kept, instead_of=none_kept)

    def _trained(self, groups: list[Group]) -> Iterator[tuple[int, int, StoredModel]]:
        """Models with their numbers and seeds, in the order in which groups end."""
        for position, models in self.compute.run(train_and_store, (self.population, self.trainer, self.how), groups):
            yield from zip(groups[position].indices, groups[position].seeds, models, strict=True)

    def _groups(self) -> list[Group]:
        seeds = [seed_for(self.seed, "shadow", index) for index in range(len(self))]
        return groups_of(self.members, seeds, self.together if hasattr(self.trainer, "train_many") else 1)


def described(trainer: Any) -> str:
    """A trainer as one line for readers, which does not show every value: settings, architecture, or source code."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(trainer))
    factory = getattr(trainer, "module", None) or getattr(trainer, "model", None)
    if callable(factory):
        text += f"; {' '.join(str(factory()).split())}"
    if inspect.isfunction(trainer):
        try:
            source = inspect.getsource(trainer)
        except OSError:  # typed at a prompt
            source = trainer.__code__.co_code.hex()
        text += f"; source {hashlib.sha256(source.encode()).hexdigest()[:16]}"
    return text
