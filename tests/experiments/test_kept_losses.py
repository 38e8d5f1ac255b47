from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.evidence import query
from glasshouse.pool import ShadowPool
from glasshouse.training import mlp
from glasshouse_experiments import kept_losses as module
from glasshouse_experiments.kept_losses import kept_losses

POPULATION = Population(np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32), np.arange(30) % 3)


def pool(folder: Path | None, shadows: int = 4) -> ShadowPool:
    return ShadowPool.plan(POPULATION, TorchTrainer(module=mlp(4, 3), epochs=2), shadows=shadows, folder=folder)


def test_a_model_is_asked_once_and_its_losses_are_those_of_a_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = np.stack([query(model, POPULATION).loss for model in pool(tmp_path)])
    asked: list[object] = []

    def watched(model: object, population: Population) -> object:
        asked.append(model)
        return query(model, population)

    monkeypatch.setattr(module, "query", watched)
    assert (kept_losses(pool(tmp_path), progress=False) == expected).all()
    assert (kept_losses(pool(tmp_path), progress=False) == expected).all()
    assert len(asked) == 4
    kept_losses(pool(tmp_path, shadows=6), progress=False)
    assert len(asked) == 6


@pytest.mark.parametrize("content", [b"", b"damaged", None])
def test_losses_that_are_damaged_or_of_another_model_are_asked_again(tmp_path: Path, content: bytes | None) -> None:
    expected = kept_losses(pool(tmp_path), progress=False)
    first, second = (tmp_path / "losses" / f"model-0000{index}.safetensors" for index in (0, 1))
    first.write_bytes(second.read_bytes() if content is None else content)
    assert (kept_losses(pool(tmp_path), progress=False) == expected).all()


def test_losses_of_another_version_are_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = kept_losses(pool(tmp_path), progress=False)
    path = tmp_path / "losses" / "model-00000.safetensors"
    with safetensors.safe_open(path, framework="np") as file:
        made_by = file.metadata()
    assert made_by["version"] == "1"
    del made_by["version"]  # as in files from before there were versions, which the first one made
    path.write_bytes(safetensors.numpy.save({"loss": np.zeros(30)}, metadata=made_by))
    assert (kept_losses(pool(tmp_path), progress=False)[0] == 0).all()
    monkeypatch.setattr(module, "VERSION", 2)
    assert (kept_losses(pool(tmp_path), progress=False) == expected).all()


def test_a_pool_without_a_folder_is_refused() -> None:
    with pytest.raises(InputError, match="no folder to keep losses in"):
        kept_losses(pool(None))
