"""benchmarks/paper/cifar_models.py on the digits: what it writes stands for a pool's models."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from glasshouse_experiments.iid import accuracy_iid
from glasshouse_experiments.iid_bench import IidBench
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.kept_losses import kept_losses
from glasshouse_experiments.settings import Preset
from tests.benchmarks.scripts import benchmark
from tests.forked import Forks


def test_models_trained_elsewhere_give_the_losses_of_those_trained_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, place, out = benchmark("cifar_models"), tmp_path / "parts", tmp_path / "out"
    place.mkdir()
    preset = Preset(targets=1, datasets=(), most_shadows=8, epochs=0.01)
    bench = IidBench(setting=RECORD_SETTINGS.find("digits"), preset=preset, folder=tmp_path, progress=False)
    pools = {"targets": bench.target_models, "shadows": bench.shadows}
    order = script.in_order(1, 8)
    assert [kind for kind, _ in order] == ["shadows"] * 8 + ["targets"]
    taken = multiprocessing.get_context("fork").Value("i", 0)
    script.work(pools, order, taken, place, float("inf"))
    taken.value = 0
    with monkeypatch.context() as patched:  # a later call trains none again
        patched.setattr(script, "train", lambda *_: pytest.fail("a finished model was trained again"))
        script.work(pools, order, taken, place, float("inf"))
    assert {kind: script.gather(pool, kind, place, out, "CPU") for kind, pool in pools.items()} == {
        "targets": 1,
        "shadows": 8,
    }
    here = {kind: kept_losses(pool, progress=False) for kind, pool in pools.items()}
    accuracy = [cell.values for cell in accuracy_iid(bench)]
    script.bring(bench, out)
    assert bench.models == 8
    assert bench.note.endswith("on CPU.")
    for kind, pool in pools.items():
        np.testing.assert_allclose(kept_losses(pool, progress=False), here[kind], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose([cell.values for cell in accuracy_iid(bench)], accuracy)


def test_the_program_trains_all_models_by_workers(forks: Forks, tmp_path: Path) -> None:
    """As a program, since every worker starts it anew."""
    script = Path(__file__).parents[2] / "benchmarks" / "paper" / "cifar_models.py"
    options = ["--out", tmp_path, "--setting", "digits", "--epochs", "0.01", "--targets", "1", "--shadows", "2"]
    done = forks.run(script, *options, "--workers", "1", "--seconds", "600", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "{'targets': 1, 'shadows': 2}" in done.stdout
    assert {path.name for path in tmp_path.glob("*.safetensors")} == {"shadows.safetensors", "targets.safetensors"}


def test_models_after_a_gap_are_left_out(tmp_path: Path) -> None:
    script = benchmark("cifar_models")
    preset = Preset(targets=3, datasets=(), most_shadows=8)
    pool = IidBench(setting=RECORD_SETTINGS.find("digits"), preset=preset, folder=tmp_path).target_models
    for number in (0, 2):
        np.savez(tmp_path / f"targets-{number}.npz", loss=np.zeros(len(pool.population)), epochs=1)
    assert script.gather(pool, "targets", tmp_path, tmp_path, "CPU") == 1
