from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from glasshouse import InputError, Population, TorchTrainer
from glasshouse.evidence import query
from glasshouse.io.files import write_file
from glasshouse.pool import ShadowPool
from glasshouse.training import mlp
from glasshouse_experiments import kept_losses as module
from glasshouse_experiments.kept_losses import BROUGHT, brought_bytes, brought_losses, kept_accuracy, kept_losses

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


def brought(pool: ShadowPool, **changes: np.ndarray) -> None:
    count, records = pool.members.shape
    rates = np.linspace(0.5, 1.0, count)
    found = {"loss": np.ones((count, records)), "train_accuracy": rates, "test_accuracy": rates - 0.1} | changes
    assert pool.folder is not None
    write_file(pool.folder / BROUGHT, brought_bytes(pool, found, {"commit": "abc", "machine": "a GPU"}))


def test_losses_of_another_machine_stand_for_the_models_and_tell_what_made_them(tmp_path: Path) -> None:
    six, four = pool(tmp_path, shadows=6), pool(tmp_path)
    brought(six, loss=np.arange(180.0).reshape(6, 30))
    assert (kept_losses(six) == np.arange(180.0).reshape(6, 30)).all()
    assert (kept_losses(four) == np.arange(120.0).reshape(4, 30)).all()  # the first models of the same plan
    assert kept_accuracy(four)[0].tolist() == np.linspace(0.5, 1.0, 6)[:4].tolist()
    found = brought_losses(four)
    assert found is not None
    assert found.made_by == {"commit": "abc", "machine": "a GPU"}
    assert not (tmp_path / "pool.json").exists()


def test_losses_of_another_recipe_other_members_or_too_few_models_are_refused(tmp_path: Path) -> None:
    four, other = pool(tmp_path), pool(tmp_path)
    brought(four)
    with pytest.raises(InputError, match=r"holds losses \(4, 30\), and this pool has 6 models"):
        kept_losses(pool(tmp_path, shadows=6))
    longer = ShadowPool.plan(POPULATION, TorchTrainer(module=mlp(4, 3), epochs=3), shadows=4, folder=tmp_path)
    with pytest.raises(InputError, match="another recipe"):
        kept_losses(longer)
    object.__setattr__(other, "members", ~other.members)
    with pytest.raises(InputError, match="trained on other records"):
        kept_losses(other)
    brought(four, loss=np.full((4, 30), np.nan))
    with pytest.raises(InputError, match="not finite"):
        kept_losses(four)
    (tmp_path / BROUGHT).write_bytes(b"damaged")
    with pytest.raises(InputError, match="is damaged"):
        kept_losses(four)


def test_what_another_version_of_torch_writes_about_a_normalisation_is_no_other_recipe() -> None:
    norm = "BatchNorm2d(8, eps=1e-05, affine=True, track_running_stats=True) Linear(in_features=8, bias=True)"
    assert module._plain(norm.replace("affine=True", "affine=True, bias=True")) == module._plain(norm) == norm
