"""Losses of a stored pool on every record, computed once per model and kept next to it; or made on another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy

from glasshouse import InputError
from glasshouse.core.arrays import FloatArray
from glasshouse.core.progress import track
from glasshouse.io.files import write_file
from glasshouse.pool import ShadowPool
from glasshouse.pool.folder import restored
from glasshouse.pool.shadow_pool import described
from glasshouse.query.classify import query

__all__ = ["BROUGHT", "Brought", "brought_bytes", "brought_count", "brought_losses", "kept_accuracy", "kept_losses"]

VERSION = 1  # of the way from a model's answers to losses; raise it when the losses change
BROUGHT = "brought.safetensors"  # in a pool's folder: losses of models that were trained elsewhere and not kept


class Brought(NamedTuple):
    """Losses that another machine made, without the models.

    Args:
        loss: [K, N] of each model on every record.
        train_accuracy: [K] among members.
        test_accuracy: [K] among non-members.
        made_by: commit, machine and library that made them.
    """

    loss: FloatArray
    train_accuracy: FloatArray
    test_accuracy: FloatArray
    made_by: dict[str, str]


def kept_losses(pool: ShadowPool, *, label: str = "Losses", progress: bool | None = None) -> FloatArray:
    """Losses [K, N] of all models of a pool on its population; missing models are trained first.

    Those of each model are kept in the pool's folder under ``losses``, with the checksum of the model and the version
    of the code that asked: a model that was trained again, or asked by another version, is asked again. Losses that
    were brought from another machine (`brought_losses`) stand for the models.

    Args:
        pool: with a folder.
        label: of the bar.
        progress: whether to show it.
    """
    if pool.folder is None:
        raise InputError("folder: this pool has no folder to keep losses in.")
    if (brought := brought_losses(pool)) is not None:
        return brought.loss
    folder = pool.train(progress=progress)
    found = np.empty((len(pool), len(pool.population)))
    for index in track(range(len(pool)), total=len(pool), label=label, unit="models", show=progress):
        path = pool.folder / "losses" / f"model-{index:05d}.safetensors"
        checksum = str(folder.manifest(index)["sha256"])
        kept = _kept(path, checksum)
        if kept is None or kept.shape != found[index].shape:
            model = restored(*folder.read(index), pool.trainer, pool.population)
            kept = query(model, pool.population).loss
            made_by = {"model_sha256": checksum, "version": str(VERSION)}
            write_file(path, safetensors.numpy.save({"loss": kept}, metadata=made_by))
        found[index] = kept
    return found


def kept_accuracy(pool: ShadowPool, *, progress: bool | None = None) -> tuple[FloatArray, FloatArray]:
    """Accuracy [K] of all models of a pool among their members, and among the other records."""
    if (brought := brought_losses(pool)) is not None:
        return brought.train_accuracy, brought.test_accuracy
    folder = pool.train(progress=progress)
    metrics = [folder.manifest(index)["metrics"] for index in range(len(pool))]
    inside, outside = (np.array([float(one[name]) for one in metrics]) for name in ("train_accuracy", "test_accuracy"))
    return inside, outside


def brought_losses(pool: ShadowPool) -> Brought | None:
    """What another machine made of this pool's models, or None if nothing was brought.

    Raises:
        InputError: if it was made by another recipe, or for other records or members than this pool's.
    """
    path = None if pool.folder is None else pool.folder / BROUGHT
    if path is None or not path.is_file():
        return None
    try:
        with safetensors.safe_open(path, framework="np") as file:
            told, kept = file.metadata() or {}, {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(
            f"{path}: is damaged: {error}. Bring it again, or delete it to train the models here."
        ) from error
    faults = _faults(pool, kept, told)
    if faults:
        raise InputError(*[f"{path}: {fault} Delete it to train the models here." for fault in faults])
    first = slice(len(pool))
    made_by = {name: value for name, value in told.items() if name not in ("recipe", "version")}
    loss, inside, outside = (np.asarray(kept[name][first], dtype=np.float64) for name in Brought._fields[:3])
    return Brought(loss, inside, outside, made_by)


def brought_count(folder: Path) -> int | None:
    """How many models' losses were brought into a pool's folder; None if none were, or the file is damaged."""
    try:
        with safetensors.safe_open(folder / BROUGHT, framework="np") as file:
            return int(file.get_slice("loss").get_shape()[0])
    except (OSError, safetensors.SafetensorError):
        return None


def brought_bytes(pool: ShadowPool, found: Mapping[str, Any], made_by: Mapping[str, str]) -> bytes:
    """The content of the file for a pool's first models, from arrays by the names of `Brought`.

    Args:
        pool: whose models they are.
        found: ``loss`` [K, N], ``train_accuracy`` and ``test_accuracy`` [K], and other figures of each model.
        made_by: commit, machine and library.
    """
    arrays = {name: np.ascontiguousarray(value) for name, value in found.items()}
    arrays["members"] = np.packbits(pool.members[: len(arrays["loss"])], axis=1)
    told = {"recipe": described(pool.trainer), "version": str(VERSION), **made_by}
    return bytes(safetensors.numpy.save(arrays, metadata=told))


def _faults(pool: ShadowPool, kept: Mapping[str, Any], told: Mapping[str, str]) -> list[str]:
    """Why brought losses cannot stand for this pool's models."""
    if missing := {*Brought._fields[:3], "members"} - kept.keys():
        return [f"holds no {', '.join(sorted(missing))}."]
    if told.get("version") != str(VERSION) or _plain(told.get("recipe", "")) != _plain(described(pool.trainer)):
        return ["was made by another recipe of training than this pool's."]
    count, records = len(pool), len(pool.population)
    if kept["loss"].ndim != 2 or len(kept["loss"]) < count or kept["loss"].shape[1] != records:
        return [f"holds losses {kept['loss'].shape}, and this pool has {count} models of {records} records."]
    if not np.array_equal(kept["members"][:count], np.packbits(pool.members, axis=1)):
        return ["is of models that were trained on other records than this pool plans."]
    return [] if np.isfinite(kept["loss"]).all() else ["holds losses that are not finite."]


def _plain(recipe: str) -> str:
    """A recipe without what only some versions of torch write about a normalisation."""
    return re.sub(r"(BatchNorm\w+\([^()]*), bias=True", r"\1", recipe)


def _kept(path: Path, checksum: str) -> FloatArray | None:
    """The losses in the file, if it is complete, of this model and of this version."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            made_by = file.metadata() or {}
            # files from before there were versions were made by the first one
            if (made_by.get("model_sha256"), made_by.get("version", "1")) != (checksum, str(VERSION)):
                return None
            return np.asarray(file.get_tensor("loss"))
    except (OSError, safetensors.SafetensorError):
        return None
