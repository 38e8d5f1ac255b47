"""Pools from strangers: files whose checksums fit, and whose content does not."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from sklearn.linear_model import LogisticRegression

from glasshouse import InputError, Population, SklearnTrainer, TorchTrainer
from glasshouse.pool import ShadowPool
from glasshouse.training import mlp
from tests.hostile.files import RECORDS

POPULATION = Population(RECORDS["x"], RECORDS["y"])


def asks(population: Population, members: Any, seed: int) -> Any:
    """A model of the user's own, of which only the answers are kept."""
    return lambda x: np.stack([x[:, 0], -x[:, 0]], axis=1)


TRAINERS: dict[str, Any] = {
    "torch": TorchTrainer(module=mlp(4, 2, hidden=[3]), epochs=1),
    "sklearn": SklearnTrainer(estimator=LogisticRegression()),
    "answers": asks,
}


def pool(kind: str, folder: Path) -> ShadowPool:
    return ShadowPool.plan(POPULATION, TRAINERS[kind], shadows=2, folder=folder)


def replaced(folder: Path, content: bytes) -> None:
    """Another content for the first model, with a manifest that fits it."""
    path = next(path for path in folder.glob("model-00000.*") if path.suffix != ".json")
    path.write_bytes(content)
    manifest = json.loads((folder / "model-00000.json").read_text())
    sealed = manifest.pop("manifest_sha256", None) is not None  # those of earlier versions are not
    manifest["sha256"] = hashlib.sha256(content).hexdigest()
    if sealed:
        from glasshouse.pool.description import digest_of

        manifest["manifest_sha256"] = digest_of(manifest)
    (folder / "model-00000.json").write_text(json.dumps(manifest))


def answers(values: Any) -> bytes:
    return safetensors.numpy.save({"logits": np.asarray(values)})


FAULTS: dict[str, tuple[str, bytes]] = {
    "torch: garbage": ("torch", b"garbage"),
    "torch: nothing": ("torch", b""),
    "torch: a header that lies": ("torch", (10**15).to_bytes(8, "little") + b"{}"),
    "torch: other names": ("torch", safetensors.numpy.save({"other": np.zeros(3, np.float32)})),
    "torch: other shapes": ("torch", safetensors.numpy.save({"1.weight": np.zeros((9, 9), np.float32)})),
    "answers: garbage": ("answers", b"garbage"),
    "answers: no answers": ("answers", safetensors.numpy.save({"other": np.zeros(3)})),
    "answers: too few": ("answers", answers(np.zeros((3, 2)))),
    "answers: one axis": ("answers", answers(np.zeros(40))),
    "answers: NaN": ("answers", answers(np.full((40, 2), np.nan))),
    "answers: whole numbers": ("answers", answers(np.zeros((40, 2), np.int64))),
    "answers: single precision": ("answers", answers(np.zeros((40, 2), np.float32))),
    "answers: more than every float": ("answers", answers(np.full((40, 2), np.inf))),
    "answers: other shares of right ones": (
        "answers",
        safetensors.numpy.save({"logits": np.zeros((40, 2)), "correct": np.zeros((40, 2), bool)}),
    ),
    "an estimator: garbage": ("sklearn", b"garbage"),
}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {kind: tmp_path_factory.mktemp("pools") / kind for kind in TRAINERS}
    for kind, folder in made.items():
        pool(kind, folder).train(progress=False)
    return made


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_model_behind_a_fitting_checksum_is_one_line(name: str, pools: dict[str, Path]) -> None:
    kind, content = FAULTS[name]
    replaced(pools[kind], content)
    with pytest.raises(InputError, match="model 0: ") as caught:
        list(pool(kind, pools[kind]))
    assert len(caught.value.faults) == 1
    assert len(str(caught.value)) < 2100


@pytest.mark.parametrize(
    "text", ["[" * 5000 + "]" * 5000, "[]", "NaN", '{"a": 1, "a": 2}', '{"format": ' + "1" * 5000 + "}"]
)
def test_a_hostile_description_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "pool.json").write_text(text)
    with pytest.raises(InputError, match=r"pool\.json: is"):
        pool("answers", tmp_path).train(progress=False)


def test_folders_and_pipes_in_place_of_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "pool.json").mkdir()
    with pytest.raises(InputError, match=r"pool\.json: is a folder"):
        pool("answers", tmp_path).train(progress=False)
    (tmp_path / "pool.json").rmdir()
    os.mkfifo(tmp_path / "pool.json")
    with pytest.raises(InputError, match=r"pool\.json: is not a plain file"):
        pool("answers", tmp_path).train(progress=False)
