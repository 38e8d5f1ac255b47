"""Benches without training: made-up losses whose best attack is known, or made-up images of CIFAR's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from glasshouse_experiments.iid_bench import IidBench, Target
from glasshouse_experiments.iid_settings import RECORD_SETTINGS
from glasshouse_experiments.settings import Preset
from tests.data.made_up_images import write_binary
from tests.strategies import gaussian_evidence


def bench_of_losses(monkeypatch: pytest.MonkeyPatch, *, shadows: int = 32, targets: int = 2) -> IidBench:
    """CIFAR-10's bench, but with Gaussian margins in place of trained models."""

    def made_up(bench: IidBench) -> Iterator[Target]:
        for seed in range(bench.preset.targets):
            evidence, truth = gaussian_evidence(records=2000, models=bench.models, shift=1.0, seed=seed)
            yield Target(evidence, truth)

    monkeypatch.setattr(IidBench, "targets", made_up)
    preset = Preset(datasets=(), targets=targets, most_shadows=shadows)
    return IidBench(setting=RECORD_SETTINGS.find("cifar10"), preset=preset, folder=Path())


def place_images(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 80 images of both sets, as their official files hold them."""
    numbers = np.arange(80, dtype=np.uint8)
    write_binary(home / "cifar10" / "data_batch_1.bin", numbers[:, None] % 10, start=0, count=10_000)
    write_binary(home / "cifar100" / "train.bin", np.stack([numbers % 20, numbers], axis=1), start=0, count=50_000)
    monkeypatch.setenv("GLASSHOUSE_DATA", str(home))
