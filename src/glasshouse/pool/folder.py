"""The pool's folder: a file and a manifest for each model, what all models share, and locks of those in training.

Weights are kept of modules that the trainer builds itself, of all other models what they answered: a stored estimator
could hold code, or numbers that compiled code follows without looking. Nothing else is ever read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from glasshouse.core.arrays import BoolArray
from glasshouse.core.errors import InputError, raise_faults
from glasshouse.core.optional import is_module
from glasshouse.data import AnyPopulation
from glasshouse.io.files import digest, file_mode, make_folders, write_file
from glasshouse.io.guarded import file_size, guarded, read_content, read_json
from glasshouse.io.limits import lacks_memory
from glasshouse.pool.description import differences, digest_of
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import QueryOptions, query
from glasshouse.query.regress import population_predictions, predict

KINDS = ("torch", "answers")
_AGAIN = "Delete this model's files to train it again."
_FORMAT = 2  # format 1 described a trainer by one line of text only

_SHARED = ("data", "trainer_sha256", "seed", "fraction")
_OWN = "pool_sha256"  # of pool.json itself, without this entry
_OF_MODEL = "manifest_sha256"  # the same of a model's manifest
_SHOWN = 8  # differences that a message lists
_LOCKS = 61  # files of locks, each open while it is held; a prime: numbers of groups are multiples of their size


class StoredModel(NamedTuple):
    """A model as bytes: what kind it is, its content, and figures of its training."""

    kind: str
    content: bytes
    metrics: dict[str, float]


def kind_of(trainer: Any, population: AnyPopulation) -> str:
    """How a trainer's models are kept: ``"torch"`` weights if it can rebuild them (``restore``), else ``"answers"``."""
    if hasattr(trainer, "restore"):
        return "torch"
    if population.independent:
        return "answers"
    raise InputError(
        "pool: a model of your own trainer cannot be rebuilt from its weights, and an audit of a graph queries it "
        "again. Give the trainer a method restore(data, tensors), or leave out the pool."
    )


def stored(
    model: Any, trainer: Any, population: AnyPopulation, *, members: BoolArray, how: QueryOptions | None = None
) -> StoredModel:
    """A trained model as bytes, the same for the same weights; or its answers. With figures of its training."""
    if kind_of(trainer, population) == "answers":
        data, how = population.training_data, how or QueryOptions()
        if data.regression:
            kept = KeptAnswers(population_predictions(model, data, QueryOptions()))
        else:
            kept = how.kept(model, data)
        metrics = _metrics(kept, trainer, population, members, how)
        return StoredModel("answers", safetensors.numpy.save(kept.arrays()), metrics)
    if not is_module(model):
        raise InputError(
            f"pool: the trainer has a method restore, but made a {type(model).__name__} and not a torch module. "
            f"Return a module, or remove restore."
        )
    from safetensors.torch import save

    # copies, since tensors that share memory are written out one by one
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}
    usual = how if how is not None and how.own else QueryOptions()
    return StoredModel("torch", save(tensors), _metrics(model, trainer, population, members, usual))


def _metrics(
    model: Any, trainer: Any, population: AnyPopulation, members: BoolArray, how: QueryOptions
) -> dict[str, float]:
    """How well a model does on members and others; a trainer may have its own figures."""
    data = population.training_data
    if hasattr(trainer, "metrics"):
        return dict(trainer.metrics(data, members, model))
    if not population.independent:
        return {}
    if data.regression:
        return predict(model, data).figures(members)
    answers = query(model, data, how=how)
    figures = answers.figures(members)
    if not how.labels_only:
        figures["train_loss"] = float(answers.loss[members].mean())
    return {name: value for name, value in figures.items() if np.isfinite(value)}


def restored(kind: str, content: bytes, trainer: Any, population: AnyPopulation) -> Any:
    """The model again, or its answers; a kind that this trainer never makes is refused before it is read."""
    if kind != (wanted := kind_of(trainer, population)):
        raise InputError(
            f'is of kind "{kind}", but models of this trainer are of kind "{wanted}". It was not read: the pool was '
            f"changed. {_AGAIN}"
        )
    with guarded("its .safetensors file", what=f"a stored model of kind {kind}", advice=_AGAIN):
        if kind == "torch":
            from safetensors.torch import load

            return trainer.restore(population.training_data, load(content))
        return _answers(safetensors.numpy.load(content), len(population))


def _answers(arrays: dict[str, NDArray[Any]], records: int) -> KeptAnswers:
    """Kept answers [N, C], checked to be numbers about this population."""
    logits, correct = arrays["logits"], arrays.get("correct")
    fits = logits.dtype == np.float64 and logits.ndim == 2 and len(logits) == records and bool((logits < np.inf).all())
    if not fits or (correct is not None and (correct.dtype != np.bool_ or correct.shape != (records,))):
        raise InputError(f"does not hold answers about {records} records. {_AGAIN}")
    return KeptAnswers(logits, correct)


class Identity(NamedTuple):
    """What makes two pools the same."""

    shared: dict[str, Any]  # equal in ``pool.json`` and in each manifest: _SHARED, by name
    trainer: str  # in one line, for readers
    parts: Any  # the trainer down to its values, as `describe` gives it


class PoolFolder:
    """Models on disk, each complete or absent: its manifest is written last and holds its checksum.

    Where answers are kept and not models, ``question`` is what was asked, `describe` of a `QueryOptions.question`:
    answers to other questions than the usual one have files of their own.
    """

    def __init__(self, path: Path | str, identity: Identity, *, question: Any = None) -> None:
        self.path = Path(path)
        self.identity = identity
        self._asked = "" if question is None else f"-{digest_of(question)}"
        if old := next(iter(sorted(self.path.glob("model-*.skops"))), None):
            raise InputError(
                f"{old}: is an estimator that an earlier version of Glasshouse stored. Stored estimators are no longer "
                f"read, since they can hold code. Choose another folder, or delete this folder's model-* files to "
                f"train them again."
            )
        description = self.path / "pool.json"
        if description.exists():
            self._check(read_json(description))
        elif self.path.exists() and any(self.path.glob("model-*")):
            raise InputError(f"{self.path}: has models but no pool.json; it is not a pool, or damaged. Choose another.")
        else:
            told = {"trainer": identity.trainer, "trainer_parts": identity.parts}
            _write(description, {"format": _FORMAT, **identity.shared, **told}, seal=_OWN)

    def has(self, index: int) -> bool:
        """Whether a model is there and complete: its manifest can be read and its file has the right checksum."""
        try:
            self.read(index)
        except InputError as error:
            if lacks_memory(error):  # it may be whole: it is not trained again over it
                raise
            return False
        return True

    def write(self, index: int, model: StoredModel, manifest: dict[str, Any]) -> None:
        """Store a model: first its file, then its manifest, without which it does not count."""
        self._check_there()
        self._manifest(index).unlink(missing_ok=True)  # an old manifest must not describe a new file
        write_file(self._file(index), model.content)
        full = {
            "format": _FORMAT,
            "index": index,
            "kind": model.kind,
            "sha256": hashlib.sha256(model.content).hexdigest(),
            "metrics": model.metrics,
            "trainer": self.identity.trainer,
            **self.identity.shared,
            **manifest,
        }
        _write(self._manifest(index), full, seal=_OF_MODEL)

    def read(self, index: int) -> tuple[str, bytes]:
        """Kind and content of a model, its checksum checked."""
        self._check_there()
        manifest = self.manifest(index)
        if lost := {"kind", "sha256"} - manifest.keys():
            raise InputError(f"{self._manifest(index)}: {min(lost)} is missing; train it again.")
        kind, wanted, path = str(manifest["kind"]), str(manifest["sha256"]), self._file(index)
        if kind not in KINDS:
            raise InputError(f'{self._manifest(index)}: kind: "{kind}" is not known. Known: {", ".join(KINDS)}.')
        content = read_content(path, times=0)  # as large as the models that the trainer makes
        if hashlib.sha256(content).hexdigest() != wanted:
            raise InputError(f"{path}: does not have its checksum; train it again.")
        return kind, content

    def other_answers(self, index: int) -> bool:
        """Whether answers of this model to another question are kept, but not to this one."""
        others = {path.name for path in self.path.glob(f"model-{index:05d}*.json")} - {self._manifest(index).name}
        return bool(others) and not self._manifest(index).exists()

    def manifest(self, index: int) -> dict[str, Any]:
        """The manifest of a model, checked to belong to this pool."""
        return _manifest_of(self._manifest(index), self.identity.shared)

    def _check(self, found: dict[str, Any]) -> None:
        if found.get("format") != _FORMAT:
            raise InputError(
                f"{self.path / 'pool.json'}: format {found.get('format')!r} is from another version of Glasshouse, "
                f"which described trainers differently. Choose another folder for this pool."
            )
        changed: list[tuple[str, Any, Any]] = []
        for name, value in self.identity.shared.items():
            if found.get(name) == value:
                continue
            parts = differences(found.get("trainer_parts"), self.identity.parts) if name == "trainer_sha256" else []
            changed += parts or [(name, found.get(name), value)]
        faults = [
            f"{self.path}: {place}: the pool was made with {_short(before)}, not {_short(now)}. Choose another folder "
            f"for this pool."
            for place, before, now in changed[:_SHOWN]
        ]
        more = len(changed) - _SHOWN
        raise_faults([*faults, *([f"{self.path}: {more} more differences of this kind."] if more > 0 else [])])

    def _check_there(self) -> None:
        if not (self.path / "pool.json").is_file():
            raise InputError(
                f"{self.path}: the pool's folder was removed or emptied while it was in use, so its models are lost. "
                f"Run again to train them."
            )

    def _file(self, index: int) -> Path:
        return self.path / f"model-{index:05d}{self._asked}.safetensors"

    def _manifest(self, index: int) -> Path:
        return self.path / f"model-{index:05d}{self._asked}.json"


def pool_faults(path: Path) -> tuple[int, list[str]]:
    """How many models a pool's folder keeps, and what is damaged or foreign in it, a line each; nothing is loaded."""
    try:
        shared = read_json(path / "pool.json", missing="does not exist.")
    except InputError as error:
        return 0, list(error.faults)
    locks = {one.name for one in path.glob(".claims*") if not one.is_symlink() and one.is_file()}
    faults, known = [], {"pool.json", *locks}
    if not _is_sealed(shared, _OWN):  # pools of earlier versions are not
        faults.append(f"{path / 'pool.json'}: was damaged or edited, or has no checksum; choose another folder.")
    manifests = sorted(path.glob("model-*.json"))
    for manifest in manifests:
        content = manifest.with_suffix(".safetensors")
        known |= {manifest.name, content.name}
        try:
            found = _manifest_of(manifest, {name: shared.get(name) for name in _SHARED})
            if file_size(content) < 0 or found.get("sha256") != digest(content):  # file_size refuses an endless pipe
                faults.append(f"{content}: was damaged or edited. {_AGAIN}")
        except InputError as error:
            faults += error.faults
        except OSError as error:
            faults.append(f"{content}: cannot be read: {error.strerror}.")
    faults += [f"{one}: is not a file of this pool." for one in sorted(path.iterdir()) if one.name not in known]
    return len(manifests), faults


def _manifest_of(path: Path, shared: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a model, checked to be whole, of this pool, and of the model that its name says."""
    found = read_json(path, missing="does not exist.")
    if not _is_sealed(found, _OF_MODEL):
        raise InputError(f"{path}: was damaged or edited. {_AGAIN}")
    for name, value in shared.items():
        if found.get(name) != value:
            raise InputError(f"{path}: {name}: belongs to another pool. {_AGAIN}")
    if not path.name.startswith(f"model-{str(found.get('index')).zfill(5)}"):
        raise InputError(f"{path}: is of another model than its name says. Delete the files of both models.")
    return found


def _short(value: Any) -> str:
    """A value in a message; a long one is cut, with a hash that shows a difference after the cut."""
    text = "no value" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 200 else f"{text[:180]} … ({hashlib.sha256(text.encode()).hexdigest()[:8]})"


def _write(path: Path, content: dict[str, Any], *, seal: str) -> None:
    """As JSON, with a checksum of itself under the name ``seal``."""
    sealed = content | {seal: digest_of(content)}
    write_file(path, json.dumps(sealed, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def _is_sealed(found: dict[str, Any], seal: str) -> bool:
    """Whether the content of a file has its checksum, which is taken out of it."""
    return bool(found.pop(seal, None) == digest_of(found))


class Claims:
    """Locks of groups of models, ``.claims`` and ``.claims-0`` to ``-60``; the system releases a dead process's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with self._refusing():
            make_folders(folder)
        with self.description():
            pass

    def description(self) -> AbstractContextManager[Any]:
        """The claim on ``pool.json``, for which a process waits."""
        return self._lock(".claims", wait=True)

    @contextlib.contextmanager
    def claimed(self, groups: Iterable[int], *, wait: bool) -> Iterator[set[int]]:
        """Which of the groups are ours while the block runs; with ``wait`` it waits until all are."""
        wanted = set(groups)
        with contextlib.ExitStack() as stack:
            ours = set()
            for number in sorted({group % _LOCKS for group in wanted}):  # in one order: none wait for each other
                with contextlib.suppress(Timeout):
                    stack.enter_context(self._lock(f".claims-{number}", wait=wait))
                    ours.add(number)
            yield {group for group in wanted if group % _LOCKS in ours}

    def _lock(self, name: str, *, wait: bool) -> AbstractContextManager[Any]:
        with self._refusing():
            return FileLock(self._folder / name, mode=file_mode()).acquire(blocking=wait)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except Timeout:  # another process has it
            raise
        except OSError as error:
            told = error.strerror or error
            raise InputError(f"{self._folder}: a pool cannot be kept there: {told}. Choose another folder.") from error
