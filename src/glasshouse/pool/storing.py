"""Models as bytes and back, without pickle: safetensors for torch, skops for scikit-learn, answers for the rest."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from glasshouse.arrays import FloatArray
from glasshouse.errors import InputError
from glasshouse.pool.answers import KeptAnswers
from glasshouse.pool.compiled import check_trees
from glasshouse.pool.loaded import check_loaded
from glasshouse.pool.trusted import strange_names
from glasshouse.population import AnyPopulation, select
from glasshouse.predictions import population_predictions
from glasshouse.queries import population_logits
from glasshouse.reading import guarded

__all__ = ["StoredModel", "ending", "restored", "stored"]

_ENDINGS = {"torch": ".safetensors", "sklearn": ".skops", "answers": ".safetensors"}
_AGAIN = "Delete this model's files to train it again."


class StoredModel(NamedTuple):
    """A model as bytes: what kind it is, its content, and figures of its training."""

    kind: str
    content: bytes
    metrics: dict[str, float]


def ending(kind: str) -> str:
    """The file ending of a kind of stored model."""
    if kind not in _ENDINGS:
        raise InputError(f'kind: "{kind}" is not a kind of stored model. Known: {", ".join(_ENDINGS)}.')
    return _ENDINGS[kind]


def stored(model: Any, trainer: Any, population: AnyPopulation, metrics: dict[str, float]) -> StoredModel:
    """A trained model as bytes, the same for the same weights.

    A torch module is stored if the trainer can rebuild it (``restore``), an estimator if all names in it are on our
    list (`strange_names`). For any other model the answers are kept.
    """
    kinds = _kinds(trainer, population)
    if "torch" in kinds:
        if not isinstance(model, nn.Module):
            raise InputError(
                f"pool: the trainer has a method restore, but made a {type(model).__name__} and not a torch module. "
                f"Return a module, or remove restore."
            )
        tensors = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
        return StoredModel("torch", save_tensors(_apart(tensors)), metrics)
    if not kinds:
        raise InputError(
            "pool: a model of your own trainer cannot be rebuilt from its weights, and an audit of a graph queries it "
            "again. Give the trainer a method restore(data, tensors), or leave out the pool."
        )
    fitted = hasattr(model, "predict_proba") or (hasattr(model, "predict") and not callable(model))
    if fitted and (content := _skops_bytes(model)) is not None:
        return StoredModel("sklearn", content, metrics)
    data = population.training_data
    logits = (population_predictions if getattr(data, "regression", False) else population_logits)(model, data)
    return StoredModel("answers", safetensors.numpy.save({"logits": logits}), metrics)


def restored(kind: str, content: bytes, trainer: Any, population: AnyPopulation) -> Any:
    """The model again, ready for queries; a kind that this trainer never makes is refused before it is read."""
    if kind not in (kinds := _kinds(trainer, population)):
        fitting = " or ".join(kinds) or "none, since they cannot be stored"
        raise InputError(
            f'is of kind "{kind}", but models of this trainer are of kind {fitting}. It was not read: the pool was '
            f"changed. {_AGAIN}"
        )
    with guarded(f"the {ending(kind)} file", what=f"a stored model of kind {kind}", advice=_AGAIN):
        if kind == "torch":
            return trainer.restore(population.training_data, load_tensors(content))
        if kind == "sklearn":
            return _tried(_from_skops(content), population.training_data)
        return KeptAnswers(_answers(safetensors.numpy.load(content)["logits"], len(population)))


def _answers(logits: NDArray[Any], records: int) -> FloatArray:
    """Kept answers [N, C], checked to be numbers about this population."""
    if logits.dtype.kind != "f" or logits.ndim != 2 or len(logits) != records or not (logits < np.inf).all():
        raise InputError(f"does not hold answers about {records} records. {_AGAIN}")
    return logits.astype(np.float64, copy=False)


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that share memory are written out one by one, as safetensors wants."""
    seen: set[int] = set()
    apart = {}
    for name, tensor in tensors.items():
        apart[name] = tensor.clone() if tensor.data_ptr() in seen else tensor
        seen.add(tensor.data_ptr())
    return apart


def _skops_bytes(model: Any) -> bytes | None:
    """The estimator through skops, with its memory addresses renumbered; None if it would not be safe to read."""
    try:
        import skops.io

        content: bytes = skops.io.dumps(model)
    except (ImportError, TypeError, ValueError, NotImplementedError):
        return None
    if strange_names(content):
        return None
    return _repeatable(content)


def _from_skops(content: bytes) -> Any:
    """The estimator; a file that names anything beyond our list is refused before anything in it is made."""
    import skops.io

    try:
        strange = strange_names(content)
        if not strange:
            _check_inside(content)
            model = skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))
            check_loaded(model)
            return model
    except InputError as error:
        raise InputError(*[f"{fault} {_AGAIN}" for fault in error.faults]) from error
    loader, name = strange[0].split(" ", 1)
    raise InputError(
        f"names {name} ({loader}), which no stored estimator needs. It was not read: the file was changed. {_AGAIN}"
    )


def _check_inside(content: bytes) -> None:
    """Look at what compiled code would follow without looking; skops itself calls trees untrusted for this reason."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        check_trees(json.loads(archive.read("schema.json")), archive)


def _tried(model: Any, data: Any) -> Any:
    """The estimator, after a question about two records: one that lacks something would fail far from its file."""
    few = select(data.x, np.arange(min(2, len(data))))
    model.get_params()
    for ask in ("predict_proba", "predict"):
        if hasattr(model, ask):
            getattr(model, ask)(few)
    return model


def _kinds(trainer: Any, population: AnyPopulation) -> tuple[str, ...]:
    """The kinds in which a trainer's models are stored; empty if they cannot be stored."""
    if hasattr(trainer, "restore"):
        return ("torch",)
    return ("sklearn", "answers") if population.independent else ()


def _repeatable(content: bytes) -> bytes:
    """The same archive with objects numbered in order instead of by memory address, and without times."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = files.pop("schema.json").decode()
    numbers = {old: str(new) for new, old in enumerate(dict.fromkeys(re.findall(r'"__id__": (\d+)', schema)))}
    schema = re.sub(r"\b\d{6,}\b", lambda match: numbers.get(match[0], match[0]), schema)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        named = {re.sub(r"^\d+", lambda match: numbers.get(match[0], match[0]), name): files[name] for name in files}
        for name in sorted(named):
            archive.writestr(zipfile.ZipInfo(name), named[name])
        archive.writestr(zipfile.ZipInfo("schema.json"), schema)
    return buffer.getvalue()
