"""Losses of a stored pool on every record, computed once per model and kept next to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from glasshouse import InputError
from glasshouse.core.arrays import FloatArray
from glasshouse.core.progress import track
from glasshouse.io.files import write_file
from glasshouse.pool import ShadowPool
from glasshouse.pool.folder import restored
from glasshouse.query.classify import query

__all__ = ["kept_losses"]

VERSION = 1  # of the way from a model's answers to losses; raise it when the losses change


def kept_losses(pool: ShadowPool, *, label: str = "Losses", progress: bool | None = None) -> FloatArray:
    """Losses [K, N] of all models of a pool on its population; missing models are trained first.

    Those of each model are kept in the pool's folder under ``losses``, with the checksum of the model and the version
    of the code that asked: a model that was trained again, or asked by another version, is asked again.

    Args:
        pool: with a folder.
        label: of the bar.
        progress: whether to show it.
    """
    if pool.folder is None:
        raise InputError("folder: this pool has no folder to keep losses in.")
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
