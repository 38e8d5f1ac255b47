from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from glasshouse import InputError, TorchTrainer
from glasshouse.evidence import query
from glasshouse.training import CropAndFlip, OneCycle, WideResNet, mlp
from glasshouse_experiments.iid import accuracy_iid, iid
from glasshouse_experiments.iid_bench import IidBench
from glasshouse_experiments.iid_settings import RECORD_SETTINGS, RecordSetting
from glasshouse_experiments.settings import Preset
from tests.experiments.iid_scenes import place_images

WIDE = functools.partial(WideResNet, depth=10, width=1)


def setting(name: str, trainer: TorchTrainer) -> RecordSetting:
    title = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}[name]
    return RecordSetting(
        name=f"tiny-{name}", data=name, options={"first": 80}, paper_name=title, model="tiny", trainer=trainer
    )


def bench(name: str, folder: Path, *, shadows: int = 8, targets: int = 2) -> IidBench:
    trainer = TorchTrainer(module=mlp(3072, 10 if name == "cifar10" else 100, hidden=(4,)), epochs=2, device="cpu")
    preset = Preset(datasets=(), targets=targets, most_shadows=shadows, epochs=0.5)
    return IidBench(setting=setting(name, trainer), preset=preset, folder=folder, progress=False)


def test_targets_come_with_the_losses_of_all_models_and_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_images(tmp_path, monkeypatch)
    made = bench("cifar100", tmp_path / "pools")
    assert made.trainer.epochs == 1
    found = list(made.targets())
    models = list(made.target_models)
    assert len(found) == 2
    for number, (evidence, truth) in enumerate(found):
        assert evidence.shadow_loss.shape == (8, 80)
        assert (evidence.shadow_members.sum(axis=0) == 4).all()
        assert truth.sum() == 40
        assert (evidence.target_loss == query(models[number], made.population).loss).all()
        retrained = made.trainer(made.population, truth, made.target_models._groups()[number].seeds[0])
        np.testing.assert_allclose(evidence.target_loss, query(retrained, made.population).loss, rtol=1e-4)


def test_more_models_are_added_to_those_that_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place_images(tmp_path, monkeypatch)
    few = next(iter(bench("cifar10", tmp_path / "pools", targets=1).targets())).evidence
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "pools").rglob("*.safetensors")}
    many = next(iter(bench("cifar10", tmp_path / "pools", shadows=10, targets=2).targets())).evidence
    assert (many.shadow_loss[:8] == few.shadow_loss).all()
    assert stamps
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_another_recipe_has_folders_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place_images(tmp_path, monkeypatch)
    one = bench("cifar10", tmp_path)
    other = IidBench(setting=one.setting.changed(epochs=9), preset=one.preset, folder=tmp_path)
    assert one.shadows.folder != other.shadows.folder


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_a_wide_resnet_runs_through_on_images_of_its_shape(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_images(tmp_path, monkeypatch)
    trainer = TorchTrainer(
        module=functools.partial(WIDE, classes=10 if name == "cifar10" else 100),
        schedule=OneCycle(),
        augmentation=CropAndFlip(),
        epochs=1,
        batch_size=20,
        device="cpu",
    )
    made = IidBench(
        setting=setting(name, trainer),
        preset=Preset(datasets=(), targets=2, most_shadows=8),
        folder=tmp_path / "pools",
        progress=False,
    )
    cells = iid(made)
    assert {len(cell.values) for cell in cells} == {2}
    train, test = accuracy_iid(made)
    assert (train.metric, test.metric) == ("train_accuracy_pct", "test_accuracy_pct")
    assert all(0 <= value <= 100 for value in train.values + test.values)


def test_too_few_models_for_any_row_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="shadows: 4 are too few; the paper's tables start at 8"):
        iid(bench("cifar10", tmp_path, shadows=4))


@pytest.mark.parametrize("name", RECORD_SETTINGS.names())
def test_every_setting_builds_its_model(name: str) -> None:
    chosen = RECORD_SETTINGS.find(name)
    shape, classes = {
        "digits": ((2, 8, 8), 10),
        "adult": ((2, 106), 2),
        "cifar10": ((2, 3, 32, 32), 10),
        "cifar100": ((2, 3, 32, 32), 100),
    }[chosen.data]
    x = np.zeros(shape, dtype=np.float32)
    assert chosen.trainer.module().eval()(torch.from_numpy(x)).shape == (2, classes)
    assert chosen.note
