from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from glasshouse import InputError, Population, SklearnTrainer, TorchTrainer
from glasshouse.core.arrays import BoolArray
from glasshouse.pool import ShadowPool
from glasshouse.query.adapters import KeptAnswers
from glasshouse.query.classify import query
from glasshouse.training import Versioned, mlp

RANDOM = np.random.default_rng(0)
POPULATION = Population(
    RANDOM.normal(size=(40, 3)).astype(np.float32), RANDOM.integers(2, size=40), ids=[f"p{i}" for i in range(40)]
)
TRAINER = TorchTrainer(module=mlp(3, 2, hidden=(4,)), epochs=2)


def pool(folder: Path, trainer: Any = TRAINER, **options: Any) -> ShadowPool:
    settings: dict[str, Any] = {"shadows": 4, "folder": folder, **options}
    return ShadowPool.plan(settings.pop("population", POPULATION), trainer, **settings)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.iterdir()) if not path.name.startswith(".claims"))  # locks, which are empty
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "trainer",
    [TRAINER, SklearnTrainer(estimator=LogisticRegression()), SklearnTrainer(estimator=RandomForestClassifier(3))],
)
def test_models_come_back_with_the_same_answers_and_the_same_bytes(tmp_path: Path, trainer: Any) -> None:
    fresh = [query(model, POPULATION).loss for model in ShadowPool.plan(POPULATION, trainer, shadows=4)]
    found = [query(model, POPULATION).loss for model in pool(tmp_path / "a", trainer)]
    np.testing.assert_allclose(found, fresh, rtol=1e-12)
    list(pool(tmp_path / "b", trainer))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_manifest_says_everything_about_its_model(tmp_path: Path) -> None:
    made = pool(tmp_path)
    made.train()
    manifest = json.loads((tmp_path / "model-00001.json").read_text())
    assert manifest["members"] == [f"p{i}" for i in np.flatnonzero(made.members[1])]
    assert manifest["data"] == POPULATION.fingerprint()
    assert "Linear(in_features=3" in manifest["trainer"]
    assert set(manifest) >= {"model_seed", "seed", "versions", "metrics", "sha256", "kind", "fraction"}
    assert 0 <= manifest["metrics"]["train_accuracy"] <= 1


def test_nothing_is_trained_twice_and_growing_leaves_the_first_files_untouched(tmp_path: Path) -> None:
    trained: list[int] = []

    def counting(population: Population, members: BoolArray, seed: int) -> Any:
        trained.append(seed)
        return lambda x: np.zeros((len(x), 2))

    counted = Versioned(counting, version="1")  # its closure changes with every model
    pool(tmp_path, counted, shadows=8).train()
    first = contents(tmp_path)
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in first}
    assert len(trained) == 8
    pool(tmp_path, counted, shadows=8).train()
    assert len(trained) == 8
    pool(tmp_path, counted, shadows=16).train()
    assert len(trained) == len(set(trained)) == 16
    grown = contents(tmp_path)
    assert all(grown[name] == value for name, value in first.items())
    assert all((tmp_path / name).stat().st_mtime_ns == stamp for name, stamp in times.items())


def test_a_flipped_byte_is_found_and_that_model_alone_is_trained_again(tmp_path: Path) -> None:
    pool(tmp_path).train()
    whole = contents(tmp_path)
    for name in ("model-00002.safetensors", "model-00001.json"):
        damaged = bytearray(whole[name])
        damaged[len(damaged) // 2] ^= 1
        (tmp_path / name).write_bytes(damaged)
    times = (tmp_path / "model-00000.safetensors").stat().st_mtime_ns
    pool(tmp_path).train()
    assert contents(tmp_path) == whole
    assert (tmp_path / "model-00000.safetensors").stat().st_mtime_ns == times


def test_a_model_that_memory_does_not_suffice_for_is_not_trained_again_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool(tmp_path).train()
    whole, read = contents(tmp_path), Path.read_bytes

    def short(path: Path) -> bytes:
        if path.name == "model-00001.safetensors":
            raise MemoryError
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", short)
        patched.setattr(TorchTrainer, "__call__", lambda *_: pytest.fail("a model was trained again"))
        with pytest.raises(InputError, match="model-00001.safetensors: needs more memory than there is"):
            pool(tmp_path).train()
    assert contents(tmp_path) == whole


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"population": Population(POPULATION.x + 1, POPULATION.y)}, "data"),
        ({"trainer": TorchTrainer(module=mlp(3, 2, hidden=(5,)), epochs=2)}, r"trainer.module.closure.hidden\[0\]"),
        ({"trainer": TorchTrainer(module=mlp(3, 2, hidden=(4,)), epochs=3)}, "trainer.epochs"),
        ({"seed": 1}, "seed"),
        ({"fraction": 0.4}, "fraction"),
    ],
)
def test_another_pools_folder_is_refused_with_what_differs(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    pool(tmp_path).train()
    before = contents(tmp_path)
    with pytest.raises(InputError, match=f"{named}: the pool was made with"):
        pool(tmp_path, **changed).train()
    assert contents(tmp_path) == before


def test_a_manifest_from_another_data_set_does_not_count(tmp_path: Path) -> None:
    other = Population(POPULATION.x + 1, POPULATION.y)
    pool(tmp_path / "other", population=other).train()
    pool(tmp_path / "mine").train()
    whole = contents(tmp_path / "mine")
    for ending in (".json", ".safetensors"):
        (tmp_path / "mine" / f"model-00001{ending}").write_bytes(
            (tmp_path / "other" / f"model-00001{ending}").read_bytes()
        )
    pool(tmp_path / "mine").train()
    assert contents(tmp_path / "mine") == whole


def test_of_a_model_that_cannot_be_stored_the_answers_are_kept(tmp_path: Path) -> None:
    def own(population: Population, members: BoolArray, seed: int) -> Any:
        return lambda x: np.stack([x[:, 0], x[:, 1]], axis=1)

    found = list(pool(tmp_path, own))
    assert all(isinstance(model, KeptAnswers) for model in found)
    expected = query(own(POPULATION, np.ones(40, bool), 0), POPULATION)
    assert (query(found[0], POPULATION).loss == expected.loss).all()


def test_a_folder_that_is_no_pool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model-00000.json").write_text("{}")
    with pytest.raises(InputError, match="has models but no pool.json"):
        pool(tmp_path).train()
    (tmp_path / "pool.json").write_text("[")
    with pytest.raises(InputError, match=r"pool\.json: is damaged, or is not JSON"):
        pool(tmp_path).train()
    (tmp_path / "pool.json").write_text('{"format": 99}')
    with pytest.raises(InputError, match="from another version"):
        pool(tmp_path).train()


def test_a_full_disk_is_one_clear_line_and_what_was_there_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool(tmp_path, shadows=2).train()
    before = contents(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        pool(tmp_path, shadows=4).train()
    monkeypatch.undo()
    assert contents(tmp_path) == before


def test_a_complete_pool_that_cannot_be_written_is_used_and_an_incomplete_one_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "pool"
    expected = [query(model, POPULATION).loss for model in pool(place)]
    before = contents(place)

    def read_only(path: Any, flags: int, *rest: Any, **options: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *rest, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", read_only)  # root may write everywhere, so that modes would not stop this test
    np.testing.assert_array_equal([query(model, POPULATION).loss for model in pool(place)], expected)
    with pytest.raises(InputError, match="Read-only file system. Choose another folder. 4 of 8 models are missing"):
        pool(place, shadows=8).train()
    with pytest.raises(InputError, match="seed: the pool was made with 0, not 1"):
        pool(place, seed=1).train()
    with pytest.raises(InputError, match="a pool cannot be kept there: Read-only file system. Choose another folder.$"):
        pool(tmp_path / "new").train()
    monkeypatch.undo()
    assert contents(place) == before


def test_a_folder_that_is_removed_while_models_are_trained_is_said_as_such(tmp_path: Path) -> None:
    def trainer(population: Population, members: BoolArray, seed: int) -> Any:
        shutil.rmtree(tmp_path / "pool", ignore_errors=True)
        return lambda x: np.zeros((len(x), 2))

    with pytest.raises(InputError, match="the pool's folder was removed or emptied while it was in use"):
        pool(tmp_path / "pool", Versioned(trainer, version="1")).train(progress=False)
    assert not (tmp_path / "pool").exists()
