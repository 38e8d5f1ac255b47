from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glasshouse.attacks import BASE
from glasshouse.evaluation import AttackOutcome
from glasshouse.graph import citation_graph
from glasshouse.pool.description import digest_of
from glasshouse_experiments.bench import Bench
from glasshouse_experiments.kept_scores import Origin, keep_scores, kept_scores
from glasshouse_experiments.settings import SETTINGS, Preset

NAME = ("online", "4", "", "BASE")
TRUTH = np.array([True, False])


def outcome() -> AttackOutcome:
    return AttackOutcome(attack=BASE(), scores=np.array([0.2, 0.8]), thresholds=(), metrics=None, seconds=1.5)


def test_scores_come_back_for_the_same_models_and_nodes_alone(tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    assert kept_scores(path, TRUTH, origin=Origin("a", 1)) is None
    keep_scores(path, outcome(), origin=Origin("a", 1))
    found = kept_scores(path, TRUTH, origin=Origin("a", 1))
    assert found is not None
    assert found.scores.tolist() == [0.2, 0.8]
    assert kept_scores(path, TRUTH, origin=Origin("b", 1)) is None
    assert kept_scores(path, np.array([True]), origin=Origin("a", 1)) is None
    assert kept_scores(path, TRUTH, origin=Origin("a", 2)) is None


@pytest.mark.parametrize("damage", [b"", b"no archive", b"PK\x03\x04"])
def test_a_damaged_file_is_as_good_as_none(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    path.write_bytes(damage)
    assert kept_scores(path, TRUTH, origin=Origin("a", 1)) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": np.array([np.nan, 0.5])},
        {"scores": np.array(["a", "b"])},
        {"thresholds": np.zeros(3)},
        {"thresholds": np.zeros((1, 4))},  # from before flags had scores of their own
        {"seconds": np.zeros(2)},
        {"version": np.array("one")},
    ],
)
def test_what_no_attack_gives_is_not_taken_for_scores(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    right: dict[str, Any] = {
        "scores": np.zeros(2),
        "thresholds": np.zeros((0, 4)),
        "seconds": np.array(1.0),
        "models": np.array("a"),
    }
    np.savez(path, **right)
    assert kept_scores(path, TRUTH, origin=Origin("a", 1)) is not None
    # a file without a version is from before there were any, when each attack was at its first
    assert kept_scores(path, TRUTH, origin=Origin("a", 2)) is None
    np.savez(path, **right | wrong)
    assert kept_scores(path, TRUTH, origin=Origin("a", 1)) is None


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse_experiments.bench.experiment_graph", lambda _: citation_graph(nodes=200))


@pytest.mark.usefixtures("_small")
def test_a_target_that_was_trained_again_is_attacked_again(tmp_path: Path) -> None:
    bench = Bench(
        setting=SETTINGS.find("synthetic"),
        preset=Preset(targets=2, datasets=("synthetic",), epochs=0.02),
        folder=tmp_path,
        progress=False,
    )
    attacks = {NAME: BASE()}
    first = [one[NAME] for one in bench.judged(attacks, shadows=4)]
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("scores/*.npz")}
    again = [one[NAME] for one in dataclasses.replace(bench).judged(attacks, shadows=4)]
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert all((one.scores == other.scores).all() for one, other in zip(first, again, strict=True))
    (targets,) = tmp_path.glob("*/targets-*")
    give_weights(targets, source=1, receiver=0)
    changed = [one[NAME] for one in dataclasses.replace(bench).judged(attacks, shadows=4)]
    assert (changed[0].scores != first[0].scores).any()
    assert (changed[1].scores == first[1].scores).all()
    assert sum(path.stat().st_mtime_ns != stamp for path, stamp in stamps.items()) == 1


@pytest.mark.usefixtures("_small")
def test_an_attack_of_another_version_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attacks = {NAME: BASE()}
    bench = Bench(
        setting=SETTINGS.find("synthetic"),
        preset=Preset(targets=1, datasets=("synthetic",), epochs=0.02),
        folder=tmp_path,
        progress=False,
    )
    list(bench.judged(attacks, shadows=4))
    (path,) = tmp_path.rglob("scores/*.npz")
    with np.load(path) as kept:
        assert kept["version"] == 1
        stale = dict(kept) | {"scores": np.zeros_like(kept["scores"])}
    np.savez(path, **stale)
    assert (next(bench.judged(attacks, shadows=4))[NAME].scores == 0).all()  # served as it was kept
    monkeypatch.setattr(BASE, "version", 2)
    assert (next(bench.judged(attacks, shadows=4))[NAME].scores != 0).any()
    with np.load(path) as kept:
        assert kept["version"] == 2


def give_weights(folder: Path, *, source: int, receiver: int) -> None:
    """Put one model's weights in another's place, as if it had been trained elsewhere."""
    shutil.copy(folder / f"model-{source:05d}.safetensors", folder / f"model-{receiver:05d}.safetensors")
    told = json.loads((folder / f"model-{receiver:05d}.json").read_text())
    told["sha256"] = json.loads((folder / f"model-{source:05d}.json").read_text())["sha256"]
    del told["manifest_sha256"]
    (folder / f"model-{receiver:05d}.json").write_text(json.dumps(told | {"manifest_sha256": digest_of(told)}))
