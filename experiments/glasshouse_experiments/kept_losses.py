"""Losses of a stored pool on every record, asked once a model and kept beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from glasshouse.arrays import FloatArray
from glasshouse.errors import InputError
from glasshouse.pool import ShadowPool
from glasshouse.pool.storing import restored
from glasshouse.progress import track
from glasshouse.queries import query
from glasshouse.store import write_file

__all__ = ["kept_losses"]


def kept_losses(pool: ShadowPool, *, label: str = "Losses", progress: bool | None = None) -> FloatArray:
    """Losses [K, N] of all models of a pool on its population; missing models are trained first.

    Each model's are kept in the pool's folder under ``losses``, with the checksum of the model that gave them: one that
    was trained again is asked again, any other is not.

    Args:
        pool: with a folder.
        label: of the bar.
        progress: whether to show it.
    """
    if pool.store is None:
        raise InputError("store: this pool has no folder to keep losses in.")
    folder = pool.train(progress=progress)
    found = np.empty((len(pool), len(pool.population)))
    for index in track(range(len(pool)), total=len(pool), label=label, unit="models", show=progress):
        path = pool.store / "losses" / f"model-{index:05d}.safetensors"
        checksum = str(folder.manifest(index)["sha256"])
        kept = _kept(path, checksum)
        if kept is None or kept.shape != found[index].shape:
            model = restored(*folder.read(index), pool.trainer, pool.population)
            kept = query(model, pool.population).loss
            write_file(path, safetensors.numpy.save({"loss": kept}, metadata={"model_sha256": checksum}))
        found[index] = kept
    return found


def _kept(path: Path, checksum: str) -> FloatArray | None:
    """What the file holds, if it is whole and of this model."""
    try:
        with safetensors.safe_open(path, framework="np") as file:
            if (file.metadata() or {}).get("model_sha256") != checksum:
                return None
            return np.asarray(file.get_tensor("loss"))
    except (OSError, safetensors.SafetensorError):
        return None
